// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/unpack.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kb::store::test {

enum class What : std::uint8_t { file, executable, symlink, hardlink, directory, fifo };

struct Item {
    What what = What::file;
    std::string path{};
    std::string content{}; ///< Or the target of a link.
};

/// Writes an archive for tests; it refuses nothing, so that unpack() has something to refuse.
void write_archive(const std::filesystem::path& path,
                   ArchiveKind kind,
                   const std::vector<Item>& items);

} // namespace kb::store::test
