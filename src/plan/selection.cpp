// SPDX-License-Identifier: Apache-2.0
#include "plan/selection.hpp"

#include "backend/rules.hpp"
#include "base/text.hpp"
#include "plan/matrix_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace kb::plan {

namespace {

using backend::FrameworkId;

/// Why a row gives no variant.
struct Refusal {
    std::string_view rule{};
    std::string reason{};
};

/// A row on one platform, while it is judged.
struct Candidate {
    const SupportRow* row = nullptr;
    const ToolkitRow* toolkit = nullptr;
    const HostRow* host = nullptr;
    Variant variant{};
};

/// Facts of the config that every row is compared with.
struct Kernel {
    const config::Config& config;
    const SupportMatrix& matrix;
    const Selection& selection;
    MatrixIndex index;
    std::map<BackendId, FrameworkId> frameworks{};
    std::map<std::pair<BackendId, Platform>, Version> header_torch{};
    std::map<const ToolkitRow*, std::vector<SectionArchs>> sections{};
    /// Versions of the rows of the bundle that can be built.
    std::set<Version> bundled_torch{};
    std::set<std::pair<BackendId, Version>> bundled_toolkits{};
};

template <typename T>
bool holds(const std::vector<T>& list, const T& value) {
    return std::ranges::find(list, value) != list.end();
}

bool can_be_had(const MatrixIndex& index, const SupportRow& row) {
    const FrameworkRow* torch = index.torch(row.torch);
    const ToolkitRow* toolkit = index.toolkit(row.backend, row.backend_version);
    return torch != nullptr && torch->unavailable.empty() && toolkit != nullptr &&
           toolkit->unavailable.empty();
}

std::vector<std::string> texts_of(const std::optional<config::Strings>& list) {
    std::vector<std::string> result;
    if (list) {
        for (const auto& item : *list) {
            result.push_back(item.value);
        }
    }
    return result;
}

SectionArchs judge_section(const config::Section& section, const ToolkitRow& toolkit) {
    SectionArchs result{.section = section.id.value};
    if (section.cuda_minver && toolkit.version < section.cuda_minver->value) {
        result.skipped = true;
        return result;
    }
    const backend::BackendRules& rules = backend::rules_of(toolkit.backend);
    const auto requested = texts_of(toolkit.backend == BackendId::rocm ? section.rocm_archs
                                                                       : section.cuda_capabilities);
    result.choice = rules.choose_archs(requested, toolkit.archs);
    return result;
}

const std::vector<SectionArchs>& sections_for(Kernel& kernel, const ToolkitRow& toolkit) {
    const auto [place, added] = kernel.sections.try_emplace(&toolkit);
    if (added) {
        for (const config::Section* section : config::sections_of(kernel.config, toolkit.backend)) {
            place->second.push_back(judge_section(*section, toolkit));
        }
    }
    return place->second;
}

/// The lowest torch version that has the stable ABI and is in the bundle for this backend on this
/// platform, else
/// the lowest that has it at all: the same shim symbols are used whichever it is, and a later
/// version of torch then changes nothing.
Version
header_torch_for(const Kernel& kernel, BackendId id, const Platform& platform, const Version& abi) {
    std::optional<std::pair<bool, Version>> best;
    for (const SupportRow& row : kernel.matrix.rows) {
        if (row.backend != id || row.torch < abi || !holds(row.platforms, platform) ||
            !can_be_had(kernel.index, row)) {
            continue;
        }
        const std::pair<bool, Version> key{!row.in_bundle, row.torch};
        if (!best || key < *best) {
            best = key;
        }
    }
    return best ? best->second : Version{};
}

FrameworkId framework_of(Kernel& kernel, BackendId id) {
    const auto [place, added] = kernel.frameworks.try_emplace(id);
    if (added) {
        // Nothing can be compiled without a section.
        place->second = config::sections_of(kernel.config, id).empty()
                            ? FrameworkId::torch_noarch
                            : config::framework_for(kernel.config, id);
    }
    return place->second;
}

const Version& header_torch(Kernel& kernel, BackendId id, const Platform& platform) {
    const auto [place, added] = kernel.header_torch.try_emplace(std::pair{id, platform});
    if (added) {
        if (const auto abi = config::stable_abi_for(kernel.config, id)) {
            place->second = header_torch_for(kernel, id, platform, abi->major_minor());
        }
    }
    return place->second;
}

Variant variant_of(Kernel& kernel, const SupportRow& row, const Platform& platform) {
    Variant variant{.framework = framework_of(kernel, row.backend),
                    .framework_version = row.torch,
                    .backend = row.backend,
                    .backend_version =
                        row.backend_version.empty() ? Version{} : row.backend_version.major_minor(),
                    .platform = platform};
    if (variant.framework == FrameworkId::torch_stable_abi) {
        const auto abi = config::stable_abi_for(kernel.config, row.backend);
        variant.framework_version = abi ? abi->major_minor() : row.torch;
    } else if (variant.framework == FrameworkId::tvm_ffi) {
        variant.framework_version = row.tvm_ffi.value_or(Version{});
    }
    return variant;
}

std::optional<Refusal> refused_by_bounds(const Kernel& kernel, const Candidate& candidate) {
    const SupportRow& row = *candidate.row;
    const config::Config& config = kernel.config;
    const auto outside = [](const Version& v,
                            const std::optional<Version>& low,
                            const std::optional<Version>& high) {
        return (low && v < *low) || (high && v > *high);
    };
    if (outside(row.backend_version,
                config::min_backend_version(config, row.backend),
                config::max_backend_version(config, row.backend))) {
        return Refusal{"backend-bounds",
                       fmt::format("{} is outside general.{}.minver and maxver",
                                   candidate.toolkit->archs.name,
                                   to_text(row.backend))};
    }
    if (candidate.variant.framework != FrameworkId::tvm_ffi &&
        outside(row.torch, config::min_torch_version(config), config::max_torch_version(config))) {
        return Refusal{
            "torch-bounds",
            fmt::format("torch {} is outside torch.minver and maxver", row.torch.to_text())};
    }
    if (candidate.variant.framework == FrameworkId::torch_stable_abi &&
        row.torch < candidate.variant.framework_version) {
        return Refusal{"stable-abi",
                       fmt::format("torch {} is older than the stable ABI {}",
                                   row.torch.to_text(),
                                   candidate.variant.framework_version.to_text())};
    }
    return std::nullopt;
}

std::optional<Refusal> refused_by_kernel(const Kernel& kernel, const Candidate& candidate) {
    const SupportRow& row = *candidate.row;
    if (candidate.variant.framework == FrameworkId::tvm_ffi && !row.tvm_ffi) {
        return Refusal{"tvm-ffi", "the row builds no tvm-ffi kernels"};
    }
    return refused_by_bounds(kernel, candidate);
}

std::optional<Refusal> refused_by_toolchain(const Kernel& kernel, const Candidate& candidate) {
    const ToolkitRow& toolkit = *candidate.toolkit;
    if (!candidate.host->unavailable.empty()) {
        return Refusal{"no-host", candidate.host->unavailable};
    }
    if (candidate.host->cross && kernel.selection.platforms.empty()) {
        return Refusal{"cross-platform",
                       fmt::format("variants for {0} are compiled on another kind of machine: ask "
                                   "for them by --platform {0}",
                                   to_text(candidate.host->platform))};
    }
    if (!toolkit.unavailable.empty()) {
        return Refusal{"no-toolkit",
                       fmt::format("{}: {}", toolkit.archs.name, toolkit.unavailable)};
    }
    if (!toolkit.platforms.empty() && !holds(toolkit.platforms, candidate.host->platform)) {
        return Refusal{"no-toolkit",
                       fmt::format("{}: nothing is pinned that builds for {}",
                                   toolkit.archs.name,
                                   to_text(candidate.host->platform))};
    }
    if (!toolkit.stable_abi_only.empty() && candidate.variant.framework == FrameworkId::torch) {
        return Refusal{"stable-abi-only",
                       fmt::format("{}: {}", toolkit.archs.name, toolkit.stable_abi_only)};
    }
    const bool tvm = candidate.variant.framework == FrameworkId::tvm_ffi;
    const FrameworkRow* framework = tvm ? kernel.index.tvm_ffi(candidate.variant.framework_version)
                                        : kernel.index.torch(candidate.row->torch);
    if (framework != nullptr && !framework->unavailable.empty()) {
        return Refusal{"no-headers", framework->unavailable};
    }
    const Version compiler = toolkit.host_compiler.value_or(candidate.host->compiler);
    if ((toolkit.host_compiler_min && compiler < *toolkit.host_compiler_min) ||
        (toolkit.host_compiler_max && compiler > *toolkit.host_compiler_max)) {
        return Refusal{"host-compiler",
                       fmt::format("{} accepts g++ {} to {}, the toolchain has {}",
                                   toolkit.archs.name,
                                   toolkit.host_compiler_min.value_or(Version{}).to_text(),
                                   toolkit.host_compiler_max.value_or(Version{}).to_text(),
                                   compiler.to_text())};
    }
    return std::nullopt;
}

/// A condition on the version of one toolkit leaves only variants of toolkits it speaks about.
bool selected_toolkit(const Selection& selection, const Variant& variant) {
    const bool any = selection.cuda.is_any() && selection.rocm.is_any();
    if (any) {
        return true;
    }
    if (variant.backend == BackendId::cuda && !selection.cuda.is_any()) {
        return selection.cuda.contains(variant.backend_version);
    }
    if (variant.backend == BackendId::rocm && !selection.rocm.is_any()) {
        return selection.rocm.contains(variant.backend_version);
    }
    return false;
}

bool selected_archs(const Selection& selection, const std::vector<std::string>& archs) {
    return std::ranges::all_of(
        selection.archs, [&](const std::string& device) { return serves_device(archs, device); });
}

/// Without the conditions on architectures, which need the choice of the sections.
std::optional<Refusal> refused_by_selection(const Selection& selection,
                                            const Variant& variant,
                                            const Version& torch,
                                            const std::string& name) {
    const auto no = [](std::string_view flag) {
        return Refusal{"not-selected", fmt::format("--{} leaves it out", flag)};
    };
    if (!selection.variants.empty() && !holds(selection.variants, name)) {
        return no("variant");
    }
    if (!selection.backends.empty() && !holds(selection.backends, variant.backend)) {
        return no("backend");
    }
    const bool noarch = variant.framework == FrameworkId::torch_noarch;
    if (noarch) {
        return std::nullopt;
    }
    if (!selection.platforms.empty() && !holds(selection.platforms, variant.platform)) {
        return no("platform");
    }
    if (!selection.torch.contains(torch)) {
        return no("torch");
    }
    if (!selected_toolkit(selection, variant)) {
        return no(selection.cuda.is_any() ? "rocm" : "cuda");
    }
    return std::nullopt;
}

/// A row outside the bundle is built when everything that keeps it out was asked for exactly.
std::optional<Refusal>
refused_by_bundle(const Kernel& kernel, const Candidate& candidate, const std::string& name) {
    const Selection& selection = kernel.selection;
    const SupportRow& row = *candidate.row;
    if (row.in_bundle || !selection.bundle_only || holds(selection.variants, name)) {
        return std::nullopt;
    }
    const bool torch_named = selection.torch.names(row.torch);
    const bool toolkit_named =
        (row.backend == BackendId::cuda && selection.cuda.names(row.backend_version)) ||
        (row.backend == BackendId::rocm && selection.rocm.names(row.backend_version));
    const bool torch_ok = torch_named || kernel.bundled_torch.contains(row.torch);
    const bool toolkit_ok =
        toolkit_named || kernel.bundled_toolkits.contains({row.backend, row.backend_version});
    if (torch_ok && toolkit_ok && (torch_named || toolkit_named)) {
        return std::nullopt;
    }
    return Refusal{
        "not-in-bundle",
        "it is not part of the bundle: ask for it by --torch, --cuda, --rocm or --variant"};
}

/// A variant that passed, with what the order and the grouping need.
struct Accepted {
    ChosenVariant chosen{};
    Version row_torch{};
};

std::tuple<int, BackendId, const Version&, const Version&, const Platform&, const Version&>
order_of(const Accepted& accepted) {
    const Variant& variant = accepted.chosen.name.variant();
    constexpr std::array<int, 4> kClass{1, 0, 3, 2}; // torch, stable ABI, noarch, tvm-ffi
    return {kClass[std::to_underlying(variant.framework)],
            variant.backend,
            variant.framework_version,
            variant.backend_version,
            variant.platform,
            accepted.row_torch};
}

class Selector {
public:
    Selector(const config::Config& config, const SupportMatrix& matrix, const Selection& selection)
        : kernel_{.config = config,
                  .matrix = matrix,
                  .selection = selection,
                  .index = MatrixIndex{matrix}} {
        for (const SupportRow& row : matrix.rows) {
            if (row.in_bundle && can_be_had(kernel_.index, row)) {
                kernel_.bundled_torch.insert(row.torch);
                kernel_.bundled_toolkits.emplace(row.backend, row.backend_version);
            }
        }
    }

