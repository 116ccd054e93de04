// SPDX-License-Identifier: Apache-2.0
#include "registry/settings.hpp"

#include "base/text.hpp"
#include "document/reader.hpp"
#include "document/toml.hpp"

#include <fmt/format.h>

#include <limits>

namespace kb::registry {

namespace {

constexpr std::uint16_t kDefaultPort = 8910;

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
    if (const auto workers = reader.unsigned_integer("workers")) {
        if (workers->value < 1 || workers->value > 1024) {
            diagnostics.error("wrong-value", workers->span, "'workers' must be 1 to 1024");
        } else {
            settings.workers = static_cast<unsigned>(workers->value);
        }
    }
    reader.finish({"regular-bytes", "object-bytes", "commit-bytes", "workers"});
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

# Address and port. Other addresses than loopback need a proxy in front that speaks TLS,
# and 'registry serve --insecure-listen'.
listen = "{}"
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
# Requests handled at once.
workers = {}
)",
                       defaults.listen,
                       defaults.regular_bytes,
                       defaults.object_bytes,
                       defaults.commit_bytes,
                       defaults.workers);
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
    require_word(reader, "metadata", "sqlite", diagnostics);
    require_word(reader, "blobs", "dir", diagnostics);
    if (const document::Node* limits = reader.table("limits")) {
        read_limits(*limits, settings, diagnostics);
    }
    reader.finish({"listen",
                   "public-url",
                   "anonymous-read",
                   "trusted-publishers",
                   "metadata",
                   "blobs",
                   "limits"});
    return diagnostics.has_errors() ? std::nullopt : std::optional{settings};
}

Result<ListenAddress> parse_listen(std::string_view text) {
    const auto bad = [text] {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' is not ADDRESS:PORT, as in 127.0.0.1:8910",
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
