// SPDX-License-Identifier: Apache-2.0
#include "build/pipeline.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "build/inspect.hpp"
#include "build/seal.hpp"
#include "build/workspace.hpp"
#include "generate/script_files.hpp"
#include "project/attestations.hpp"
#include "project/hash_cache.hpp"
#include "project/variant_dirs.hpp"
#include "sys/environment.hpp"
#include "sys/file_lock.hpp"
#include "sys/signals.hpp"
#include "toolchain/host_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace kb::build {

namespace {

constexpr std::size_t kTailBytes = 8192;

/// Made where there is none. One that cannot be written would fail every compilation.
Result<void> prepare_cache(sys::FileSystem& fs, const sys::Path& cache) {
    KB_TRY(fs.make_directories(cache));
    return fs.write_scratch(cache / ".writable", "", FileMode::regular);
}

void tell(const BuildEvents& events, std::string_view text) {
    if (events.on_stage) {
        events.on_stage(text);
    }
}

std::vector<const plan::PlannedVariant*> stale_variants(const plan::Plan& plan,
                                                        const WorkList& work) {
    std::vector<const plan::PlannedVariant*> out;
    for (const WorkItem& item : work.stale) {
        const auto found = std::ranges::find_if(plan.variants, [&](const plan::PlannedVariant& v) {
            return v.name.text() == item.variant;
        });
        KB_ASSERT(found != plan.variants.end(), "the work list names variants of this plan");
        out.push_back(&*found);
    }
    return out;
}

std::vector<backend::Requirement>
requirements_of(const std::vector<const plan::PlannedVariant*>& variants) {
    std::set<backend::Requirement> out;
    for (const plan::PlannedVariant* variant : variants) {
        for (backend::Requirement& requirement : variant->requirements()) {
            out.insert(std::move(requirement));
        }
    }
    return {out.begin(), out.end()};
}

std::string tail(std::string_view text) {
    if (text.size() <= kTailBytes) {
        return std::string{text};
    }
    text.remove_prefix(text.size() - kTailBytes);
    text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
    return "...\n" + std::string{text};
}

/// The run of one build, step by step.
class Run {
public:
    Run(const BuildInput& input,
        const WorkList& work,
        const BuildOptions& options,
        const BuildServices& services,
        const BuildEvents& events)
        : input_{input},
          work_{work},
          options_{options},
          services_{services},
          events_{events},
          workspace_{.state = input.project.state().lexically_normal(), .level = options.level},
          variants_{stale_variants(input.plan, work)} {}

    Result<BuildReport> go() {
        const auto started = services_.clock.now();
        report_.fresh = work_.fresh;
        if (!variants_.empty()) {
            KB_TRY(const bool compiled, compile());
            if (!compiled) {
                return Error{.code = ErrorCode::cancelled,
                             .message = "interrupted; finished objects are kept, the next build "
                                        "goes on from there"};
            }
            KB_TRY(finish_variants());
        }
        report_.seconds = std::chrono::duration<double>(services_.clock.now() - started).count();
        return std::move(report_);
    }

private:
    Result<std::vector<toolchain::Root>> provision() {
        const std::vector<backend::Requirement> requirements = requirements_of(variants_);
        if (requirements.empty()) {
            return std::vector<toolchain::Root>{};
        }
        tell(events_, "toolchains");
        KB_TRY(store::Store store,
               store::Store::open(services_.fs, services_.clock, options_.store));
        const toolchain::Machine machine{.fs = services_.fs,
                                         .processes = services_.processes,
                                         .environment = services_.environment,
                                         .clock = services_.clock};
        const backend::Platform platform = variants_.front()->name.variant().platform;
        return toolchain::provide(requirements,
                                  input_.lock,
                                  platform,
                                  store,
                                  machine,
                                  options_.fetch,
                                  {.level = options_.level, .tools = tools()});
    }

    [[nodiscard]] sandbox::ConfineTools tools() const {
        return {.path_variable =
                    sys::lookup(services_.environment, "PATH").value_or("/usr/bin:/bin"),
                .self = options_.self,
                .scratch = workspace_.scratch()};
    }