    VariantChoice run() {
        for (const BackendId id : config::distinct_backends(kernel_.config)) {
            if (framework_of(kernel_, id) == FrameworkId::torch_noarch) {
                judge_noarch(id);
            }
        }
        accepted_.reserve(kernel_.matrix.rows.size());
        std::set<BackendId> listed;
        for (const BackendId id : config::distinct_backends(kernel_.config)) {
            listed.insert(id);
        }
        for (const SupportRow& row : kernel_.matrix.rows) {
            if (listed.contains(row.backend) &&
                framework_of(kernel_, row.backend) != FrameworkId::torch_noarch) {
                judge_row(row);
            }
        }
        sort_accepted();
        keep_newest_of_name();
        if (kernel_.selection.latest) {
            keep_latest();
        }
        VariantChoice choice;
        choice.chosen.reserve(accepted_.size());
        for (Accepted& accepted : accepted_) {
            choice.chosen.push_back(std::move(accepted.chosen));
        }
        std::ranges::sort(refused_);
        refused_.erase(std::unique(refused_.begin(), refused_.end()), refused_.end());
        choice.refused = std::move(refused_);
        return choice;
    }

private:
    void refuse(std::string what, Refusal refusal) {
        refused_.push_back({.what = std::move(what),
                            .rule = std::string{refusal.rule},
                            .reason = std::move(refusal.reason)});
    }

