// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "package/verify.hpp"
#include "upload/remote_tree.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kb::upload {

/// Whether a variant that is published with other content may be replaced.
enum class Replace : std::uint8_t { no, yes };
/// A branch that does not exist begins as a copy of main.
enum class BranchState : std::uint8_t { existing, to_create };

/// What one branch shall hold in the places that are ours there.
struct BranchContent {
    std::string branch{};
    /// Sorted by path; each path once.
    std::vector<LocalFile> files{};
    /// Names of the variants: what is said about one goes when it changes, see plan_branch().
    std::vector<std::string> variants{};
    /// Folders that hold exactly `files` afterwards: "build/<variant>".
    std::vector<RelPath> folders{};
    /// benchmarks/benchmark*.py are ours too: this project has a benchmarks folder.
    bool owns_benchmarks = false;
};

/// What goes where: packages to build/<variant>/, what is said about them to provenance/ and
/// benchmarks to the version branch, the card as README.md to main. Bytecode that an import left is
/// left out. One entry when the branch is main. Sorted so that the version branch comes
/// first: a card never describes what is not there yet.
struct UploadInput {
    std::string branch{};
    std::vector<package::Package> packages{};
    std::optional<LocalFile> card{};
    std::vector<LocalFile> benchmarks{};
    /// Below provenance/.
    std::vector<LocalFile> provenance{};
    bool has_benchmarks_folder = false;
};

[[nodiscard]] std::vector<BranchContent> make_contents(const UploadInput& input);

/// Files whose git id decides (the remote entry is no LFS file and has the same size) and is not
/// known yet; indexes into content.files.
[[nodiscard]] std::vector<std::size_t> files_to_identify(const BranchContent& content,
                                                         const RemoteTree& remote);

struct BranchPlan {
    std::string branch{};
    BranchState state = BranchState::existing;
    std::vector<LocalFile> adds{};
    std::vector<RelPath> deletes{};
    std::size_t unchanged = 0;

    [[nodiscard]] bool empty() const { return adds.empty() && deletes.empty(); }
};

struct UploadPlan {
    std::vector<BranchPlan> branches{};
    /// Names of published variants whose content would change, when Replace::no: nothing may be
    /// sent then.
    std::vector<std::string> refused_variants{};

    [[nodiscard]] bool empty() const;
    /// Bytes of the distinct contents to add: what travels at most.
    [[nodiscard]] std::uint64_t bytes() const;
};

/// PURE. Difference of one branch: adds what is missing or different, deletes what lies in our
/// places and is not wanted. A statement, bill or signature that we do not bring, and cached
/// bytecode, go only when their variant changes: they were said of other bytes. On a branch to be
/// created everything below build/ and benchmarks/ that came along from main goes too.
[[nodiscard]] BranchPlan
plan_branch(const BranchContent& content, const RemoteTree& remote, BranchState state);

/// Variants of `content` that exist in `remote` and that the plan would change.
[[nodiscard]] std::vector<std::string> changed_variants(const BranchPlan& plan,
                                                        const RemoteTree& remote);

/// The wanted content as one name, whatever the remote state: keys the journal.
[[nodiscard]] digest::Digest content_digest(std::span<const BranchContent> contents);

/// Paths that differ between two states of a branch, sorted.
[[nodiscard]] std::vector<RelPath> changed_paths(const RemoteTree& before, const RemoteTree& after);

/// Those of `changed` that the plan touches: another publisher and we want the same places.
[[nodiscard]] std::vector<RelPath> contested_paths(const BranchPlan& plan,
                                                   std::span<const RelPath> changed);

} // namespace kb::upload
