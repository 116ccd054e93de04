// SPDX-License-Identifier: Apache-2.0
#include "registry/settings.hpp"

#include "base/text.hpp"
#include "document/reader.hpp"
#include "document/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kb::registry {

namespace {

constexpr std::uint16_t kDefaultPort = 8910;
/// Smaller parts would cost more in requests than a broken line costs in repeated bytes.
constexpr std::uint64_t kLeastPart = 1UL << 20U;

void read_limits(const document::Node& table, Settings& settings, Diagnostics& diagnostics) {
    document::Reader reader{table, "[limits]", diagnostics};
    const auto take = [&reader](std::string_view key, std::uint64_t& value) {
        if (const auto found = reader.unsigned_integer(key)) {
            value = found->value;
        }
    };
    take("regular-bytes", settings.regular_bytes);
    take("object-bytes", settings.object_bytes);
    take("commit-bytes", settings.commit_bytes);
    take("part-bytes", settings.part_bytes);
    const auto take_rate = [&](std::string_view key, unsigned& value) {
        if (const auto found = reader.unsigned_integer(key)) {
            value = static_cast<unsigned>(std::min<std::uint64_t>(found->value, 1'000'000));
        }
    };
    take_rate("requests-per-minute", settings.rate.per_user);
    take_rate("anonymous-requests-per-minute", settings.rate.per_address);
    if (settings.part_bytes < kLeastPart) {
        diagnostics.error("wrong-value",
                          reader.unsigned_integer("part-bytes")->span,
                          fmt::format("'part-bytes' must be at least {}", kLeastPart));
    }
    if (const auto workers = reader.unsigned_integer("workers")) {
        if (workers->value < 1 || workers->value > 1024) {
            diagnostics.error("wrong-value", workers->span, "'workers' must be 1 to 1024");
        } else {
            settings.workers = static_cast<unsigned>(workers->value);
        }
    }
    reader.finish({"regular-bytes",
                   "object-bytes",
                   "commit-bytes",
                   "part-bytes",
                   "workers",
                   "requests-per-minute",
                   "anonymous-requests-per-minute"});
}

void read_policy(const document::Node& table, Policy& policy, Diagnostics& diagnostics) {
    document::Reader reader{table, "[policy]", diagnostics};
    if (const auto value = reader.boolean("append-only-versions")) {
        policy.append_only_versions = value->value;
    }
    if (const auto value = reader.boolean("fixed-release-tags")) {
        policy.fixed_release_tags = value->value;
    }
    reader.finish({"append-only-versions", "fixed-release-tags"});
}

void read_tls(document::Reader& reader, Settings& settings, Diagnostics& diagnostics) {
    const auto certificate = reader.string("tls-certificate");
    const auto key = reader.string("tls-key");
    if (certificate.has_value() != key.has_value()) {
        diagnostics.error("wrong-value",
                          certificate ? certificate->span : key->span,
                          "'tls-certificate' and 'tls-key' must be given together");
    } else if (certificate) {
        settings.tls_certificate = certificate->value;
        settings.tls_key = key->value;
    }
}

void require_word(document::Reader& reader,
                  std::string_view key,
                  std::string_view only,
                  Diagnostics& diagnostics) {
    if (const auto word = reader.string(key); word && word->value != only) {
        diagnostics.error("wrong-value",
                          word->span,
                          fmt::format("'{}' must be '{}': nothing else is built in", key, only));
    }
}

} // namespace

std::string default_settings_text() {
    const Settings defaults;
    return fmt::format(R"(# Settings of this registry; the server reads them when it starts.

# Address and port. Other addresses than loopback need a certificate, or a proxy in front that
# speaks TLS and 'registry serve --insecure-listen'.
listen = "{}"
# PEM files, relative to this directory.
# tls-certificate = "cert.pem"
# tls-key = "key.pem"
# Base of the addresses in answers, when a proxy stands in front.
# public-url = "https://kernels.example.org"

# Whether public repositories can be read without a token.
anonymous-read = true
# Owners whose kernels the stock client loads without being asked for trust. Default: all.
# trusted-publishers = ["acme"]

metadata = "sqlite"
blobs = "dir"

[limits]
# Files up to this size may travel inside a commit; larger ones are uploaded beforehand.
regular-bytes = {}
# Largest single file, and largest commit request.
object-bytes = {}
commit-bytes = {}
# Larger files come in parts of this size when the client can, and go on after a break.
part-bytes = {}
# Requests handled at once.
workers = {}
# Requests a minute of one user, and of one address without a token; 0: as many as come.
requests-per-minute = {}
anonymous-requests-per-minute = {}

[policy]
# Published files of branches v1, v2 ... neither change nor go, except by a token of scope admin.
append-only-versions = {}
# Tags such as v1.0 cannot be deleted, except by a token of scope admin.
fixed-release-tags = {}
)",
                       defaults.listen,
                       defaults.regular_bytes,
                       defaults.object_bytes,
                       defaults.commit_bytes,
                       defaults.part_bytes,
                       defaults.workers,
                       defaults.rate.per_user,
                       defaults.rate.per_address,
                       defaults.policy.append_only_versions,
                       defaults.policy.fixed_release_tags);
}

