// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"
#include "package/verify.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Any text: no crash; what is read and written reads back and writes the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    auto metadata = kb::package::parse_metadata(text);
    if (!metadata) {
        KB_ASSERT(!metadata.error().message.empty(), "a refusal has a reason");
        return 0;
    }
    const std::string written = kb::package::write_metadata(*metadata);
    const auto again = kb::package::parse_metadata(written);
    KB_ASSERT(again.has_value(), "what we write can be read");
    KB_ASSERT(kb::package::write_metadata(*again) == written, "writing has a fixed point");
    const kb::package::Package package{.variant = "torch-cuda", .metadata = std::move(*metadata)};
    KB_ASSERT(!kb::package::verify(package).empty(), "an empty directory is no package");
    return 0;
}
