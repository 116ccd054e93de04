// SPDX-License-Identifier: Apache-2.0
#include "backend/arch.hpp"
#include "base/text.hpp"
#include "config/config.hpp"
#include "config/licenses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

// Each rule is a function of the Config that adds warnings; `validate` at the end lists them.

namespace kb::config {

namespace {

void check_backend_list(const Config& config, Diagnostics& diagnostics) {
    if (config.backends.empty()) {
        diagnostics.warning("no-backends",
                            config.name_span,
                            "'backends' in [general] is empty: there is nothing to build");
    }
    std::set<BackendId> seen;
    for (const Located<BackendId>& backend : config.backends) {
        if (!seen.insert(backend.value).second) {
            diagnostics.warning(
                "duplicate-backend",
                backend.span,
                fmt::format("backend '{}' is listed twice", backend::to_text(backend.value)));
        }
    }
}

std::string framework_name(const Config& config) {
    if (std::holds_alternative<Torch>(config.framework)) {
        return "[torch]";
    }
    return std::holds_alternative<TvmFfi>(config.framework) ? "[tvm-ffi]" : "[torch-noarch]";
}

/// Listed backends against sections, in both directions.
void check_sections(const Config& config, Diagnostics& diagnostics) {
    if (std::holds_alternative<TorchNoarch>(config.framework)) {
        for (const Section& section : config.sections) {
            diagnostics.warning("ignored-section",
                                section.id.span,
                                fmt::format("section 'kernel.{}' is ignored: [torch-noarch] "
                                            "compiles nothing",
                                            section.id.value),
                                {"use [torch] if it is meant to be compiled"});
        }
        return;
    }
    std::set<BackendId> judged;
    for (const Located<BackendId>& backend : config.backends) {
        const std::string_view name = backend::to_text(backend.value);
        if (!judged.insert(backend.value).second || !sections_of(config, backend.value).empty()) {
            continue;
        }
        if (backend::has_kernel_sections(backend.value)) {
            diagnostics.warning(
                "backend-without-section",
                backend.span,
                fmt::format("backend '{}' is listed but no [kernel.*] section is for it", name),
                {fmt::format("add a section with backend = \"{}\", or take it off the list",
                             name)});
        } else {
            diagnostics.warning("backend-without-section",
                                backend.span,
                                fmt::format("backend '{}' cannot be built from {}, only from "
                                            "[torch-noarch]",
                                            name,
                                            framework_name(config)));
        }
    }
    for (const Section& section : config.sections) {
        if (!lists_backend(config, section.backend.value)) {
            diagnostics.warning("unlisted-backend",
                                section.backend.span,
                                fmt::format("section 'kernel.{}' is never built: backend '{}' is "
                                            "not in 'backends' of [general]",
                                            section.id.value,
                                            backend::to_text(section.backend.value)));
        }
    }
}

/// The declared files of the project.
class FileSet {
public:
    explicit FileSet(std::span<const RelPath> files) {
        std::ranges::transform(files, std::back_inserter(names_), [](const RelPath& p) {
            return std::string_view{p.text()};
        });
        std::ranges::sort(names_);
    }

    [[nodiscard]] bool has(std::string_view name) const {
        return std::ranges::binary_search(names_, name);
    }

    [[nodiscard]] bool has_folder(std::string_view name) const {
        const std::string prefix = std::string{name} + '/';
        const auto at = std::ranges::lower_bound(names_, std::string_view{prefix});
        return at != names_.end() && at->starts_with(prefix);
    }

    [[nodiscard]] std::vector<std::string> advice(std::string_view name) const {
        // A file of the same name elsewhere is likelier than a similar path.
        const std::string_view base = name.substr(name.rfind('/') + 1);
        for (const std::string_view candidate : names_) {
            if (candidate.substr(candidate.rfind('/') + 1) == base) {
                return {fmt::format("did you mean '{}'?", candidate)};
            }
        }
        return suggestion_note(name, names_);
    }

private:
    std::vector<std::string_view> names_{};
};

class SourceRules {
public:
    SourceRules(const FileSet& files, Diagnostics& diagnostics)
        : files_{&files}, diagnostics_{&diagnostics} {}

