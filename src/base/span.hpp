// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace kb {

/// A place in a text file. Lines and columns count from 1, columns in code points; the end is one
/// past the last column. line 0 means "the file as a whole".
struct Span {
    std::string file{};
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t end_line = 0;
    std::uint32_t end_column = 0;

    auto operator<=>(const Span&) const = default;
};

/// Where a text came from: `name` is what messages print (a path as the user wrote it).
struct Origin {
    std::string name{};
};

} // namespace kb
