// SPDX-License-Identifier: Apache-2.0
#include "registry/auth.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace kb::registry {

namespace {

constexpr std::array<std::string_view, 3> kScopes{"read", "write", "admin"};

} // namespace

std::string_view to_text(Scope scope) {
    return kScopes.at(static_cast<std::size_t>(scope));
}

std::optional<Scope> parse_scope(std::string_view text) {
    const auto found = std::ranges::find(kScopes, text);
    if (found == kScopes.end()) {
        return std::nullopt;
    }
    return static_cast<Scope>(found - kScopes.begin());
}

bool Caller::acts_in(std::string_view name) const {
    if (is_anonymous()) {
        return false;
    }
    if (namespaces.empty()) {
        return scope == Scope::admin || name == user;
    }
    return std::ranges::find(namespaces, name) != namespaces.end();
}

bool may_read(const Caller& caller,
              const hub::RepoId& repo,
              hub::Visibility visibility,
              AnonymousRead anonymous) {
    if (visibility == hub::Visibility::private_) {
        return caller.acts_in(repo.owner());
    }
    return anonymous == AnonymousRead::yes || !caller.is_anonymous();
}

bool may_write(const Caller& caller, std::string_view owner) {
    return caller.scope >= Scope::write && caller.acts_in(owner);
}

bool may_own(const Caller& caller, std::string_view owner) {
    return may_write(caller, owner) && (caller.scope == Scope::admin || caller.user == owner);
}

hub::HubStatus repo_not_found(const Caller& caller) {
    return {.http = caller.is_anonymous() ? 401 : 404,
            .code = hub::HubErrorCode::RepoNotFound,
            .message = "repository not found, or no right to see it"};
}

hub::HubStatus forbidden(const Caller& caller) {
    if (caller.is_anonymous()) {
        return {.http = 401, .message = "this needs a token"};
    }
    return {.http = 403, .message = "the token has no right to do this here"};
}

hub::HubStatus bad_credentials() {
    return {.http = 401, .message = "Invalid credentials in Authorization header"};
}

std::optional<std::string> token_of(std::string_view authorization) {
    const std::size_t space = authorization.find(' ');
    const std::string kind = to_lower(authorization.substr(0, space));
    const std::string_view value =
        space == std::string_view::npos ? "" : trim(authorization.substr(space));
    if (kind == "bearer" && !value.empty()) {
        return std::string{value};
    }
    if (kind == "basic") {
        // git and git-lfs send "user:token"; whoever the user is said to be, the token decides.
        const Result<std::string> pair = digest::from_base64(value);
        const std::size_t colon = pair ? pair->find(':') : std::string::npos;
        if (colon != std::string::npos && colon + 1 < pair->size()) {
            return pair->substr(colon + 1);
        }
    }
    return std::nullopt;
}

bool is_version_branch(std::string_view ref) {
    constexpr std::string_view kPrefix = "refs/heads/v";
    return ref.starts_with(kPrefix) && parse_unsigned(ref.substr(kPrefix.size())).has_value();
}

std::string make_token() {
    return "hf_" + digest::sha256(digest::random_bytes(32)).hex();
}

digest::Digest token_hash(std::string_view token) {
    return digest::sha256(token);
}

} // namespace kb::registry
