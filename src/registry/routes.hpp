// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hub/repo_id.hpp"
#include "registry/auth.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kb::registry {

/// Where a pattern begins: at the root, after /api/{type}/{owner}/{name}, or after the web path of
/// a repository (/{owner}/{name} for models, /{type}/{owner}/{name} for the rest).
enum class Area : std::uint8_t { root, api, web };

/// What a route does; each has one handler in App.
enum class Action : std::uint8_t {
    health,
    whoami,
    validate_yaml,
    create_repo,
    delete_repo,
    move_repo,
    list_repos,
    owner_overview,
    put_object,
    put_part,
    complete_object,
    get_object,
    verify_object,
    repo_info,
    refs,
    tree,
    paths_info,
    commits,
    create_branch,
    delete_branch,
    create_tag,
    delete_tag,
    preupload,
    commit,
    auth_check,
    settings,
    lfs_batch,
    lfs_verify,
    discussions,
    discussion,
    open_discussion,
    xet_write_token,
    put_xorb,
    put_shard,
    resolve,
    raw,
    index_page,
    repo_page,
};

struct RouteRow {
    /// HEAD matches GET.
    std::string_view method{};
    Area area = Area::root;
    /// "tree/{rev}/{path...}": {x} takes one part, {x...} at the end one or more.
    std::string_view pattern{};
    /// In the areas of a repository the right on it.
    Right right = Right::nothing;
    Action action = Action::health;
};

[[nodiscard]] std::span<const RouteRow> routes();

using Parameters = std::vector<std::pair<std::string, std::string>>;

/// The value of `name`, percent-decoded; "" when absent.
[[nodiscard]] std::string parameter(const Parameters& parameters, std::string_view name);

struct RouteMatch {
    const RouteRow* row = nullptr;
    /// In the areas of a repository.
    std::optional<hub::RepoId> repo{};
    Parameters parameters{};
};

struct NoRoute {
    bool operator==(const NoRoute&) const = default;
};

/// The path exists with other methods: value of the Allow header.
struct WrongMethod {
    std::string allow{};

    bool operator==(const WrongMethod&) const = default;
};

using RouteVerdict = std::variant<RouteMatch, NoRoute, WrongMethod>;

/// `path` is still percent-encoded: it is split first and decoded then, so that an encoded slash
/// stays inside its part.
[[nodiscard]] RouteVerdict find_route(std::string_view method, std::string_view path);

/// A query or form: "a=1&b=x+y", decoded. Parts that do not decode are left out.
[[nodiscard]] Parameters parse_form(std::string_view text);

} // namespace kb::registry
