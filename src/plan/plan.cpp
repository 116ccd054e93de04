// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "plan/command.hpp"
#include "plan/tu_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::plan {

namespace {

using backend::FrameworkId;

/// Group of the build key's lines that name a requirement.
constexpr std::string_view kRequires = "requires:";

/// Without objects and output, which other lines of the key name.
std::string link_flags(const Link& link) {
    std::string text;
    text.reserve(512);
    for (const std::string_view word : link.command) {
        if (!word.starts_with("tu/") && word != link.output) {
            text += text.empty() ? "" : " ";
            text += word;
        }
    }
    return text;
}

/// What concerns whole variants; TUs and the mistakes in their sources are the builder's.
class Planner {
public:
    Planner(const PlanInput& input, Diagnostics& diagnostics)
        : input_{input}, diagnostics_{diagnostics}, builder_{input, diagnostics} {}

    std::optional<Plan> run();

private:
    /// What all variants of a backend and framework are linked with, by link name.
    struct Libraries {
        std::vector<std::string> needed{};
        std::vector<std::string> if_used{};
        /// File names of both.
        Words promised{};
    };

    void report_nothing_selected(const VariantChoice& choice);
    PlannedVariant plan_variant(ChosenVariant chosen);
    void add_promises(PlannedVariant& variant, const HostRow& host);
    void add_link(PlannedVariant& variant, const HostRow& host);
    void add_key(PlannedVariant& variant);
    [[nodiscard]] const digest::KeyFile& common_key(BackendId backend, const std::string& ops_id);
    void add_source_lines(digest::KeyFile& key);
    void add_metadata_lines(digest::KeyFile& key);
    void add_dependency_lines(digest::KeyFile& key, BackendId backend);
    void add_requirements();
    [[nodiscard]] const Libraries& libraries_for(const Variant& what);

