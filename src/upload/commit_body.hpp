// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hub/messages.hpp"
#include "sys/file_system.hpp"
#include "upload/hub_client.hpp"
#include "upload/upload_plan.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace kb::upload {

/// How each file of a branch travels.
using UploadModes = std::map<RelPath, hub::UploadMode>;

/// Above this a file goes through LFS whatever the server says: inline it would be held in memory
/// and grow by a third.
inline constexpr std::uint64_t kMaxInline = 10UL << 20U;

/// Asks for the files that `modes` does not know yet, as files of `revision`. An empty file is
/// always regular. A file that the repository's ignore rules would drop is an error: the variant
/// would arrive incomplete.
[[nodiscard]] Result<void> ask_modes(const HubClient& hub,
                                     const std::string& revision,
                                     const BranchPlan& plan,
                                     UploadModes& modes);

/// Content of a file that is to travel inline; `corrupt` when it is not what was hashed.
[[nodiscard]] Result<std::string> read_checked(sys::FileSystem& fs, const LocalFile& file);

/// Fills in the git id of `file` from its content.
[[nodiscard]] Result<void> identify(sys::FileSystem& fs, LocalFile& file);

/// The distinct contents of `plan` that travel through LFS.
[[nodiscard]] std::vector<LocalFile> lfs_blobs(const BranchPlan& plan, const UploadModes& modes);

/// The whole commit stream: header with the parent, deletes, then adds. The git ids of files that
/// travel inline are filled in, since their content is at hand.
[[nodiscard]] Result<std::string> make_commit_body(sys::FileSystem& fs,
                                                   const hub::CommitHeader& header,
                                                   BranchPlan& plan,
                                                   const UploadModes& modes);

} // namespace kb::upload
