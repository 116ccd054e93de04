// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kb::check {

/// A line of a source that ties it to one torch version.
struct UnstableUse {
    std::size_t line = 0; ///< 1-based.
    enum class Kind : std::uint8_t { header, name } kind = Kind::name;
    /// "torch/extension.h", "at::empty_like".
    std::string what{};
    /// What the stable ABI has instead; empty when nothing is known.
    std::string replacement{};

    bool operator==(const UnstableUse&) const = default;
};

/// Includes of torch's unstable headers and names of its unstable namespaces in the text of a C++
/// or CUDA source, in its order; a name once a line. Comments and string literals are left out;
/// what macros and 'using namespace' hide is not seen.
[[nodiscard]] std::vector<UnstableUse> find_unstable_uses(std::string_view text);

} // namespace kb::check