    /// The fixed places for a level that has no mounts, and where its temporary files go.
    Result<void> write_view(const std::vector<toolchain::Root>& roots) {
        const std::vector<toolchain::PlaceAt> places{
            {std::string{backend::kWorkMount}, workspace_.work()}};
        KB_TRY(services_.fs.make_directories(workspace_.work() / "tmp"));
        return toolchain::write_host_view(services_.fs, workspace_.view(), roots, places);
    }

    /// False when interrupted.
    Result<bool> compile() {
        std::vector<backend::VariantName> names;
        std::set<std::string> units;
        for (const plan::PlannedVariant* variant : variants_) {
            names.push_back(variant->name);
            units.insert(variant->tus.begin(), variant->tus.end());
        }
        report_.objects_wanted = units.size();
        KB_TRY(const std::vector<toolchain::Root> roots, provision());
        std::vector<generate::ScriptMount> mounts;
        for (const toolchain::Root& root : roots) {
            mounts.push_back({.place = root.mount, .directory = root.host.string()});
        }
        generate::ScriptInput script{.plan = input_.plan, .variants = names, .mounts = mounts};
        if (!sandbox::has_fixed_paths(options_.level)) {
            KB_TRY(write_view(roots));
            script.view = workspace_.view().string();
            script.level = sandbox::to_text(options_.level);
        }
        const std::vector<FileImage> scripts = generate::script_files(script);
        KB_TRY(materialise(services_.fs, workspace_, input_.project, input_.snapshot, scripts));
        if (units.empty()) {
            return true; // noarch variants: nothing is compiled
        }
        tell(events_,
             fmt::format("compiling {} for {}",
                         counted(units.size(), "unit"),
                         counted(names.size(), "variant")));
        return run_compilers(roots, names);
    }

    Result<bool> run_compilers(const std::vector<toolchain::Root>& roots,
                               const std::vector<backend::VariantName>& names) {
        sys::FileSystem& fs = services_.fs;
        KB_TRY(const TokenPool pool,
               TokenPool::open(fs,
                               workspace_.launch(),
                               options_.memory_bytes,
                               read_peaks(fs, workspace_, input_.plan)));
        NinjaRequest request{.work = workspace_.work(),
                             .source = workspace_.source(),
                             .jobs = options_.jobs,
                             .fail_fast = options_.fail_fast,
                             .level = options_.level,
                             .tools = tools()};
        for (const toolchain::Root& root : roots) {
            request.roots.push_back({.host = root.host, .inside = root.mount});
        }
        if (sandbox::has_fixed_paths(options_.level)) {
            for (const auto& [name, value] : generate::hermetic_environment()) {
                request.environment.emplace(name, value);
            }
        } else {
            request.view = workspace_.view();
            for (auto& [name, value] : generate::host_environment(workspace_.view().string(),
                                                                  workspace_.work().string())) {
                request.environment.emplace(std::move(name), std::move(value));
            }
        }
        for (const backend::VariantName& name : names) {
            request.targets.push_back(name.text());
        }
        if (options_.use_cache) {
            // A cache for each level: what a weaker one compiled is no hit for a stronger one.
            request.cache = options_.store.parent_path() / workspace_.named("ccache");
            if (const Result<void> made = prepare_cache(fs, request.cache); !made) {
                // A shared store that others fill: slower, not wrong.
                tell(events_, fmt::format("compiling without a cache: {}", made.error().to_text()));
                request.cache.clear();
            }
        }
        KB_TRY(fs.make_directories(workspace_.scratch()));
        KB_TRY(const NinjaResult result,
               run_ninja(request, services_.processes, events_.on_progress));
        report_.warnings = result.warnings;
        KB_TRY(report_.compiled, pool.read_log(fs));
        KB_TRY(learn_costs(
            fs, workspace_, costs_beside(options_.store), input_.plan, report_.compiled));
        std::ranges::sort(report_.compiled, std::ranges::greater{}, &LaunchRecord::wall_seconds);
        if (result.status.kind == sys::ExitStatus::Kind::interrupted || sys::interrupted()) {
            return false;
        }
        if (!result.status.ok() && result.failures.empty()) {
            return Error{.code = ErrorCode::internal,
                         .message = fmt::format("Ninja could not run in the sandbox ({}): {}",
                                                result.status.to_text(),
                                                escape_control(trim(tail(result.messages))))};
        }
        note_failures(result.failures);
        return true;
    }