std::optional<Settings>
parse_settings(std::string_view text, const std::string& path, Diagnostics& diagnostics) {
    const auto root = document::parse_toml(text, Origin{.name = path}, diagnostics);
    if (!root) {
        return std::nullopt;
    }
    Settings settings;
    document::Reader reader{*root, "the settings", diagnostics};
    if (const auto listen = reader.string("listen")) {
        settings.listen = listen->value;
        if (const auto parsed = parse_listen(listen->value); !parsed) {
            diagnostics.error("wrong-value", listen->span, parsed.error().message);
        }
    }
    if (const auto url = reader.string("public-url")) {
        settings.public_url = url->value;
        while (settings.public_url.ends_with('/')) {
            settings.public_url.pop_back();
        }
        if (!settings.public_url.starts_with("http://") &&
            !settings.public_url.starts_with("https://")) {
            diagnostics.error(
                "wrong-value", url->span, "'public-url' must begin with http:// or https://");
        }
    }
    if (const auto anonymous = reader.boolean("anonymous-read")) {
        settings.anonymous_read = anonymous->value ? AnonymousRead::yes : AnonymousRead::no;
    }
    if (const auto trusted = reader.strings("trusted-publishers")) {
        settings.trusted_publishers.emplace();
        for (const auto& name : *trusted) {
            settings.trusted_publishers->push_back(name.value);
        }
    }
    read_tls(reader, settings, diagnostics);
    require_word(reader, "metadata", "sqlite", diagnostics);
    require_word(reader, "blobs", "dir", diagnostics);
    if (const document::Node* limits = reader.table("limits")) {
        read_limits(*limits, settings, diagnostics);
    }
    if (const document::Node* policy = reader.table("policy")) {
        read_policy(*policy, settings.policy, diagnostics);
    }
    reader.finish({"listen",
                   "public-url",
                   "anonymous-read",
                   "trusted-publishers",
                   "tls-certificate",
                   "tls-key",
                   "metadata",
                   "blobs",
                   "limits",
                   "policy"});
    return diagnostics.has_errors() ? std::nullopt : std::optional{settings};
}

Result<ListenAddress> parse_listen(std::string_view text) {
    const auto bad = [text] {
        return Error{.code = ErrorCode::corrupt,
                     .message =
                         fmt::format("'{}' is not ADDRESS:PORT with a numeric address, as in "
                                     "127.0.0.1:8910",
                                     escape_control(text))};
    };
    std::string_view address = text;
    std::string_view port = "";
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos) {
            return bad();
        }
        address = text.substr(1, close - 1);
        port = text.substr(close + 1);
        if (!port.empty() && !port.starts_with(':')) {
            return bad();
        }
        port.remove_prefix(port.empty() ? 0 : 1);
    } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
        address = text.substr(0, colon);
        port = text.substr(colon + 1);
    }
    const bool is_bracketed = text.starts_with('[');
    const std::string_view letters = is_bracketed ? "0123456789abcdefABCDEF:.%" : "0123456789.";
    if (address == "localhost") {
        address = "127.0.0.1";
    } else if (address.find_first_not_of(letters) != std::string_view::npos) {
        return bad(); // a name: which address it means may change
    }
    ListenAddress listen{.address = address.empty() ? "127.0.0.1" : std::string{address},
                         .port = kDefaultPort};
    if (!port.empty()) {
        const auto number = parse_unsigned(port);
        if (!number || *number > std::numeric_limits<std::uint16_t>::max()) {
            return bad();
        }
        listen.port = static_cast<std::uint16_t>(*number);
    }
    return listen;
}

} // namespace kb::registry