    void sources(const Strings& src, const std::string& where) {
        std::set<std::string_view> seen;
        for (const Located<std::string>& file : src) {
            if (!seen.insert(file.value).second) {
                diagnostics_->warning("duplicate-source",
                                      file.span,
                                      fmt::format("'{}' is listed twice in 'src' of {}",
                                                  escape_control(file.value),
                                                  where));
            } else if (!RelPath::parse(file.value)) {
                outside(file, where);
            } else if (!files_->has(file.value)) {
                diagnostics_->warning(
                    "missing-source",
                    file.span,
                    fmt::format("{}: there is no file '{}'", where, escape_control(file.value)),
                    files_->advice(file.value));
            }
        }
    }

    void folders(const Strings& include, const std::string& where) {
        for (const Located<std::string>& folder : include) {
            const std::string_view name = without_ending(folder.value);
            if (name == ".") {
                continue;
            }
            if (!RelPath::parse(name)) {
                outside(folder, where);
            } else if (!files_->has_folder(name)) {
                diagnostics_->warning("missing-include",
                                      folder.span,
                                      fmt::format("{}: there is no folder '{}'",
                                                  where,
                                                  escape_control(folder.value)));
            }
        }
    }

private:
    static std::string_view without_ending(std::string_view folder) {
        while (folder.size() > 1 && folder.ends_with('/')) {
            folder.remove_suffix(1);
        }
        return folder;
    }

    void outside(const Located<std::string>& path, const std::string& where) {
        diagnostics_->warning(
            "source-outside",
            path.span,
            fmt::format("{}: '{}' is no path below the project", where, escape_control(path.value)),
            {"write it relative to build.toml, with '/', without '.' and '..': a "
             "build sees only files of the project"});
    }