    /// A kernel of Python files only needs no row: it is the same for all of them.
    void judge_noarch(BackendId id) {
        const Variant variant{.framework = FrameworkId::torch_noarch, .backend = id};
        auto name = VariantName::of(variant);
        KB_ASSERT(name.has_value(), "a noarch name is only the backend's");
        const bool python_only =
            std::holds_alternative<config::TorchNoarch>(kernel_.config.framework);
        if (!python_only) {
            refuse(name->text(),
                   {"no-section",
                    fmt::format("build.toml lists '{}' but has no section for it", to_text(id))});
        } else if (auto refusal =
                       refused_by_selection(kernel_.selection, variant, Version{}, name->text())) {
            refuse(name->text(), std::move(*refusal));
        } else if (!selected_toolkit_of_noarch(id)) {
            refuse(name->text(), {"not-selected", "the condition on the toolkit leaves it out"});
        } else {
            accepted_.push_back({.chosen = {.name = std::move(*name)}});
        }
    }

    [[nodiscard]] bool selected_toolkit_of_noarch(BackendId id) const {
        const Selection& selection = kernel_.selection;
        if (selection.cuda.is_any() && selection.rocm.is_any()) {
            return true;
        }
        return (id == BackendId::cuda && !selection.cuda.is_any()) ||
               (id == BackendId::rocm && !selection.rocm.is_any());
    }

