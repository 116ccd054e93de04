// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kb::digest {

/// Sorted `key value` lines: a name that a person can read and diff. Keys hold no white space; a
/// value is one line (control characters are escaped). Equal content gives equal bytes whatever the
/// order of set().
class KeyFile {
public:
    /// A key is set once; twice is our bug.
    void set(std::string_view key, std::string_view value) { set("", key, value); }

    /// The key is `group` and `key` together: "requires:" and an id.
    void set(std::string_view group, std::string_view key, std::string_view value);
    /// Room for that many bytes and lines; kept when another file is assigned.
    void reserve(std::size_t bytes, std::size_t lines);
    [[nodiscard]] std::string to_text() const;
    [[nodiscard]] Digest digest() const;

    [[nodiscard]] std::map<std::string, std::string> lines() const;

    /// Reads what to_text() wrote.
    [[nodiscard]] static Result<KeyFile> parse(std::string_view text);

private:
    /// A line of text_ without its end.
    struct Line {
        std::uint32_t begin = 0;
        std::uint32_t key_size = 0;
        std::uint32_t size = 0;
    };

    [[nodiscard]] std::string_view key_of(const Line& line) const;
    [[nodiscard]] std::vector<Line> sorted() const;

    // One buffer in the order of set(): plans make thousands of these and ask few for their text.
    std::string text_{};
    std::vector<Line> lines_{};
};

/// The lines that differ, for --explain: "- key old" and "+ key new".
[[nodiscard]] std::string difference(const KeyFile& before, const KeyFile& after);

} // namespace kb::digest
