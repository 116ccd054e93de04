// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "registry/auth.hpp"
#include "registry/rate_limit.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry {

/// What may happen to what was published; a token of scope admin may do it all the same.
struct Policy {
    /// Branches v<number>: a file below build/ that is there neither changes nor goes, and the
    /// branch cannot be deleted.
    bool append_only_versions = true;
    /// Tags v<number>...: cannot be deleted.
    bool fixed_release_tags = true;

    bool operator==(const Policy&) const = default;
};

/// <root>/registry.toml.
struct Settings {
    /// "ADDRESS:PORT", IPv6 in brackets.
    std::string listen = "127.0.0.1:8910";
    /// Base of all addresses in answers; empty: that of the listening socket. Never the Host
    /// header.
    std::string public_url{};
    /// PEM files, relative to the root; both or none.
    std::string tls_certificate{};
    std::string tls_key{};
    AnonymousRead anonymous_read = AnonymousRead::yes;
    /// Owners whose kernels clients may load without asking; nothing: all owners here.
    std::optional<std::vector<std::string>> trusted_publishers{};
    /// A file up to this size may travel inside the commit.
    std::uint64_t regular_bytes = 8UL << 20U;
    /// Of one large object.
    std::uint64_t object_bytes = 50ULL << 30U;
    /// Of one commit stream.
    std::uint64_t commit_bytes = 8ULL << 30U;
    unsigned workers = 64;
    /// Size of the parts of a large object; up to two parts it goes up in one piece.
    std::uint64_t part_bytes = 32UL << 20U;
    RateLimits rate{};
    Policy policy{};

    bool operator==(const Settings&) const = default;
};

/// Text of a new registry.toml, every key with its default and meaning.
[[nodiscard]] std::string default_settings_text();
/// Unknown keys and values are diagnostics.
[[nodiscard]] std::optional<Settings>
parse_settings(std::string_view text, const std::string& path, Diagnostics& diagnostics);

struct ListenAddress {
    std::string address{};
    std::uint16_t port = 0;

    bool operator==(const ListenAddress&) const = default;
};

/// "127.0.0.1:8910", "[::1]:0", ":8910" (loopback), "127.0.0.1" (port 8910).
[[nodiscard]] Result<ListenAddress> parse_listen(std::string_view text);

} // namespace kb::registry
