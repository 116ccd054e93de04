// SPDX-License-Identifier: Apache-2.0
#include "backend/rules.hpp"
#include "plan/plan.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

namespace kb::plan {

namespace {

const config::Strings* requested_archs(const config::Section& section) {
    const auto& list =
        section.backend.value == BackendId::rocm ? section.rocm_archs : section.cuda_capabilities;
    return list ? &*list : nullptr;
}

Span place_of(const config::Section& section, std::string_view arch) {
    if (const config::Strings* list = requested_archs(section)) {
        for (const auto& item : *list) {
            if (item.value == arch) {
                return item.span;
            }
        }
    }
    return section.span;
}

/// Variants with one toolkit say the same thing: it is said once.
using Said = std::set<std::pair<Span, std::string>>;

void report_section(const config::Section& section,
                    const SectionArchs& archs,
                    const std::string& toolkit,
                    Said& said,
                    Diagnostics& diagnostics) {
    const bool asks = !backend::rules_of(section.backend.value).archs_key.empty();
    if (archs.skipped || !asks) {
        return;
    }
    if (archs.choice.kept.empty()) {
        const bool rocm = section.backend.value == BackendId::rocm;
        std::vector<std::string> notes;
        for (const auto& refused : archs.choice.refused) {
            notes.push_back(fmt::format("'{}': {}", refused.arch, refused.reason));
        }
        if (said.emplace(section.span, toolkit).second) {
            diagnostics.error("no-architecture",
                              section.span,
                              fmt::format("section '{}' has no architecture left for {}: empty "
                                          "set of {}",
                                          section.id.value,
                                          toolkit,
                                          rocm ? "architectures" : "capabilities"),
                              std::move(notes));
        }
        return;
    }
    for (const auto& refused : archs.choice.refused) {
        const Span place = place_of(section, refused.arch);
        if (said.emplace(place, toolkit + refused.arch).second) {
            diagnostics.warning("refused-architecture",
                                place,
                                fmt::format("'{}' is left out of the variants for {}: {}",
                                            refused.arch,
                                            toolkit,
                                            refused.reason));
        }
    }
}

} // namespace

void report_architectures(const config::Config& config,
                          const VariantChoice& choice,
                          Diagnostics& diagnostics) {
    Said said;
    std::set<std::pair<BackendId, Version>> seen;
    for (const ChosenVariant& chosen : choice.chosen) {
        const Variant& variant = chosen.name.variant();
        if (!seen.emplace(variant.backend, variant.backend_version).second) {
            continue;
        }
        const std::string toolkit = fmt::format(
            "{} {}", backend::rules_of(variant.backend).title, variant.backend_version.to_text());
        const auto sections = config::sections_of(config, variant.backend);
        bool all_skipped = !chosen.sections.empty();
        for (std::size_t i = 0; i < chosen.sections.size(); ++i) {
            report_section(*sections[i], chosen.sections[i], toolkit, said, diagnostics);
            all_skipped = all_skipped && chosen.sections[i].skipped;
        }
        if (all_skipped) {
            diagnostics.error(
                "no-section-left",
                sections.front()->span,
                fmt::format("{} is older than the cuda-minver of every section", toolkit));
        }
    }
}

} // namespace kb::plan
