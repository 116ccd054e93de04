// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "digest/key_file.hpp"

#include <string>
#include <string_view>

namespace kb::plan {

/// The name of everything that decides a variant's package, line by line: a person can read and
/// diff it.
struct BuildKey {
    digest::KeyFile lines{};

    /// 64 hex digits.
    [[nodiscard]] std::string id() const { return lines.digest().hex(); }
};

/// A path or id as a key of a KeyFile: white space, '%' and control characters as %NN.
[[nodiscard]] std::string key_word(std::string_view text);

} // namespace kb::plan