    const PlanInput& input_;
    Diagnostics& diagnostics_;
    TuBuilder builder_;
    Plan plan_;
    std::map<BackendId, std::string> ops_ids_;
    std::map<std::pair<BackendId, FrameworkId>, Libraries> libraries_;
    /// TUs of the variant at hand, in link order.
    std::vector<const Tu*> tus_;
    /// Requirements of all variants; true: the lock does not hold it.
    std::map<const Pinned*, bool> needed_;
    Pins pins_;
    /// Lines of the build key that all variants of a backend share.
    std::map<BackendId, digest::KeyFile> common_keys_;
};

void Planner::report_nothing_selected(const VariantChoice& choice) {
    for (const std::string& name : input_.selection.variants) {
        const auto refused = std::ranges::find_if(choice.refused, [&](const RefusedVariant& r) {
            return r.what == name && r.rule != "not-selected";
        });
        if (refused != choice.refused.end()) {
            diagnostics_.error("nothing-selected",
                               input_.config.span,
                               fmt::format("'{}' cannot be built: {}", name, refused->reason));
            return;
        }
    }
    std::vector<std::string> notes{"'kernel-builder list-variants --explain' lists every row that "
                                   "was left out, with the reason"};
    std::string message = "no variant of this kernel matches the selection";
    if (input_.selection.variants.size() == 1) {
        const std::string& name = input_.selection.variants.front();
        message = fmt::format("this kernel has no variant '{}'", name);
        Selection all;
        const VariantChoice others = select(input_.config, input_.matrix, all);
        std::vector<std::string_view> names;
        for (const ChosenVariant& chosen : others.chosen) {
            names.push_back(chosen.name.text());
        }
        auto near = suggestion_note(name, names);
        notes.insert(notes.begin(), near.begin(), near.end());
    }
    diagnostics_.error("nothing-selected", input_.config.span, std::move(message), notes);
}

const Planner::Libraries& Planner::libraries_for(const Variant& what) {
    const auto [place, added] = libraries_.try_emplace(std::pair{what.backend, what.framework});
    Libraries& libraries = place->second;
    if (!added) {
        return libraries;
    }
    const backend::BackendRules& rules = backend::rules_of(what.backend);
    if (what.framework == FrameworkId::tvm_ffi) {
        libraries.needed = {"tvm_ffi"};
    } else {
        libraries.needed = rules.torch_libraries(what.framework == FrameworkId::torch_stable_abi
                                                     ? backend::TorchBinding::stable
                                                     : backend::TorchBinding::versioned);
    }
    libraries.if_used.assign(rules.runtime_libraries.begin(), rules.runtime_libraries.end());
    for (const auto* names : {&libraries.needed, &libraries.if_used}) {
        for (const std::string& name : *names) {
            libraries.promised.add("lib" + name, ".so");
        }
    }
    return libraries;
}

void Planner::add_promises(PlannedVariant& variant, const HostRow& host) {
    const Variant& what = variant.name.variant();
    const backend::BackendRules& rules = backend::rules_of(what.backend);
    Promises& promises = variant.promises;
    promises.device_code = rules.device_code;
    promises.libc_policy = host.libc_policy;
    promises.libraries = libraries_for(what).promised;
    if (what.framework != FrameworkId::tvm_ffi) {
        const bool stable = what.framework == FrameworkId::torch_stable_abi;
        promises.python_abi = input_.matrix.python_abi;
        (stable ? promises.torch_stable_abi : promises.torch) = what.framework_version;
    }
}

void Planner::add_link(PlannedVariant& variant, const HostRow& host) {
    const Variant& what = variant.name.variant();
    const Libraries& libraries = libraries_for(what);
    LinkRequest request{.cxx = host.cxx,
                        .library_dirs = {std::string{backend::kStubsMount}},
                        .needed = libraries.needed,
                        .libraries = libraries.if_used};
    const bool tvm = what.framework == FrameworkId::tvm_ffi;
    if (tvm) {
        request.library_dirs.push_back(backend::tvm_ffi_mount(what.framework_version) + "/stubs");
    } else {
        request.library_dirs.push_back(backend::torch_mount(variant.torch) + "/stubs");
    }
    if (what.backend == BackendId::cuda) {
        request.library_dirs.push_back(backend::cuda_mount(what.backend_version) + "/lib");
    } else if (what.backend == BackendId::rocm) {
        request.library_dirs.push_back(backend::rocm_mount(what.backend_version) + "/stubs");
    }
    request.objects.reserve(tus_.size());
    for (const Tu* tu : tus_) {
        request.objects.push_back(tu->object);
        variant.tus.add(tu->id);
    }
    request.output = std::string{"link/"}
                         .append(variant.name.text())
                         .append("/")
                         .append(variant.ops_id)
                         .append(tvm ? ".so" : ".abi3.so");
    const Words command = link_command(request);
    variant.link.command = command; // a copy has no spare room
    variant.link.output = std::move(request.output);
}

/// One line a file that the variant's TUs read, so that --explain can say which one changed.
void Planner::add_source_lines(digest::KeyFile& key) {
    for (const Tu* tu : tus_) {
        key.set("tu:", key_word(tu->source.text()), tu->id);
    }
}

/// What goes into metadata.json and no library.
void Planner::add_metadata_lines(digest::KeyFile& key) {
    const config::Config& config = input_.config;
    key.set("name", config.name.text());
    key.set("version", fmt::format("{}", config.version.value));
    key.set("license", config.license.value);
    key.set("upstream", config.upstream ? config.upstream->value.text() : "");
    key.set("source", config.source ? config.source->value.text() : "");
}

void Planner::add_dependency_lines(digest::KeyFile& key, BackendId backend) {
    key.set("python-depends", join(config::python_depends_for(input_.config, backend), " "));
    std::string kernels;
    for (const config::KernelDependency& item :
         config::kernel_depends_for(input_.config, backend)) {
        kernels += fmt::format("{}@{} ",
                               item.repo_id.value,
                               item.version    ? fmt::format("v{}", item.version->value)
                               : item.revision ? item.revision->value
                                               : std::string{});
    }
    key.set("kernel-depends", kernels);
}

const digest::KeyFile& Planner::common_key(BackendId backend, const std::string& ops_id) {
    const auto [place, added] = common_keys_.try_emplace(backend);
    digest::KeyFile& key = place->second;
    if (added) {
        key.set("format", "kernel-builder/build-key/1");
        key.set("tool", input_.tool_version);
        key.set("ops-id", ops_id);
        add_metadata_lines(key);
        add_dependency_lines(key, backend);
        for (const auto& fact : input_.facts) {
            key.set("fact:", key_word(fact.first), fact.second);
        }
        for (const PackageFile& file : input_.snapshot.package) {
            key.set("package:", key_word(file.path.text()), file.sha256.hex());
        }
    }
    return key;
}

void Planner::add_key(PlannedVariant& variant) {
    digest::KeyFile& key = variant.key.lines;
    key.reserve(1664, 28); // of a usual variant
    key = common_key(variant.name.variant().backend, variant.ops_id);
    key.set("variant", variant.name.text());
    key.set("link", link_flags(variant.link));
    key.set("archs", join(variant.promises.archs, " "));
    add_source_lines(key);
    for (const Pinned* pin : pins_) {
        key.set(kRequires, pin->id, pin->digest.empty() ? "missing" : pin->digest);
        needed_.try_emplace(pin, pin->digest.empty());
    }
}

PlannedVariant Planner::plan_variant(ChosenVariant chosen) {
    const BackendId backend = chosen.name.variant().backend;
    const auto [ops, added] = ops_ids_.try_emplace(backend);
    if (added) {
        ops->second = ops_id(input_.config, backend, plan_.unique_id);
    }
    PlannedVariant variant{.name = chosen.name, .ops_id = ops->second, .torch = chosen.torch};
    tus_.clear();
    pins_.clear();
    if (chosen.name.variant().framework != FrameworkId::torch_noarch) {
        const VariantRows rows = builder_.rows_for(chosen);
        for (const Job& job : builder_.jobs_for(chosen, rows)) {
            tus_.push_back(&builder_.tu_for(job, chosen, rows, variant.ops_id));
        }
        pins_ = builder_.pins_for(chosen, rows);
        variant.promises.archs = chosen.archs();
        add_promises(variant, *rows.host);
        add_link(variant, *rows.host);
    }
    variant.sections = std::move(chosen.sections);
    add_key(variant);
    return variant;
}

void Planner::add_requirements() {
    for (const auto& entry : needed_) {
        plan_.requirements.push_back(entry.first->requirement);
        if (entry.second) {
            plan_.missing.push_back(entry.first->requirement);
        }
    }
    for (auto* list : {&plan_.requirements, &plan_.missing}) {
        std::ranges::sort(*list);
        list->erase(std::unique(list->begin(), list->end()), list->end()); // of two platforms
    }
}

std::optional<Plan> Planner::run() {
    VariantChoice choice = select(input_.config, input_.matrix, input_.selection);
    if (choice.chosen.empty()) {
        report_nothing_selected(choice);
        return std::nullopt;
    }
    report_architectures(input_.config, choice, diagnostics_);
    plan_.kernel = input_.config.name.module_name();
    plan_.unique_id = input_.unique_id.value_or(unique_id(input_.config, input_.snapshot));
    plan_.tool_version = input_.tool_version;
    plan_.lock_origin = input_.lock_origin;
    plan_.lock_digest = digest_of(input_.lock);
    plan_.variants.reserve(choice.chosen.size());
    builder_.expect(choice.chosen.size());
    for (ChosenVariant& chosen : choice.chosen) {
        plan_.variants.push_back(plan_variant(std::move(chosen)));
    }
    if (diagnostics_.has_errors()) {
        return std::nullopt;
    }
    plan_.tus = builder_.take_tus();
    add_requirements();
    return std::move(plan_);
}

} // namespace

