// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rel_path.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kb {

enum class FileMode : std::uint8_t { regular, executable };

/// A file that is still a value: what pure modules emit and `project` writes.
struct FileImage {
    RelPath path = RelPath::literal("unnamed");
    std::string content{};
    FileMode mode = FileMode::regular;

    bool operator==(const FileImage&) const = default;
};

/// A file compiled into the binary (cmake/KbEmbed.cmake); `path` is relative to the embedded
/// folder.
struct EmbeddedFile {
    std::string_view path{};
    std::string_view content{};
};

} // namespace kb