    void judge_row(const SupportRow& row) {
        for (const Platform& platform : row.platforms) {
            const Candidate candidate{.row = &row,
                                      .toolkit =
                                          kernel_.index.toolkit(row.backend, row.backend_version),
                                      .host = kernel_.index.host(platform),
                                      .variant = variant_of(kernel_, row, platform)};
            KB_ASSERT(candidate.toolkit != nullptr && candidate.host != nullptr,
                      "the matrix was checked for references");
            judge(candidate);
        }
    }

    void judge(const Candidate& candidate) {
        auto name = VariantName::of(candidate.variant);
        if (!name) {
            refuse(fmt::format("torch {} with {}",
                               candidate.row->torch.to_text(),
                               candidate.toolkit->archs.name),
                   {"no-name", "no name of the format can hold this version"});
            return;
        }
        std::optional<Refusal> refusal = refused_by_kernel(kernel_, candidate);
        if (!refusal) {
            refusal = refused_by_selection(
                kernel_.selection, candidate.variant, candidate.row->torch, name->text());
        }
        if (!refusal) {
            refusal = refused_by_toolchain(kernel_, candidate);
        }
        if (!refusal) {
            refusal = refused_by_bundle(kernel_, candidate, name->text());
        }
        if (refusal) {
            refuse(name->text(), std::move(*refusal));
            return;
        }
        accept(candidate, std::move(*name));
    }