std::optional<Plan> make(const PlanInput& input, Diagnostics& diagnostics) {
    return Planner{input, diagnostics}.run();
}

std::vector<Requirement> PlannedVariant::requirements() const {
    std::vector<Requirement> list;
    for (const auto& line : key.lines.lines()) {
        if (!line.first.starts_with(kRequires)) {
            continue;
        }
        if (auto requirement = Requirement::parse(line.first.substr(kRequires.size()))) {
            list.push_back(std::move(requirement).value());
        }
    }
    return list;
}

const PlannedVariant* Plan::find(const VariantName& name) const {
    const auto found = std::ranges::find(variants, name, &PlannedVariant::name);
    return found == variants.end() ? nullptr : &*found;
}

const Tu& Plan::tu(std::string_view id) const {
    const auto found = std::ranges::find(tus, id, &Tu::id);
    KB_ASSERT(found != tus.end(), "a variant names only TUs of its plan");
    return *found;
}

std::vector<Requirement> requirements(const config::Config& config,
                                      const SupportMatrix& matrix,
                                      const Selection& selection) {
    std::vector<Requirement> all;
    for (const ChosenVariant& chosen : select(config, matrix, selection).chosen) {
        const Variant& what = chosen.name.variant();
        if (what.framework == FrameworkId::torch_noarch) {
            continue;
        }
        const VariantRows rows{.host = find_host(matrix, what.platform),
                               .toolkit = find_toolkit(matrix, what.backend, what.backend_version),
                               .framework = what.framework == FrameworkId::tvm_ffi
                                                ? find_tvm_ffi(matrix, what.framework_version)
                                                : find_torch(matrix, chosen.torch)};
        for (const auto* list : requirement_lists(config, matrix, chosen, rows)) {
            all.insert(all.end(), list->begin(), list->end());
        }
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

PlanCounts count(const Plan& plan) {
    PlanCounts counts{.variants = plan.variants.size(), .tus_distinct = plan.tus.size()};
    for (const PlannedVariant& variant : plan.variants) {
        counts.tus_in_all += variant.tus.size();
        counts.links += variant.link.output.empty() ? 0U : 1U;
    }
    for (const Tu& tu : plan.tus) {
        counts.arch_compiles += tu.archs.size();
    }
    return counts;
}

} // namespace kb::plan
