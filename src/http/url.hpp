// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "http/secret.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kb::http {

/// An absolute http or https address, checked once. Scheme and host are lower case, a fragment is
/// dropped, an empty path is "/". Printed by redacted() only.
class Url {
public:
    /// `unsupported` for another scheme, `corrupt` for anything else that is no address; messages
    /// never repeat a password.
    [[nodiscard]] static Result<Url> parse(std::string_view text);

    [[nodiscard]] const std::string& scheme() const { return scheme_; }

    /// Name or address as in the text; IPv6 with its brackets.
    [[nodiscard]] const std::string& host() const { return host_; }

    /// The port written, else 80 or 443.
    [[nodiscard]] std::uint16_t port() const;

    /// Percent-encoded as written, begins with '/'.
    [[nodiscard]] const std::string& path() const { return path_; }

    /// Without the '?'; "" without one.
    [[nodiscard]] const std::string& query() const { return query_; }

    /// "user:password" of the address, empty when there is none.
    [[nodiscard]] const Secret& user_info() const { return user_info_; }

    /// For the wire: everything but the user info (signed queries included), so not for people.
    [[nodiscard]] std::string to_wire() const;
    /// For people: user info and query values as "***", save those that only page or select.
    [[nodiscard]] std::string redacted() const;
    /// "https://host:port", the port only when it is not the scheme's own.
    [[nodiscard]] std::string origin() const;
    [[nodiscard]] bool has_origin_of(const Url& other) const;

    /// This address as a prefix: "http://h/base/" + "/api/x?q=1" = "http://h/base/api/x?q=1". The
    /// query of the prefix is dropped. `tail` begins with '/' and is already encoded.
    [[nodiscard]] Url below(std::string_view tail) const;
    /// The address that `reference` (absolute or relative, as in Location and Link) means here.
    [[nodiscard]] Result<Url> resolve(std::string_view reference) const;

    bool operator==(const Url& other) const { return to_wire() == other.to_wire(); }

private:
    Url() = default;
    [[nodiscard]] Result<void> take_authority(std::string_view authority);

    std::string scheme_;
    Secret user_info_;
    std::string host_;
    std::uint16_t port_ = 0;
    std::string path_;
    std::string query_;
};

} // namespace kb::http
