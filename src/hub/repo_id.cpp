// SPDX-License-Identifier: Apache-2.0
#include "hub/repo_id.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::hub {

namespace {

constexpr std::size_t kMaxRepoId = 96;

struct TypeNames {
    RepoType type{};
    std::string_view plural{};
    std::string_view singular{};
};

constexpr std::array kTypeNames{TypeNames{RepoType::models, "models", "model"},
                                TypeNames{RepoType::datasets, "datasets", "dataset"},
                                TypeNames{RepoType::spaces, "spaces", "space"},
                                TypeNames{RepoType::kernels, "kernels", "kernel"}};

bool is_repo_char(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

Error bad_name(std::string_view name, std::string_view why) {
    return {.code = ErrorCode::corrupt,
            .message = fmt::format(
                "'{}' is not a repository name: {}", escape_control(name.substr(0, 120)), why)};
}

} // namespace

std::string_view plural(RepoType type) {
    return std::ranges::find(kTypeNames, type, &TypeNames::type)->plural;
}

std::string_view singular(RepoType type) {
    return std::ranges::find(kTypeNames, type, &TypeNames::type)->singular;
}

std::optional<RepoType> parse_repo_type(std::string_view text) {
    for (const TypeNames& row : kTypeNames) {
        if (text == row.plural || text == row.singular) {
            return row.type;
        }
    }
    return std::nullopt;
}

Result<void> check_repo_part(std::string_view part) {
    if (part.empty() || part.size() > kMaxRepoId) {
        return bad_name(part, "it must have 1 to 96 characters");
    }
    if (!std::ranges::all_of(part, is_repo_char)) {
        return bad_name(part, "only letters, digits, '-', '_' and '.' are allowed");
    }
    const auto is_edge = [](char c) {
        return c == '-' || c == '.';
    };
    if (is_edge(part.front()) || is_edge(part.back())) {
        return bad_name(part, "it must not begin or end with '-' or '.'");
    }
    if (part.find("--") != std::string_view::npos || part.find("..") != std::string_view::npos) {
        return bad_name(part, "'--' and '..' are not allowed");
    }
    if (part.ends_with(".git") || part.ends_with(".ipynb")) {
        return bad_name(part, "it must not end with '.git' or '.ipynb'");
    }
    return {};
}

Result<RepoId> RepoId::parse(RepoType type, std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return bad_name(text, "write it as 'owner/name'");
    }
    if (text.size() > kMaxRepoId) {
        return bad_name(text, "'owner/name' must have at most 96 characters");
    }
    const std::string_view owner = text.substr(0, slash);
    const std::string_view name = text.substr(slash + 1);
    KB_TRY(check_repo_part(owner));
    KB_TRY(check_repo_part(name));
    return RepoId{type, std::string{owner}, std::string{name}};
}

std::string RepoId::api_path() const {
    return fmt::format("/api/{}/{}/{}", plural(type_), owner_, name_);
}

std::string RepoId::web_path() const {
    return type_ == RepoType::models ? fmt::format("/{}/{}", owner_, name_)
                                     : fmt::format("/{}/{}/{}", plural(type_), owner_, name_);
}

} // namespace kb::hub
