// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/byte_reader.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::binfmt {

/// A text somewhere in a file that reads as a path.
struct PathText {
    /// Of its first byte in the file.
    std::uint64_t offset = 0;
    /// At most kMaxPathText bytes of it, but always all that it had to begin with. Ends before
    /// a space, punctuation or bytes that are no UTF-8.
    std::string text{};

    bool operator==(const PathText&) const = default;
};

inline constexpr std::size_t kMaxPathText = 256;

struct PathSearch {
    /// What a path begins with: "/home/", or "/srv/my k" for it and all that lies below, but not
    /// "/srv/my kernel". One in the middle of a longer path ("x/home/y") does not count. All have
    /// two bytes at least and begin with the same.
    std::span<const std::string> beginnings{};
    /// Where in the file paths may begin.
    Range range{};
    /// The search ends after so many.
    std::size_t limit = 1000;
};

/// All bytes of the range, code and debug information included, block by block: memory does not
/// grow with the file. In the order of the file; the same text may occur more than once.
[[nodiscard]] Result<std::vector<PathText>> find_path_texts(const ByteSource& source,
                                                            const PathSearch& search);

} // namespace kb::binfmt