    void accept(const Candidate& candidate, VariantName name) {
        const FrameworkId framework = candidate.variant.framework;
        Accepted accepted{.chosen = {.name = std::move(name),
                                     .torch = candidate.row->torch,
                                     .sections = sections_for(kernel_, *candidate.toolkit)},
                          .row_torch = candidate.row->torch};
        if (framework == FrameworkId::tvm_ffi) {
            accepted.chosen.torch = Version{};
        } else if (framework == FrameworkId::torch_stable_abi) {
            accepted.chosen.torch =
                header_torch(kernel_, candidate.variant.backend, candidate.variant.platform);
        }
        if (!kernel_.selection.archs.empty() &&
            !selected_archs(kernel_.selection, accepted.chosen.archs())) {
            refuse(accepted.chosen.name.text(), {"not-selected", "--arch leaves it out"});
            return;
        }
        accepted_.push_back(std::move(accepted));
    }

    /// Matrices are written in order; else by pointer, since a variant is dear to move.
    void sort_accepted() {
        const auto before = [](const Accepted& a, const Accepted& b) {
            return order_of(a) < order_of(b);
        };
        if (std::ranges::is_sorted(accepted_, before)) {
            return;
        }
        std::vector<Accepted*> order;
        order.reserve(accepted_.size());
        for (Accepted& accepted : accepted_) {
            order.push_back(&accepted);
        }
        std::ranges::sort(order,
                          [&](const Accepted* a, const Accepted* b) { return before(*a, *b); });
        std::vector<Accepted> sorted;
        sorted.reserve(order.size());
        for (Accepted* accepted : order) {
            sorted.push_back(std::move(*accepted));
        }
        accepted_ = std::move(sorted);
    }

    /// Rows with one name (stable ABI) are sorted by torch: the last one stands for all.
    void keep_newest_of_name() {
        std::vector<Accepted> kept;
        kept.reserve(accepted_.size());
        for (Accepted& accepted : accepted_) {
            if (!kept.empty() && kept.back().chosen.name == accepted.chosen.name) {
                refuse(accepted.chosen.name.text(),
                       {"same-variant",
                        fmt::format("the row of torch {} makes the same variant as that of {}",
                                    kept.back().row_torch.to_text(),
                                    accepted.row_torch.to_text())});
                kept.back() = std::move(accepted);
            } else {
                kept.push_back(std::move(accepted));
            }
        }
        accepted_ = std::move(kept);
    }

    void keep_latest() {
        std::map<std::pair<BackendId, Platform>, Version> newest;
        for (const Accepted& accepted : accepted_) {
            const Variant& variant = accepted.chosen.name.variant();
            Version& version = newest[{variant.backend, variant.platform}];
            version = std::max(version, accepted.row_torch);
        }
        std::erase_if(accepted_, [&](const Accepted& accepted) {
            const Variant& variant = accepted.chosen.name.variant();
            const Version& version = newest[{variant.backend, variant.platform}];
            if (accepted.row_torch == version) {
                return false;
            }
            refuse(accepted.chosen.name.text(),
                   {"not-selected",
                    fmt::format("--latest takes torch {} instead", version.to_text())});
            return true;
        });
    }

    Kernel kernel_;
    std::vector<Accepted> accepted_;
    std::vector<RefusedVariant> refused_;
};

} // namespace

std::vector<std::string> ChosenVariant::archs() const {
    std::vector<std::string> all;
    for (const SectionArchs& section : sections) {
        all.insert(all.end(), section.choice.kept.begin(), section.choice.kept.end());
    }
    std::ranges::sort(all, natural_less);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

VariantChoice
select(const config::Config& config, const SupportMatrix& matrix, const Selection& selection) {
    return Selector{config, matrix, selection}.run();
}

} // namespace kb::plan
