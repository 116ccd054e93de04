// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/unpack.hpp"
#include "toolchain/toolchain.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::toolchain {

/// A source of pinned files. A row of the table.
struct Provider {
    std::string_view name{};
    /// How messages call where its files come from: "pip".
    std::string_view source{};
    /// Requirements of this kind that it can pin at all; else the reason why not.
    std::string (*refusal)(const backend::Requirement& requirement) = nullptr;
    /// Candidates for a requirement on a platform, best first in each group: the entries of a lock.
    Result<std::vector<plan::LockEntry>> (*resolve)(const backend::Requirement& requirement,
                                                    const backend::Platform& platform,
                                                    const Machine& machine,
                                                    const FetchOptions& options) = nullptr;
    /// Gets the files of the entries into `directory`, under their own names. Nothing is verified
    /// here.
    Result<void> (*download)(std::span<const plan::LockEntry> entries,
                             const sys::Path& directory,
                             const Machine& machine,
                             const FetchOptions& options) = nullptr;
    /// Of a file, by its name.
    store::ArchiveKind (*archive)(std::string_view file) = nullptr;
    /// What of the archive goes into the tree, and under which names.
    store::UnpackRules (*rules)(const backend::Requirement& requirement) = nullptr;
    /// False: nothing is fetched, the program brings its data (stub).
    bool has_files = true;
};

[[nodiscard]] std::span<const Provider> providers();
/// The row of a requirement; `unsupported` with the reason when none can serve it.
[[nodiscard]] Result<const Provider*> provider_of(const backend::Requirement& requirement);

// The rows, each in the file of its name.
[[nodiscard]] Provider wheel_provider();
[[nodiscard]] Provider deb_provider();
[[nodiscard]] Provider conda_provider();
[[nodiscard]] Provider archive_provider();
[[nodiscard]] Provider git_provider();
[[nodiscard]] Provider host_provider();
[[nodiscard]] Provider stub_provider();

/// Runs a package program of the user with the user's environment; its last error line becomes the
/// message.
Result<sys::ProcessResult>
run_tool(const Machine& machine, std::vector<std::string> argv, const sys::Path& working_directory);

} // namespace kb::toolchain
