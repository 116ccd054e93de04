// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "digest/digest.hpp"

#include <map>
#include <string>
#include <string_view>

namespace kb::digest {

/// Sorted `key value` lines: a name that a person can read and diff. Keys hold no white space; a
/// value is one line (control characters are escaped). Equal content gives equal bytes whatever the
/// order of set().
class KeyFile {
public:
    /// A key is set once; twice is our bug.
    void set(std::string key, std::string_view value);
    [[nodiscard]] std::string to_text() const;
    [[nodiscard]] Digest digest() const;

    [[nodiscard]] const std::map<std::string, std::string>& lines() const { return lines_; }

    /// Reads what to_text() wrote.
    [[nodiscard]] static Result<KeyFile> parse(std::string_view text);

private:
    std::map<std::string, std::string> lines_;
};

/// The lines that differ, for --explain: "- key old" and "+ key new".
[[nodiscard]] std::string difference(const KeyFile& before, const KeyFile& after);

} // namespace kb::digest
