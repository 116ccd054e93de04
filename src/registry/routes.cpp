// SPDX-License-Identifier: Apache-2.0
#include "registry/routes.hpp"

#include "base/text.hpp"
#include "hub/percent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::registry {

namespace {

constexpr std::array kRoutes{
    RouteRow{"GET", Area::root, "search", Right::nothing, Action::index_page},
    RouteRow{"GET", Area::root, "health", Right::nothing, Action::health},
    RouteRow{"GET", Area::root, "api/whoami-v2", Right::identity, Action::whoami},
    RouteRow{"POST", Area::root, "api/validate-yaml", Right::nothing, Action::validate_yaml},
    RouteRow{"POST", Area::root, "api/repos/create", Right::identity, Action::create_repo},
    RouteRow{"DELETE", Area::root, "api/repos/delete", Right::identity, Action::delete_repo},
    RouteRow{"POST", Area::root, "api/repos/move", Right::identity, Action::move_repo},
    RouteRow{"GET",
             Area::root,
             "api/organizations/{owner}/overview",
             Right::nothing,
             Action::owner_overview},
    RouteRow{
        "GET", Area::root, "api/users/{owner}/overview", Right::nothing, Action::owner_overview},
    RouteRow{"PUT", Area::root, "api/lfs/{repo}/{oid}", Right::nothing, Action::put_object},
    RouteRow{"GET", Area::root, "api/lfs/{repo}/{oid}", Right::nothing, Action::get_object},
    RouteRow{
        "PUT", Area::root, "api/lfs/{repo}/{oid}/parts/{number}", Right::nothing, Action::put_part},
    RouteRow{"POST",
             Area::root,
             "api/lfs/{repo}/{oid}/complete",
             Right::nothing,
             Action::complete_object},
    RouteRow{
        "POST", Area::root, "api/lfs/{repo}/{oid}/verify", Right::nothing, Action::verify_object},
    // Their right is the token that xet-write-token gave out.
    RouteRow{
        "POST", Area::root, "api/xet/v1/xorbs/{prefix}/{hash}", Right::nothing, Action::put_xorb},
    RouteRow{"POST", Area::root, "api/xet/v1/shards", Right::nothing, Action::put_shard},
    RouteRow{"GET", Area::root, "api/{type}", Right::nothing, Action::list_repos},

    RouteRow{"GET", Area::api, "", Right::read, Action::repo_info},
    RouteRow{"GET", Area::api, "revision/{rev}", Right::read, Action::repo_info},
    RouteRow{"GET", Area::api, "refs", Right::read, Action::refs},
    RouteRow{"GET", Area::api, "tree/{rev}", Right::read, Action::tree},
    RouteRow{"GET", Area::api, "tree/{rev}/{path...}", Right::read, Action::tree},
    RouteRow{"POST", Area::api, "paths-info/{rev}", Right::read, Action::paths_info},
    RouteRow{"GET", Area::api, "commits/{rev}", Right::read, Action::commits},
    RouteRow{"POST", Area::api, "branch/{name}", Right::write, Action::create_branch},
    RouteRow{"DELETE", Area::api, "branch/{name}", Right::write, Action::delete_branch},
    RouteRow{"POST", Area::api, "tag/{rev}", Right::write, Action::create_tag},
    RouteRow{"DELETE", Area::api, "tag/{rev}", Right::write, Action::delete_tag},
    RouteRow{"POST", Area::api, "preupload/{rev}", Right::write, Action::preupload},
    RouteRow{"POST", Area::api, "commit/{rev}", Right::write, Action::commit},
    RouteRow{"GET", Area::api, "discussions", Right::read, Action::discussions},
    RouteRow{"GET", Area::api, "discussions/{number}", Right::read, Action::discussion},
    RouteRow{"POST", Area::api, "discussions", Right::write, Action::open_discussion},
    RouteRow{"GET", Area::api, "xet-write-token/{rev}", Right::write, Action::xet_write_token},
    RouteRow{"GET", Area::api, "auth-check", Right::read, Action::auth_check},
    RouteRow{"GET", Area::api, "auth-check/write", Right::write, Action::auth_check},
    RouteRow{"PUT", Area::api, "settings", Right::own, Action::settings},

    RouteRow{"POST", Area::web, "info/lfs/objects/batch", Right::read, Action::lfs_batch},
    RouteRow{"POST", Area::web, "info/lfs/objects/verify", Right::write, Action::lfs_verify},
    RouteRow{"GET", Area::web, "resolve/{rev}/{path...}", Right::read, Action::resolve},
    RouteRow{"GET", Area::web, "raw/{rev}/{path...}", Right::read, Action::raw},
    RouteRow{"GET", Area::web, "", Right::read, Action::repo_page},
    RouteRow{"GET", Area::web, "tree/{rev}", Right::read, Action::repo_page},
    RouteRow{"GET", Area::web, "commit/{rev}", Right::read, Action::repo_page},
};

using Parts = std::span<const std::string_view>;

/// "{path...}" -> "path"; empty for a literal.
std::string_view placeholder(std::string_view part) {
    return part.starts_with('{') ? part.substr(1, part.size() - 2) : std::string_view{};
}

/// Joins decoded parts; one of them may itself hold slashes, as some clients encode a whole path.
std::optional<std::string> decode_joined(Parts parts) {
    std::string joined;
    for (const std::string_view part : parts) {
        const Result<std::string> decoded = hub::decode_percent(part);
        if (!decoded) {
            return std::nullopt;
        }
        joined += joined.empty() ? "" : "/";
        joined += *decoded;
    }
    return joined;
}

std::optional<Parameters> match_pattern(std::string_view pattern, Parts parts) {
    const std::vector<std::string_view> wanted =
        pattern.empty() ? std::vector<std::string_view>{} : split(pattern, '/');
    const bool has_rest = !wanted.empty() && wanted.back().ends_with("...}");
    if (has_rest ? parts.size() < wanted.size() : parts.size() != wanted.size()) {
        return std::nullopt;
    }
    Parameters parameters;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::string_view name = placeholder(wanted[i]);
        if (name.empty()) {
            if (wanted[i] != parts[i]) {
                return std::nullopt;
            }
            continue;
        }
        const bool is_rest = has_rest && i + 1 == wanted.size();
        std::optional<std::string> value =
            decode_joined(is_rest ? parts.subspan(i) : parts.subspan(i, 1));
        if (!value || value->empty()) {
            return std::nullopt;
        }
        parameters.emplace_back(is_rest ? name.substr(0, name.size() - 3) : name,
                                std::move(*value));
    }
    return parameters;
}