    void note_failures(const std::vector<NinjaFailure>& failures) {
        for (const NinjaFailure& failure : failures) {
            StepFailure step{.what = fmt::format("link {}", failure.output),
                             .text = tail(failure.text)};
            const auto tu = std::ranges::find(input_.plan.tus, failure.output, &plan::Tu::object);
            if (tu != input_.plan.tus.end()) {
                step.what = fmt::format("{} {}", backend::to_text(tu->kind), tu->source.text());
            }
            for (const plan::PlannedVariant* variant : variants_) {
                const bool links_it = tu != input_.plan.tus.end() &&
                                      std::ranges::find(variant->tus, tu->id) != variant->tus.end();
                if (links_it || variant->link.output == failure.output) {
                    step.variants.push_back(variant->name.text());
                    failed_[variant->name.text()].push_back(fmt::format("{} failed", step.what));
                }
            }
            report_.failures.push_back(std::move(step));
        }
    }

    Result<void> finish_variants() {
        tell(events_, "checking and sealing");
        package::Provenance provenance{.tool_version = input_.plan.tool_version};
        if (input_.git.commit) {
            provenance.kernel =
                package::SourceState{.commit = *input_.git.commit, .dirty = input_.git.is_dirty};
        }
        provenance.lock_digest = input_.plan.lock_digest.hex();
        provenance.sandbox = std::string{sandbox::to_text(options_.level)};
        const SealContext context{.fs = services_.fs,
                                  .workspace = workspace_,
                                  .project = input_.project,
                                  .snapshot = input_.snapshot,
                                  .plan = input_.plan,
                                  .provenance = provenance,
                                  .allow_unchecked = options_.allow_unchecked,
                                  .lock = input_.lock};
        for (const plan::PlannedVariant* variant : variants_) {
            KB_TRY(finish_variant(context, *variant));
        }
        return {};
    }

    Result<void> finish_variant(const SealContext& context, const plan::PlannedVariant& variant) {
        VariantResult result{.variant = variant.name.text()};
        std::string package_digest;
        const auto failed = failed_.find(result.variant);
        const bool linked = variant.link.output.empty() ||
                            sys::exists(services_.fs, workspace_.work() / variant.link.output);
        if (failed != failed_.end() || !linked) {
            result.outcome = Outcome::compile_failed;
            result.failures =
                failed != failed_.end()
                    ? failed->second
                    : std::vector<std::string>{
                          "its library was not linked because an earlier step failed"};
        } else {
            KB_TRY(assemble(context, variant));
            KB_TRY(result.report, check_stage(context, variant));
            if (result.report->passed()) {
                KB_TRY(const digest::Digest sealed, seal(context, variant));
                package_digest = sealed.hex();
                KB_TRY(learn_package(services_.fs,
                                     workspace_,
                                     costs_beside(options_.store),
                                     variant,
                                     input_.project.root() / "build" / result.variant));
            } else {
                result.outcome = Outcome::check_failed;
                result.failures = failures_of(*result.report);
            }
        }
        KB_TRY(write_variant_record(variant, result, package_digest));
        report_.variants.push_back(std::move(result));
        return {};
    }

    Result<void> write_variant_record(const plan::PlannedVariant& variant,
                                      const VariantResult& result,
                                      const std::string& package_digest) {
        Record record{.variant = result.variant,
                      .outcome = result.outcome,
                      .key = variant.key.lines,
                      .package_digest = package_digest,
                      .sandbox = std::string{sandbox::to_text(options_.level)},
                      .failures = result.failures};
        record.finished = sys::to_rfc3339(services_.clock.unix_seconds());
        for (const LaunchRecord& launch : report_.compiled) {
            const auto tu = std::ranges::find(input_.plan.tus, launch.object, &plan::Tu::object);
            if (tu != input_.plan.tus.end() &&
                std::ranges::find(variant.tus, tu->id) != variant.tus.end()) {
                record.seconds += launch.wall_seconds;
                record.peak_bytes = std::max(record.peak_bytes, launch.peak_bytes);
            }
        }
        const sys::Path path = workspace_.record(result.variant);
        KB_TRY(services_.fs.make_directories(path.parent_path()));
        return services_.fs.write_atomic(path, write_record(record), FileMode::regular);
    }

