// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kb::plan {

enum class IncludeForm : std::uint8_t { quoted, angled, computed };

/// One #include directive. `path` is the text between the delimiters, or the macro.
struct Include {
    std::string path{};
    IncludeForm form = IncludeForm::quoted;

    auto operator<=>(const Include&) const = default;
};

/// A file that lies in the sandbox's source tree, with what its text says about its needs.
struct SourceFile {
    RelPath path = RelPath::literal("unnamed");
    digest::Digest sha256{};
    /// Sorted, without doubles; whatever the preprocessor's conditions.
    std::vector<Include> includes{};
    /// Its text names TORCH_EXTENSION_NAME or TVM_FFI_EXTENSION_NAME.
    bool names_ops = false;
    /// Made by `generate`, not by the author: no part of the ops id.
    bool generated = false;

    bool operator==(const SourceFile&) const = default;
};

/// A file of the Python package; `path` is relative to the package.
struct PackageFile {
    RelPath path = RelPath::literal("unnamed");
    digest::Digest sha256{};

    auto operator<=>(const PackageFile&) const = default;
};

/// What the project held when it was read. The order of the lists does not matter to plan::make.
struct SourceSnapshot {
    /// Every declared source that exists, and generated headers (registration.h).
    std::vector<SourceFile> files{};
    std::vector<PackageFile> package{};

    bool operator==(const SourceSnapshot&) const = default;
};

/// Digest and needs of one file. Comments and string literals are not taken for directives.
[[nodiscard]] SourceFile scan_source(const RelPath& path, std::string_view text);

} // namespace kb::plan