/// One way to read a path: an area, the repository it names, and what is left.
struct Reading {
    Area area = Area::root;
    std::optional<hub::RepoId> repo{};
    Parts rest{};
};

std::optional<Reading> repo_reading(Area area, hub::RepoType type, Parts parts) {
    if (parts.size() < 2) {
        return std::nullopt;
    }
    std::string_view name = parts[1];
    const Parts rest = parts.subspan(2);
    // Addresses of git and git-lfs end the name in ".git"; no name does.
    if (area == Area::web && name.ends_with(".git")) {
        name.remove_suffix(4);
    }
    const Result<std::string> owner_text = hub::decode_percent(parts[0]);
    const Result<std::string> name_text = hub::decode_percent(name);
    if (!owner_text || !name_text) {
        return std::nullopt;
    }
    Result<hub::RepoId> repo = hub::RepoId::parse(type, *owner_text + "/" + *name_text);
    if (!repo) {
        return std::nullopt;
    }
    return Reading{.area = area, .repo = std::move(repo).value(), .rest = rest};
}

std::vector<Reading> readings(Parts parts) {
    std::vector<Reading> all{{.rest = parts}};
    const auto add = [&all](std::optional<Reading> reading) {
        if (reading) {
            all.push_back(std::move(*reading));
        }
    };
    const auto type_at = [&](std::size_t i) {
        const auto type = i < parts.size() ? hub::parse_repo_type(parts[i]) : std::nullopt;
        return type && hub::plural(*type) == parts[i] ? type : std::nullopt;
    };
    if (parts[0] == "api") {
        if (const auto type = type_at(1)) {
            add(repo_reading(Area::api, *type, parts.subspan(2)));
        }
    } else if (const auto type = type_at(0); type && *type != hub::RepoType::models) {
        add(repo_reading(Area::web, *type, parts.subspan(1)));
    } else {
        add(repo_reading(Area::web, hub::RepoType::models, parts));
    }
    return all;
}

} // namespace

std::span<const RouteRow> routes() {
    return kRoutes;
}

std::string parameter(const Parameters& parameters, std::string_view name) {
    const auto found = std::ranges::find(parameters, name, &Parameters::value_type::first);
    return found == parameters.end() ? std::string{} : found->second;
}

RouteVerdict find_route(std::string_view method, std::string_view path) {
    if (path == "/") {
        path = "/search";
    }
    const std::vector<std::string_view> parts =
        split(path.starts_with('/') ? path.substr(1) : path, '/');
    const std::string_view wanted = method == "HEAD" ? "GET" : method;
    std::vector<std::string> allowed;
    for (const Reading& reading : readings(parts)) {
        for (const RouteRow& row : kRoutes) {
            if (row.area != reading.area) {
                continue;
            }
            std::optional<Parameters> parameters = match_pattern(row.pattern, reading.rest);
            if (!parameters) {
                continue;
            }
            if (row.method == wanted) {
                return RouteMatch{
                    .row = &row, .repo = reading.repo, .parameters = std::move(*parameters)};
            }
            allowed.emplace_back(row.method);
            if (row.method == "GET") {
                allowed.emplace_back("HEAD");
            }
        }
    }
    if (allowed.empty()) {
        return NoRoute{};
    }
    return WrongMethod{.allow = join(allowed, ", ")};
}

Parameters parse_form(std::string_view text) {
    Parameters parameters;
    for (const std::string_view item : split(text, '&')) {
        const std::size_t equals = item.find('=');
        const std::string value =
            equals == std::string_view::npos ? "" : replace_all(item.substr(equals + 1), "+", " ");
        const Result<std::string> name = hub::decode_percent(item.substr(0, equals));
        Result<std::string> decoded = hub::decode_percent(value);
        if (name && decoded && !name->empty()) {
            parameters.emplace_back(*name, std::move(decoded).value());
        }
    }
    return parameters;
}

} // namespace kb::registry