    const BuildInput& input_;
    const WorkList& work_;
    const BuildOptions& options_;
    const BuildServices& services_;
    const BuildEvents& events_;
    Workspace workspace_;
    std::vector<const plan::PlannedVariant*> variants_;
    std::map<std::string, std::vector<std::string>> failed_{};
    BuildReport report_{};
};

Result<VariantState> read_state(const BuildServices& services,
                                const Workspace& workspace,
                                const project::Project& project,
                                const std::string& name,
                                project::HashCache& cache) {
    VariantState state{.variant = name};
    const Result<std::string> text = services.fs.read_file(workspace.record(name));
    if (text) {
        if (Result<Record> record = parse_record(*text)) {
            state.record = std::move(record).value();
        }
    }
    const sys::Path directory = project.root() / "build" / name;
    if (!state.record || !sys::exists(services.fs, directory / "metadata.json")) {
        return state;
    }
    const Result<package::FileList> files =
        project::read_file_list(services.fs, directory, [&](const sys::Path& path) {
            return cache.sha256(services.fs, services.clock, path);
        });
    state.package = files && project::digest_of(*files).hex() == state.record->package_digest
                        ? PackageState::sound
                        : PackageState::changed;
    state.has_statement =
        project::has_attestations(services.fs, project::attestation_directory(directory), name);
    const auto metadata = project::read_metadata(services.fs, {.name = name, .path = directory});
    state.is_dirty = metadata && metadata->provenance && metadata->provenance->kernel &&
                     metadata->provenance->kernel->dirty;
    return state;
}

} // namespace

sys::Path costs_beside(const sys::Path& store) {
    return store.parent_path() / "learnt";
}

Estimate foresee(const BuildServices& services,
                 const BuildInput& input,
                 const WorkList& work,
                 const BuildOptions& options) {
    const Workspace workspace{.state = input.project.state(), .level = options.level};
    const CostTable steps = load_costs(services.fs, workspace.peaks());
    const CostTable classes = load_costs(services.fs, costs_beside(options.store));
    return estimate({.plan = input.plan,
                     .work = work,
                     .steps = steps,
                     .classes = classes,
                     .jobs = options.jobs,
                     .memory_bytes = options.memory_bytes,
                     .is_made = [&](std::string_view output) {
                         return sys::exists(services.fs, workspace.work() / output);
                     }});
}

bool BuildReport::ok() const {
    return std::ranges::all_of(variants,
                               [](const VariantResult& v) { return v.outcome == Outcome::built; });
}

Result<std::vector<VariantState>> read_states(const BuildServices& services,
                                              const project::Project& project,
                                              const plan::Plan& plan) {
    const Workspace workspace{.state = project.state()};
    project::HashCache cache = project::HashCache::open(services.fs, workspace.hashes());
    std::vector<VariantState> out;
    for (const plan::PlannedVariant& variant : plan.variants) {
        KB_TRY(VariantState state,
               read_state(services, workspace, project, variant.name.text(), cache));
        out.push_back(std::move(state));
    }
    if (sys::exists(services.fs, workspace.state)) {
        KB_TRY(cache.save(services.fs));
    }
    return out;
}

Result<BuildReport> run(const BuildInput& input,
                        const WorkList& work,
                        const BuildOptions& options,
                        const BuildServices& services,
                        const BuildEvents& events) {
    KB_TRY(project::make_state_directory(services.fs, input.project));
    KB_TRY(const sys::FileLock lock, sys::FileLock::acquire(input.project.state() / "lock", [&] {
               tell(events, "waiting for another build of this project");
           }));
    return Run{input, work, options, services, events}.go();
}

} // namespace kb::build
