// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "config/config.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::generate {

struct CardInput {
    const config::Config& config;
    /// Text of CARD.md, a template, and what messages call it.
    std::string_view card{};
    std::string card_name{};
    /// Text of the package's __init__.py; "" when there is none.
    std::string_view package_init{};
    /// Text of the package's layers/__init__.py or layers.py; "" when there is none.
    std::string_view layers{};
    /// benchmarks/benchmark.py exists.
    bool has_benchmark = false;
};

/// The text for people on the registry's page. Reports a mistake in the template
/// ("template-syntax") and a build.toml without general.hub.repo-id ("missing-repo-id").
[[nodiscard]] std::optional<std::string> render_card(const CardInput& input,
                                                     Diagnostics& diagnostics);

/// String literals of the first list that the module assigns to `__all__`; empty without one.
[[nodiscard]] std::vector<std::string> exported_names(std::string_view python);
/// Names of the classes at the top level of the module, in order.
[[nodiscard]] std::vector<std::string> top_level_classes(std::string_view python);

} // namespace kb::generate
