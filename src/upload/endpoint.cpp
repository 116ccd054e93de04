// SPDX-License-Identifier: Apache-2.0
#include "upload/endpoint.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <array>

namespace kb::upload {

namespace {

using sys::EnvironmentMap;
using sys::Path;

constexpr std::uint64_t kMaxTokenFile = 64UL << 10U;

Result<Endpoint> parse_endpoint(const std::string& text, std::string source) {
    auto url = http::Url::parse(trim(text));
    if (!url) {
        return std::move(url).context(fmt::format("reading the endpoint from {}", source)).error();
    }
    return Endpoint{.url = std::move(*url), .source = std::move(source)};
}

bool is_true(std::string_view value) {
    const std::string lower = to_lower(value);
    return lower == "1" || lower == "on" || lower == "yes" || lower == "true";
}

std::optional<Path> token_file(const EnvironmentMap& environment) {
    if (const auto path = sys::lookup(environment, "HF_TOKEN_PATH")) {
        return Path{*path};
    }
    if (const auto home = sys::lookup(environment, "HF_HOME")) {
        return Path{*home} / "token";
    }
    if (const auto cache = sys::lookup(environment, "XDG_CACHE_HOME")) {
        return Path{*cache} / "huggingface" / "token";
    }
    if (const auto home = sys::lookup(environment, "HOME")) {
        return Path{*home} / ".cache" / "huggingface" / "token";
    }
    return std::nullopt;
}

bool is_this_machine(const std::string& host) {
    return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

} // namespace

Result<Endpoint> find_endpoint(const EndpointWishes& wishes, const EnvironmentMap& environment) {
    if (wishes.flag) {
        return parse_endpoint(*wishes.flag, "--endpoint");
    }
    if (const auto value = sys::lookup(environment, "HF_ENDPOINT")) {
        return parse_endpoint(*value, "HF_ENDPOINT");
    }
    if (wishes.config) {
        return parse_endpoint(*wishes.config, "config.toml");
    }
    return Error{.code = ErrorCode::not_found,
                 .message = "no registry is named: pass --endpoint URL, set HF_ENDPOINT, or write "
                            "'endpoint = \"URL\"' to kernel-builder/config.toml"};
}

Result<std::optional<Token>> find_token(const EnvironmentMap& environment, sys::FileSystem& fs) {
    using Found = std::optional<Token>;
    if (is_true(sys::lookup(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN").value_or(""))) {
        return Found{};
    }
    for (const char* name : std::array{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
        const auto value = sys::lookup(environment, name);
        if (value && !trim(*value).empty()) {
            return Found{{.secret = http::Secret{std::string{trim(*value)}}, .source = name}};
        }
    }
    const auto path = token_file(environment);
    if (!path) {
        return Found{};
    }
    auto text = fs.read_file(*path, kMaxTokenFile);
    if (!text && text.error().code == ErrorCode::not_found) {
        return Found{};
    }
    if (!text) {
        return std::move(text).context("reading the token file").error();
    }
    if (trim(*text).empty()) {
        return Found{};
    }
    return Found{{.secret = http::Secret{std::string{trim(*text)}},
                  .source = fmt::format("file '{}'", path->string())}};
}

std::optional<std::string> cleartext_warning(const http::Url& endpoint) {
    if (endpoint.scheme() == "https" || is_this_machine(endpoint.host())) {
        return std::nullopt;
    }
    return fmt::format("the token travels unencrypted to '{}': anyone on the way can read it",
                       endpoint.origin());
}

} // namespace kb::upload
