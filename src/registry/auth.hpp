// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "digest/digest.hpp"
#include "hub/messages.hpp"
#include "hub/repo_id.hpp"
#include "hub/status.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry {

/// Each includes the ones before it.
enum class Scope : std::uint8_t { read, write, admin };

[[nodiscard]] std::string_view to_text(Scope scope);
[[nodiscard]] std::optional<Scope> parse_scope(std::string_view text);

/// Who asks, after the token was looked up.
struct Caller {
    /// Empty: nobody in particular.
    std::string user{};
    Scope scope = Scope::read;
    /// Where the token acts; empty with scope admin: everywhere.
    std::vector<std::string> namespaces{};

    [[nodiscard]] bool is_anonymous() const { return user.empty(); }

    [[nodiscard]] bool acts_in(std::string_view name) const;
};

/// What a route needs.
enum class Right : std::uint8_t {
    nothing,  ///< also without any read right
    identity, ///< a valid token
    read,     ///< of the repository
    write,    ///< of the repository
    own,      ///< deletion and settings of the repository
};

enum class AnonymousRead : std::uint8_t { no, yes };

[[nodiscard]] bool may_read(const Caller& caller,
                            const hub::RepoId& repo,
                            hub::Visibility visibility,
                            AnonymousRead anonymous);
[[nodiscard]] bool may_write(const Caller& caller, std::string_view owner);
/// Delete and settings: scope admin, or the user's own namespace with scope write.
[[nodiscard]] bool may_own(const Caller& caller, std::string_view owner);

/// The same answer for a missing and for a hidden repository.
[[nodiscard]] hub::HubStatus repo_not_found(const Caller& caller);
/// A visible repository that the caller may not change.
[[nodiscard]] hub::HubStatus forbidden(const Caller& caller);
[[nodiscard]] hub::HubStatus bad_credentials();

/// The token of an Authorization header: Bearer, or the password of Basic. Nothing when the header
/// is of another form.
[[nodiscard]] std::optional<std::string> token_of(std::string_view authorization);
/// A new token: "hf_" and 256 random bits. Clients and secret scanners know the prefix.
/// "refs/heads/v1": a branch that clients load a version from.
[[nodiscard]] bool is_version_branch(std::string_view ref);

[[nodiscard]] std::string make_token();
/// What is kept of a token.
[[nodiscard]] digest::Digest token_hash(std::string_view token);

} // namespace kb::registry
