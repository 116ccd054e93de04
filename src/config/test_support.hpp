// SPDX-License-Identifier: Apache-2.0
// For the tests of this module only.
#pragma once

#include "config/config.hpp"
#include "document/toml.hpp"
#include "support/catch.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::config::test {

inline std::string all(Diagnostics diagnostics) {
    diagnostics.sort();
    std::string out;
    for (const Diagnostic& item : diagnostics.items()) {
        out += to_text(item);
    }
    return out;
}

inline std::optional<Config> try_read(std::string_view text, Diagnostics& diagnostics) {
    const auto root = document::parse_toml(text, {.name = "build.toml"}, diagnostics);
    return root ? read(*root, diagnostics) : std::nullopt;
}

/// Fails the test unless the text is accepted.
inline Config good(std::string_view text) {
    Diagnostics diagnostics;
    std::optional<Config> config = try_read(text, diagnostics);
    UNSCOPED_INFO(all(diagnostics));
    REQUIRE(config);
    return *std::move(config);
}

/// All that is said about a text that is refused.
inline std::string bad(std::string_view text) {
    Diagnostics diagnostics;
    CHECK_FALSE(try_read(text, diagnostics));
    return all(std::move(diagnostics));
}

inline std::vector<std::string> texts(const Strings& strings) {
    std::vector<std::string> out;
    for (const Located<std::string>& item : strings) {
        out.push_back(item.value);
    }
    return out;
}

} // namespace kb::config::test
