// SPDX-License-Identifier: Apache-2.0
#include "build/work_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::build {

namespace {

/// Strongest first.
constexpr std::array<std::string_view, 4> kLevels{"namespaces", "chroot", "landlock", "plain"};

std::ptrdiff_t weakness(std::string_view level) {
    return std::ranges::find(kLevels, level) - kLevels.begin();
}

std::optional<WorkItem> judge(const plan::PlannedVariant& variant,
                              const VariantState* state,
                              std::string_view level,
                              Sources sources) {
    const std::string name = variant.name.text();
    if (state == nullptr || !state->record) {
        return WorkItem{.variant = name, .reason = "never built here"};
    }
    const Record& record = *state->record;
    if (record.outcome != Outcome::built) {
        return WorkItem{.variant = name,
                        .reason =
                            fmt::format("the last build ended with '{}'", to_text(record.outcome))};
    }
    if (record.key.digest() != variant.key.lines.digest()) {
        return WorkItem{.variant = name,
                        .reason = "what it is built from changed",
                        .difference = difference(record.key, variant.key.lines)};
    }
    if (weakness(record.sandbox) > weakness(level)) {
        return WorkItem{.variant = name,
                        .reason =
                            fmt::format("it was built at sandbox level '{}'", record.sandbox)};
    }
    if (state->package != PackageState::sound) {
        return WorkItem{.variant = name,
                        .reason = state->package == PackageState::missing
                                      ? "its package is missing"
                                      : "its package was changed after the build"};
    }
    if (!state->has_statement) {
        return WorkItem{.variant = name, .reason = "its statement is missing"};
    }
    if (state->is_dirty && sources == Sources::committed) {
        return WorkItem{.variant = name,
                        .reason = "it says that its sources are not committed, which they are now"};
    }
    return std::nullopt;
}

} // namespace

WorkList select_work(const plan::Plan& plan,
                     std::span<const VariantState> states,
                     std::string_view level,
                     Sources sources) {
    WorkList work;
    for (const plan::PlannedVariant& variant : plan.variants) {
        const auto found = std::ranges::find(states, variant.name.text(), &VariantState::variant);
        const VariantState* state = found == states.end() ? nullptr : &*found;
        if (auto item = judge(variant, state, level, sources)) {
            work.stale.push_back(std::move(*item));
        } else {
            work.fresh.push_back(variant.name.text());
        }
    }
    return work;
}

} // namespace kb::build
