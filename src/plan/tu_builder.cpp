// SPDX-License-Identifier: Apache-2.0
#include "plan/tu_builder.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "plan/command.hpp"
#include "plan/source_needs.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::plan {

namespace {

using backend::FrameworkId;
using backend::SourceKind;

std::vector<std::string> plain(const config::Strings& list) {
    std::vector<std::string> result;
    result.reserve(list.size());
    for (const auto& item : list) {
        result.push_back(item.value);
    }
    return result;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

void sort_pins(Pins& pins) {
    std::ranges::sort(pins, {}, [](const Pinned* pin) -> const std::string& { return pin->id; });
    pins.erase(std::unique(pins.begin(), pins.end()), pins.end());
}

/// Over all entries that satisfy a requirement, "" without one.
std::string
lock_digest(const Lock& lock, const Requirement& requirement, const Platform& platform) {
    std::vector<std::string> lines;
    for (const LockEntry* entry : entries_for(lock, requirement, platform)) {
        const bool sliced = entry->slice && entry->slice->manifest_sha256;
        lines.push_back(fmt::format("{} {} {}\n",
                                    entry->id,
                                    entry->sha256.hex(),
                                    sliced ? entry->slice->manifest_sha256->hex() : "-"));
    }
    std::ranges::sort(lines);
    return lines.empty() ? std::string{} : digest::sha256(join(lines, "")).hex();
}

/// gcc draws names of some local symbols from a seed; a fixed one for each source keeps them equal
/// between builds and different between sources.
std::string random_seed(const RelPath& source) {
    return "-frandom-seed=" + digest::sha256(source.text()).hex().substr(0, 16);
}

constexpr std::size_t kUsualIdBytes = 28; // of a requirement

/// A CUDA source of a ROCm section, which is translated first. What is called .hip is taken as it
/// is.
bool is_translated(const Job& job) {
    return job.kind == SourceKind::hip && job.file->path.extension() == ".cu";
}

/// "/work/hip/csrc" before each "/src/csrc": headers that were not seen stay where they are.
std::vector<std::string> translated_include(const std::vector<std::string>& include) {
    std::vector<std::string> dirs;
    for (const std::string& dir : include) {
        dirs.push_back(std::string{backend::kTranslatedMount} +
                       dir.substr(backend::kSourceMount.size()));
    }
    append(dirs, include);
    return dirs;
}

bool is_device_kind(SourceKind kind) {
    return kind != SourceKind::cxx;
}

/// TORCH_TARGET_VERSION: the major version in the highest byte, the minor one in the next.
std::string torch_target(const Version& abi) {
    return fmt::format("TORCH_TARGET_VERSION=0x{:016x}",
                       (abi.major() << 56U) | (abi.minor() << 48U));
}

std::string limited_api(const Version& python) {
    return fmt::format("Py_LIMITED_API=0x{:02x}{:02x}0000", python.major(), python.minor());
}

} // namespace

/// What a variant gives a job: only what the job asks for, so that variants share it.
struct TuBuilder::Context {
    const HostRow* host = nullptr;
    const ToolkitRow* toolkit = nullptr;
    /// Headers of torch or tvm-ffi; nullptr when the job includes neither.
    const FrameworkRow* framework = nullptr;
    FrameworkId framework_id = FrameworkId::torch;
    SourceNeeds needs{};
    std::uint32_t cxx_standard = 17;
    std::optional<Version> stable_abi{};
};

/// Rows stand in arrays: a multiplier without small factors keeps equal strides apart.
constexpr std::size_t kMix = 0x9e3779b97f4a7c15U;

std::size_t TuBuilder::TuKeyHash::operator()(const TuKey& key) const {
    const std::hash<const void*> hash;
    return ((hash(key.job) * kMix + hash(key.host)) * kMix + hash(key.framework)) * kMix >> 16U;
}

std::size_t TuBuilder::ListKeyHash::operator()(const ListKey& key) const {
    const std::hash<const void*> hash;
    return (hash(key.host) * kMix + hash(key.list)) * kMix >> 16U;
}

void TuBuilder::expect(std::size_t variants) {
    by_request_.reserve(2 * variants); // a binding and device code, as most have
    by_id_.reserve(variants);
}

TuBuilder::TuBuilder(const PlanInput& input, Diagnostics& diagnostics)
    : input_{input},
      diagnostics_{diagnostics},
      graph_{input.snapshot},
      index_{input.matrix},
      limited_api_{limited_api(input.matrix.python_abi)} {}

std::vector<std::string> TuBuilder::include_dirs(const config::Strings& list) {
    std::vector<std::string> dirs;
    for (const auto& item : list) {
        if (auto path = source_path(item.value)) {
            dirs.push_back(std::move(*path));
        } else if (reported_.insert(item.span).second) {
            diagnostics_.error("bad-path",
                               item.span,
                               fmt::format("'{}' is not a folder of the project", item.value));
        }
    }
    return dirs;
}

std::vector<const DependencyRow*> TuBuilder::dependency_rows(const config::Section& section) {
    std::vector<const DependencyRow*> rows;
    for (const auto& dependency : section.depends) {
        if (dependency.value == config::NativeDependency::torch) {
            continue; // what includes torch is given torch
        }
        const std::string_view name = config::to_text(dependency.value);
        const DependencyRow* row = find_dependency(input_.matrix, name);
        const bool usable = row != nullptr && row->unavailable.empty();
        if (usable && row->backend == section.backend.value) {
            rows.push_back(row);
        } else if (!usable && reported_.insert(dependency.span).second) {
            diagnostics_.error("unavailable-dependency",
                               dependency.span,
                               fmt::format("'{}' cannot be had: {}",
                                           name,
                                           row == nullptr ? "the support matrix has no row for it"
                                                          : row->unavailable));
        }
    }
    return rows;
}

void TuBuilder::add_job(std::vector<Job>& jobs, Job job) {
    const auto same = std::ranges::find(jobs, job.file, &Job::file);
    if (same == jobs.end()) {
        jobs.push_back(std::move(job));
        return;
    }
    // A file of two sections is compiled once, with what both say.
    append(same->include, job.include);
    append(same->cxx_flags, job.cxx_flags);
    append(same->device_flags, job.device_flags);
    append(same->archs, job.archs);
    std::ranges::sort(same->archs, natural_less);
    same->archs.erase(std::unique(same->archs.begin(), same->archs.end()), same->archs.end());
    same->dependencies.insert(
        same->dependencies.end(), job.dependencies.begin(), job.dependencies.end());
}

void TuBuilder::add_source(std::vector<Job>& jobs,
                           const Job& common,
                           const document::Located<std::string>& source,
                           BackendId backend) {
    const auto path = source_path(source.value);
    const SourceFile* file = path ? graph_.find(*path) : nullptr;
    if (file == nullptr) {
        if (reported_.insert(source.span).second) {
            diagnostics_.error("missing-source",
                               source.span,
                               fmt::format("there is no file '{}'", source.value),
                               {"paths are relative to the folder of build.toml"});
        }
        return;
    }
    const backend::BackendRules& rules = backend::rules_of(backend);
    const SourceKind kind = rules.source_kind(file->path);
    if (kind == SourceKind::header) {
        return;
    }
    if (kind == SourceKind::other) {
        if (reported_.insert(source.span).second) {
            diagnostics_.error("wrong-source-kind",
                               source.span,
                               fmt::format("'{}' is nothing that the {} backend compiles",
                                           source.value,
                                           rules.title));
        }
        return;
    }
    Job job = common;
    job.file = file;
    job.kind = kind;
    if (!is_device_kind(kind)) {
        job.archs.clear();
    }
    add_job(jobs, std::move(job));
}

void TuBuilder::refuse_control_characters(const Job& job, const Span& place) {
    for (const auto* flags : {&job.cxx_flags, &job.device_flags}) {
        for (const std::string& flag : *flags) {
            if (escape_control(flag) != flag && reported_.insert(place).second) {
                diagnostics_.error(
                    "bad-flag",
                    place,
                    fmt::format("the flag '{}' has a control character", escape_control(flag)),
                    {"write each flag as an item of its own"});
            }
        }
    }
}

void TuBuilder::add_binding_jobs(std::vector<Job>& jobs, BackendId backend) {
    const Job common{.include = include_dirs(config::binding_include(input_.config)),
                     .cxx_flags = plain(config::binding_cxx_flags(input_.config))};
    refuse_control_characters(common, input_.config.span);
    for (const auto& source : config::binding_src(input_.config)) {
        add_source(jobs, common, source, backend);
    }
}

void TuBuilder::add_section_jobs(std::vector<Job>& jobs,
                                 const config::Section& section,
                                 const SectionArchs& archs,
                                 const ToolkitRow& toolkit) {
    const auto usable = backend::rules_of(toolkit.backend).usable_flags;
    const Job common{.section = section.id.value,
                     .include = include_dirs(section.include),
                     .cxx_flags = plain(section.cxx_flags),
                     .device_flags = usable(device_flags(section), toolkit.version),
                     .archs = archs.choice.kept,
                     .dependencies = dependency_rows(section)};
    refuse_control_characters(common, section.id.span);
    for (const auto& source : section.src) {
        add_source(jobs, common, source, toolkit.backend);
    }
}

VariantRows TuBuilder::rows_for(const ChosenVariant& variant) const {
    const Variant& what = variant.name.variant();
    const VariantRows rows{.host = index_.host(what.platform),
                           .toolkit = index_.toolkit(what.backend, what.backend_version),
                           .framework = what.framework == FrameworkId::tvm_ffi
                                            ? index_.tvm_ffi(what.framework_version)
                                            : index_.torch(variant.torch)};
    KB_ASSERT(rows.host != nullptr && rows.toolkit != nullptr && rows.framework != nullptr,
              "a chosen variant has all its rows");
    return rows;
}

const std::vector<Job>& TuBuilder::jobs_for(const ChosenVariant& variant, const VariantRows& rows) {
    const Variant& what = variant.name.variant();
    const auto [place, added] = jobs_.try_emplace(JobsKey{what.framework, rows.toolkit});
    if (!added) {
        return place->second;
    }
    std::vector<Job>& jobs = place->second;
    add_binding_jobs(jobs, what.backend);
    const auto sections = config::sections_of(input_.config, what.backend);
    KB_ASSERT(sections.size() == variant.sections.size(), "select judged the same sections");
    for (std::size_t i = 0; i < sections.size(); ++i) {
        if (!variant.sections[i].skipped) {
            add_section_jobs(jobs, *sections[i], variant.sections[i], *rows.toolkit);
        }
    }
    const std::vector<std::string> common = common_include(input_.snapshot);
    for (Job& job : jobs) {
        append(job.include, common);
        job.reach = graph_.reach(*job.file, job.include);
        job.seed = random_seed(job.file->path);
        job.content = job.file->sha256.hex() + "\n";
        for (const SourceFile* header : job.reach.headers) {
            job.content += header->path.text() + " " + header->sha256.hex() + "\n";
        }
        for (std::string& dir : job.include) {
            dir = dir.empty() ? std::string{backend::kSourceMount}
                              : fmt::format("{}/{}", backend::kSourceMount, dir);
        }
    }
    return jobs;
}

TuBuilder::Context TuBuilder::context_for(const Job& job,
                                          const ChosenVariant& variant,
                                          const VariantRows& rows) const {
    const Variant& what = variant.name.variant();
    Context context{.host = rows.host, .toolkit = rows.toolkit, .framework_id = what.framework};
    context.needs = needs_of(job.reach, what.framework);
    context.cxx_standard = cxx_standard(context.needs, *rows.framework, *rows.toolkit);
    if (context.needs.framework) {
        context.framework = rows.framework;
    }
    if (context.framework != nullptr && what.framework == FrameworkId::torch_stable_abi) {
        context.stable_abi = what.framework_version;
    }
    return context;
}

Words TuBuilder::command_for(const Job& job,
                             const Context& context,
                             const std::string& ops_id) const {
    const bool tvm = context.framework_id == FrameworkId::tvm_ffi;
    const std::vector<std::string> include =
        is_translated(job) ? translated_include(job.include) : job.include;
    CompileRequest request{.source = job.file->path,
                           .source_root = is_translated(job) ? backend::kTranslatedMount
                                                             : backend::kSourceMount,
                           .kind = job.kind,
                           .toolkit = *context.toolkit,
                           .cxx = context.host->cxx,
                           .cxx_standard = context.cxx_standard,
                           .seed = job.seed,
                           .include = include,
                           .archs = job.archs,
                           .flags = is_device_kind(job.kind) ? job.device_flags : job.cxx_flags};
    for (const std::string_view definition :
         backend::rules_of(context.toolkit->backend).definitions) {
        request.definitions.emplace_back(definition);
    }
    if (context.needs.ops) {
        request.definitions.push_back((tvm ? "TVM_FFI_EXTENSION_NAME=" : "TORCH_EXTENSION_NAME=") +
                                      ops_id);
    }
    if (context.stable_abi) {
        request.definitions.push_back(torch_target(*context.stable_abi));
    }
    if (context.needs.python) {
        request.definitions.push_back(limited_api_);
    }
    if (context.framework != nullptr && tvm) {
        request.system_include.push_back(backend::tvm_ffi_mount(context.framework->version) +
                                         "/include");
    } else if (context.framework != nullptr) {
        request.system_include = torch_include(backend::torch_mount(context.framework->version));
    }
    if (context.needs.python) {
        request.system_include.emplace_back(backend::kPythonMount);
    }
    if (context.toolkit->backend == BackendId::cuda && job.kind == SourceKind::cxx) {
        request.system_include.push_back(backend::cuda_mount(context.toolkit->version) +
                                         "/include");
    }
    if (context.toolkit->backend == BackendId::rocm) {
        request.definitions.emplace_back("__HIP_PLATFORM_AMD__=1");
        request.system_include.push_back(backend::rocm_mount(context.toolkit->version) +
                                         "/include");
    }
    for (const DependencyRow* row : job.dependencies) {
        append(request.definitions, row->definitions);
        for (const std::string& dir : row->include) {
            request.system_include.push_back(
                fmt::format("{}/{}", backend::dependency_mount(row->mount), dir));
        }
    }
    return compile_command(request);
}

const Pins& TuBuilder::pinned(const std::vector<Requirement>& list, const HostRow& host) {
    const auto [place, added] = pinned_lists_.try_emplace(ListKey{.host = &host, .list = &list});
    if (added) {
        for (const Requirement& requirement : list) {
            std::string id = requirement.id();
            const auto [pin, is_new] = pinned_.try_emplace(std::pair{&host, id});
            if (is_new) {
                pin->second = {.requirement = requirement,
                               .id = std::move(id),
                               .digest = lock_digest(input_.lock, requirement, host.platform)};
            }
            place->second.push_back(&pin->second);
        }
    }
    return place->second;
}

Pins TuBuilder::pins_for(const ChosenVariant& variant, const VariantRows& rows) {
    Pins pins;
    pins.reserve(16);
    for (const auto* list : requirement_lists(input_.config, input_.matrix, variant, rows)) {
        const Pins& own = pinned(*list, *rows.host);
        pins.insert(pins.end(), own.begin(), own.end());
    }
    sort_pins(pins);
    return pins;
}

Pins TuBuilder::pins_for(const Job& job, const Context& context) {
    std::vector<const std::vector<Requirement>*> lists{&context.host->requirements,
                                                       &context.toolkit->requirements};
    if (context.framework != nullptr) {
        lists.push_back(&context.framework->requirements);
    }
    if (context.needs.python) {
        lists.push_back(&input_.matrix.python);
    }
    for (const DependencyRow* row : job.dependencies) {
        lists.push_back(&row->requirements);
    }
    Pins pins;
    for (const auto* list : lists) {
        for (const Pinned* pin : pinned(*list, *context.host)) {
            if (pin->requirement.provider != "stub") { // link stubs do not reach an object
                pins.push_back(pin);
            }
        }
    }
    sort_pins(pins);
    return pins;
}

Tu TuBuilder::make_tu(const Job& job, const Context& context, const std::string& ops_id) {
    Tu tu{.source = job.file->path,
          .kind = job.kind,
          .section = job.section,
          .archs = job.archs,
          .torch = context.framework != nullptr && context.framework_id != FrameworkId::tvm_ffi
                       ? context.framework->version
                       : Version{}};
    const Pins pins = pins_for(job, context);
    Words command = command_for(job, context, ops_id);
    std::string& key = key_text_; // kept: a buffer of its size is dear to the allocator
    key.assign("kernel-builder/tu/1\n");
    for (const std::string_view word : command) {
        key.append(word).append("\n");
    }
    if (is_translated(job)) {
        std::vector<RelPath> files{job.file->path};
        for (const SourceFile* header : job.reach.headers) {
            files.push_back(header->path);
        }
        tu.before = translate_command(context.toolkit->version, files);
        for (const std::string_view word : tu.before) {
            key.append(word).append("\n");
        }
    }
    key.append(job.content);
    tu.headers.reserve(job.reach.headers.size());
    tu.requirements.reserve(pins.size() * kUsualIdBytes, pins.size());
    for (const SourceFile* header : job.reach.headers) {
        tu.headers.push_back(header->path);
    }
    key.append(to_text(context.host->platform)).append("\n");
    for (const Pinned* pin : pins) {
        key.append(pin->id).append(" ").append(pin->digest).append("\n");
        tu.requirements.add(pin->id);
    }
    tu.id = digest::sha256(key).hex().substr(0, 32);
    tu.object = "tu/" + tu.id + ".o";
    if (job.kind == SourceKind::cuda) {
        // nvcc names its temporary files after its process id; kept files have fixed names.
        tu.keep_dir = "tu/" + tu.id + ".keep";
        command.add("--keep");
        command.add("--keep-dir");
        command.add(tu.keep_dir);
    }
    command.add("-o");
    command.add(tu.object);
    tu.command = std::as_const(command); // a copy has no spare room
    return tu;
}

const Tu& TuBuilder::tu_for(const Job& job,
                            const ChosenVariant& variant,
                            const VariantRows& rows,
                            const std::string& ops_id) {
    const Context context = context_for(job, variant, rows);
    const auto [place, added] =
        by_request_.try_emplace(TuKey{&job, context.host, context.framework});
    if (added) {
        Tu tu = make_tu(job, context, ops_id);
        const auto known = by_id_.find(tu.id);
        if (known == by_id_.end()) {
            const Tu& kept = tus_.emplace_back(std::move(tu));
            by_id_.emplace(kept.id, &kept);
            place->second = &kept;
        } else {
            place->second = known->second;
        }
    }
    return *place->second;
}

std::vector<Tu> TuBuilder::take_tus() {
    std::vector<Tu*> order;
    order.reserve(tus_.size());
    for (Tu& tu : tus_) {
        order.push_back(&tu);
    }
    std::ranges::sort(order, [](const Tu* a, const Tu* b) {
        return std::tie(a->source, a->id) < std::tie(b->source, b->id);
    });
    std::vector<Tu> tus;
    tus.reserve(order.size());
    for (Tu* tu : order) {
        tus.push_back(std::move(*tu));
    }
    return tus;
}

std::vector<const std::vector<Requirement>*> requirement_lists(const config::Config& config,
                                                               const SupportMatrix& matrix,
                                                               const ChosenVariant& variant,
                                                               const VariantRows& rows) {
    const Variant& what = variant.name.variant();
    std::vector<const std::vector<Requirement>*> lists{
        &rows.host->requirements, &rows.toolkit->requirements, &rows.framework->requirements};
    if (what.framework != FrameworkId::tvm_ffi) {
        lists.push_back(&matrix.python);
    }
    for (const config::Section* section : config::sections_of(config, what.backend)) {
        for (const auto& dependency : section->depends) {
            const DependencyRow* row = find_dependency(matrix, config::to_text(dependency.value));
            if (row != nullptr && row->backend == what.backend) {
                lists.push_back(&row->requirements);
            }
        }
    }
    return lists;
}

} // namespace kb::plan
