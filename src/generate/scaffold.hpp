// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.hpp"
#include "base/diagnostics.hpp"
#include "base/file_image.hpp"
#include "config/config.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::generate {

/// Spelt as the framework tables of build.toml.
enum class ScaffoldFramework : std::uint8_t { torch, torch_noarch, tvm_ffi };

[[nodiscard]] std::string_view to_text(ScaffoldFramework framework);
[[nodiscard]] std::optional<ScaffoldFramework> parse_scaffold_framework(std::string_view text);
/// Backends that `init` can write a kernel for, in the order of the format.
[[nodiscard]] std::span<const backend::BackendId> scaffold_backends(ScaffoldFramework framework);

/// What a new kernel is called.
struct ScaffoldName {
    config::KernelName name{};
    /// "OWNER/REPO" as given; nothing when only a directory was named.
    std::optional<std::string> repo_id{};
};

/// From `--name OWNER/REPO`, else from the last part of `directory`. Upper case and '_' of the
/// repository become lower case and '-' in the kernel's name. Reports "bad-kernel-name" and
/// "bad-repo-id".
[[nodiscard]] std::optional<ScaffoldName> scaffold_name(std::optional<std::string_view> option,
                                                        std::string_view directory,
                                                        Diagnostics& diagnostics);

struct ScaffoldInput {
    ScaffoldName name{};
    ScaffoldFramework framework = ScaffoldFramework::torch;
    /// Any order; at least one.
    std::vector<backend::BackendId> backends{};
    std::string license = "Apache-2.0";
};

/// A project that builds and whose tests pass, sorted by path. A backend that has no scaffold is
/// reported ("backend-without-scaffold").
[[nodiscard]] std::optional<std::vector<FileImage>> scaffold(const ScaffoldInput& input,
                                                             Diagnostics& diagnostics);

} // namespace kb::generate
