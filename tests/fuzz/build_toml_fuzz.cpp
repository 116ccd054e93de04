// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"
#include "config/config.hpp"
#include "config/migrate.hpp"
#include "document/toml.hpp"

#include <cstdint>
#include <string_view>

/// Any bytes: no crash; refused means a reason; accepted means that all judgements and the
/// migration hold as well.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    const kb::Origin origin{.name = "build.toml"};
    kb::Diagnostics diagnostics;
    const auto root = kb::document::parse_toml(text, origin, diagnostics);
    const auto config = root ? kb::config::read(*root, diagnostics) : std::nullopt;
    KB_ASSERT(config.has_value() != diagnostics.has_errors(), "a refusal has a reason");
    for (const kb::Diagnostic& item : diagnostics.items()) {
        KB_ASSERT(!to_text(item, text).empty(), "a diagnostic can be printed");
    }
    if (!config) {
        return 0;
    }
    kb::config::validate(*config, {}, diagnostics);
    kb::Diagnostics problems;
    const auto migrated = kb::config::migrate(text, origin, {.license = "mit"}, problems);
    KB_ASSERT(migrated.has_value() != problems.has_errors(), "a refused migration has a reason");
    return 0;
}