    const FileSet* files_;
    Diagnostics* diagnostics_;
};

void check_sources(const Config& config, std::span<const RelPath> paths, Diagnostics& diagnostics) {
    const FileSet files{paths};
    SourceRules rules{files, diagnostics};
    const std::string binding = framework_name(config);
    rules.sources(binding_src(config), binding);
    rules.folders(binding_include(config), binding);
    for (const Section& section : config.sections) {
        const std::string where = fmt::format("[kernel.{}]", section.id.value);
        rules.sources(section.src, where);
        rules.folders(section.include, where);
        if (section.src.empty()) {
            diagnostics.warning("no-sources",
                                section.id.span,
                                fmt::format("{} has no sources: nothing is compiled", where));
        }
    }
}

void check_range(const std::optional<Located<Version>>& low,
                 const std::optional<Located<Version>>& high,
                 std::string_view what,
                 Diagnostics& diagnostics) {
    if (low && high && low->value > high->value) {
        diagnostics.warning("empty-range",
                            low->span,
                            fmt::format("no {} lies between minver {} and maxver {}: nothing is "
                                        "built",
                                        what,
                                        low->value.to_text(),
                                        high->value.to_text()));
    }
}

void check_bounds(const Config& config, Diagnostics& diagnostics) {
    const auto cuda = config.backend_tables.find(BackendId::cuda);
    if (cuda != config.backend_tables.end()) {
        check_range(cuda->second.minver, cuda->second.maxver, "CUDA version", diagnostics);
    }
    const std::optional<Version> cuda_max = max_backend_version(config, BackendId::cuda);
    for (const Section& section : config.sections) {
        if (section.cuda_minver && cuda_max && section.cuda_minver->value > *cuda_max) {
            diagnostics.warning("never-built",
                                section.cuda_minver->span,
                                fmt::format("section 'kernel.{}' is never built: it needs CUDA {}, "
                                            "general.cuda.maxver is {}",
                                            section.id.value,
                                            section.cuda_minver->value.to_text(),
                                            cuda_max->to_text()));
        }
    }
    if (const auto* torch = std::get_if<Torch>(&config.framework)) {
        check_range(torch->minver, torch->maxver, "torch version", diagnostics);
    }
}

void check_stable_abi(const Config& config, Diagnostics& diagnostics) {
    const auto* torch = std::get_if<Torch>(&config.framework);
    if (torch == nullptr || !torch->stable_abi) {
        return;
    }
    const StableAbi& abi = *torch->stable_abi;
    if (!abi.all && abi.by_backend.empty()) {
        diagnostics.warning("empty-stable-abi",
                            abi.span,
                            "'stable-abi' of [torch] is empty: no backend uses the stable ABI");
    }
    const auto against_maxver = [&](const Located<Version>& version) {
        if (torch->maxver && version.value > torch->maxver->value) {
            diagnostics.warning("stable-abi-above-maxver",
                                version.span,
                                fmt::format("the stable ABI of torch {} needs that torch, maxver "
                                            "of [torch] is {}",
                                            version.value.to_text(),
                                            torch->maxver->value.to_text()));
        }
    };
    if (abi.all) {
        against_maxver(*abi.all);
    }
    for (const auto& [backend, version] : abi.by_backend) {
        against_maxver(version);
        if (!lists_backend(config, backend)) {
            diagnostics.warning("unlisted-backend",
                                version.span,
                                fmt::format("'stable-abi' names '{}', which is not in 'backends' "
                                            "of [general]",
                                            backend::to_text(backend)));
        }
    }
}

void check_archs(const std::optional<Strings>& archs, BackendId backend, Diagnostics& diagnostics) {
    if (!archs) {
        return;
    }
    if (archs->empty()) {
        return;
    }
    for (const Located<std::string>& arch : *archs) {
        if (auto problem = backend::check_arch(backend, arch.value)) {
            diagnostics.warning(
                "unknown-arch", arch.span, std::move(problem->message), std::move(problem->notes));
        }
    }
}

void check_all_archs(const Config& config, Diagnostics& diagnostics) {
    for (const Section& section : config.sections) {
        check_archs(section.cuda_capabilities, BackendId::cuda, diagnostics);
        check_archs(section.rocm_archs, BackendId::rocm, diagnostics);
    }
    if (const auto* noarch = std::get_if<TorchNoarch>(&config.framework)) {
        check_archs(noarch->cuda_capabilities, BackendId::cuda, diagnostics);
        check_archs(noarch->rocm_archs, BackendId::rocm, diagnostics);
    }
}

void check_license(const Config& config, Diagnostics& diagnostics) {
    const std::string id = to_lower(config.license.value);
    const bool reported = config.edition < Edition::v4 && id.empty();
    if (reported || std::ranges::binary_search(known_licenses(), std::string_view{id})) {
        return;
    }
    if (id.empty()) {
        diagnostics.warning("unknown-license", config.license.span, "'license' is empty");
        return;
    }
    std::vector<std::string> notes = suggestion_note(id, known_licenses());
    if (notes.empty()) {
        notes.emplace_back("use the hub's or SPDX's id, or 'other'");
    }
    diagnostics.warning(
        "unknown-license",
        config.license.span,
        fmt::format("licence '{}' is not known", escape_control(config.license.value)),
        std::move(notes));
}

/// Section by section: a name for the wrong backend compiles nothing that could use it.
void check_native_depends(const Config& config, Diagnostics& diagnostics) {
    for (const Section& section : config.sections) {
        for (const Located<NativeDependency>& dependency : section.depends) {
            const std::string_view name = to_text(dependency.value);
            const BackendId backend = section.backend.value;
            const bool foreign = (name.starts_with("cutlass") && backend != BackendId::cuda) ||
                                 (name == "sycl_tla" && backend != BackendId::xpu) ||
                                 (name == "metal-cpp" && backend != BackendId::metal);
            if (foreign) {
                diagnostics.warning("odd-dependency",
                                    dependency.span,
                                    fmt::format("'{}' is of no use to backend '{}'",
                                                name,
                                                backend::to_text(backend)));
            }
        }
    }
}

void check_python_names(const Strings& names,
                        std::optional<BackendId> backend,
                        Diagnostics& diagnostics) {
    for (const Located<std::string>& name : names) {
        std::vector<std::string_view> usable;
        for (const PythonDependency& row : known_python_dependencies()) {
            if (!row.backend || row.backend == backend) {
                usable.push_back(row.name);
            }
        }
        if (std::ranges::find(usable, name.value) != usable.end()) {
            continue;
        }
        const std::string where =
            backend ? fmt::format(" for backend '{}'", backend::to_text(*backend)) : std::string{};
        std::vector<std::string> notes = suggestion_note(name.value, usable);
        for (const PythonDependency& row : known_python_dependencies()) {
            if (row.name == name.value && row.backend) {
                notes = {fmt::format("put it under [general.{}]", backend::to_text(*row.backend))};
            }
        }
        const std::vector<std::string> all{usable.begin(), usable.end()};
        notes.push_back(fmt::format("known packages{}: {}", where, quoted_list(all)));
        diagnostics.warning(
            "unknown-python-dependency",
            name.span,
            fmt::format("python package '{}' is not known{}", escape_control(name.value), where),
            std::move(notes));
    }
}

void check_python_depends(const Config& config, Diagnostics& diagnostics) {
    check_python_names(config.python_depends, std::nullopt, diagnostics);
    for (const auto& [backend, table] : config.backend_tables) {
        check_python_names(table.python_depends, backend, diagnostics);
    }
}

void check_pyext(const Config& config, Diagnostics& diagnostics) {
    const auto& pyext = std::visit(
        [](const auto& framework) -> const std::optional<Strings>& { return framework.pyext; },
        config.framework);
    for (const Located<std::string>& extension : pyext.value_or(Strings{})) {
        if (extension.value.starts_with('.') || extension.value.empty()) {
            diagnostics.warning("bad-extension",
                                extension.span,
                                fmt::format("'{}' in 'pyext' matches no file: extensions are "
                                            "written without the dot",
                                            escape_control(extension.value)));
        }
    }
}

bool is_repo_part(std::string_view part) {
    const auto legal = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return !part.empty() && part.size() <= 96 && std::ranges::all_of(part, legal) &&
           part.front() != '.' && part.front() != '-' && part.back() != '.' && part.back() != '-' &&
           part.find("..") == std::string_view::npos && part.find("--") == std::string_view::npos;
}

void check_repo_id(const Located<std::string>& id, Diagnostics& diagnostics) {
    const std::vector<std::string_view> parts = split(id.value, '/');
    if (parts.size() != 2 || !std::ranges::all_of(parts, is_repo_part)) {
        diagnostics.warning("bad-repo-id",
                            id.span,
                            fmt::format("'{}' is no repository id", escape_control(id.value)),
                            {"write owner/name, each of letters, digits, '-', '_' and '.'"});
    }
}

/// The rules of git for the name of a branch.
bool is_branch_name(std::string_view name) {
    const auto legal = [](char c) {
        return static_cast<unsigned char>(c) > 0x20 && c != 0x7F &&
               std::string_view{"~^:?*[\\"}.find(c) == std::string_view::npos;
    };
    if (name.empty() || name == "@" || name.starts_with('-') || name.ends_with('.') ||
        name.find("..") != std::string_view::npos || name.find("@{") != std::string_view::npos ||
        !std::ranges::all_of(name, legal)) {
        return false;
    }
    return std::ranges::all_of(split(name, '/'), [](std::string_view part) {
        return !part.empty() && !part.starts_with('.') && !part.ends_with(".lock");
    });
}

void check_hub(const Config& config, Diagnostics& diagnostics) {
    if (config.hub.repo_id) {
        check_repo_id(*config.hub.repo_id, diagnostics);
    }
    if (config.hub.branch && !is_branch_name(config.hub.branch->value)) {
        diagnostics.warning("bad-branch",
                            config.hub.branch->span,
                            fmt::format("'{}' is no name that git takes for a branch",
                                        escape_control(config.hub.branch->value)));
    }
    const auto check_depends = [&](const std::vector<KernelDependency>& depends) {
        for (const KernelDependency& dependency : depends) {
            check_repo_id(dependency.repo_id, diagnostics);
            if (config.hub.repo_id && dependency.repo_id.value == config.hub.repo_id->value) {
                diagnostics.warning("depends-on-itself",
                                    dependency.span,
                                    fmt::format("the kernel depends on itself, '{}'",
                                                escape_control(dependency.repo_id.value)));
            }
        }
    };
    check_depends(config.kernel_depends);
    for (const auto& [backend, table] : config.backend_tables) {
        check_depends(table.kernel_depends);
    }
}

void check_tables(const Config& config, Diagnostics& diagnostics) {
    for (const auto& [backend, table] : config.backend_tables) {
        if (!lists_backend(config, backend)) {
            diagnostics.warning("unlisted-backend",
                                table.span,
                                fmt::format("[general.{0}] has no effect: '{0}' is not in "
                                            "'backends' of [general]",
                                            backend::to_text(backend)));
        }
    }
}

} // namespace

void validate(const Config& config, std::span<const RelPath> files, Diagnostics& diagnostics) {
    check_backend_list(config, diagnostics);
    check_sections(config, diagnostics);
    check_tables(config, diagnostics);
    check_sources(config, files, diagnostics);
    check_bounds(config, diagnostics);
    check_stable_abi(config, diagnostics);
    check_all_archs(config, diagnostics);
    check_license(config, diagnostics);
    check_native_depends(config, diagnostics);
    check_python_depends(config, diagnostics);
    check_pyext(config, diagnostics);
    check_hub(config, diagnostics);
}

} // namespace kb::config
