// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kb::hub {

/// Spelt as in URLs; JSON bodies use the singular.
enum class RepoType : std::uint8_t { models, datasets, spaces, kernels };

inline constexpr std::array kRepoTypes{
    RepoType::models, RepoType::datasets, RepoType::spaces, RepoType::kernels};

/// "kernels"
[[nodiscard]] std::string_view plural(RepoType type);
/// "kernel"
[[nodiscard]] std::string_view singular(RepoType type);
/// Either spelling.
[[nodiscard]] std::optional<RepoType> parse_repo_type(std::string_view text);

/// Checks an owner or a repository name alone: 1..96 of [A-Za-z0-9_.-], no '-' or '.' at either
/// end, no "--", no "..", not ending in ".git" or ".ipynb".
[[nodiscard]] Result<void> check_repo_part(std::string_view part);

/// A repository: type, owner and name. The text "owner/name" has at most 96 characters.
class RepoId {
public:
    [[nodiscard]] static Result<RepoId> parse(RepoType type, std::string_view text);

    [[nodiscard]] RepoType type() const { return type_; }

    [[nodiscard]] const std::string& owner() const { return owner_; }

    [[nodiscard]] const std::string& name() const { return name_; }

    /// "owner/name"
    [[nodiscard]] std::string text() const { return owner_ + "/" + name_; }

    /// "/api/kernels/owner/name"
    [[nodiscard]] std::string api_path() const;
    /// Of pages, files and LFS: "/kernels/owner/name", for models "/owner/name".
    [[nodiscard]] std::string web_path() const;

    auto operator<=>(const RepoId&) const = default;

private:
    RepoId(RepoType type, std::string owner, std::string name)
        : type_{type}, owner_{std::move(owner)}, name_{std::move(name)} {}

    RepoType type_;
    std::string owner_;
    std::string name_;
};

} // namespace kb::hub
