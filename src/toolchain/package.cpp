// SPDX-License-Identifier: Apache-2.0
#include "toolchain/package.hpp"

#include "base/text.hpp"
#include "digest/key_file.hpp"
#include "toolchain/host_view.hpp"

#include <fmt/format.h>

namespace kb::toolchain {

using backend::Requirement;

Result<std::optional<store::TreeRef>> find_tree(store::Store& store, const plan::LockEntry& entry) {
    KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
    KB_TRY(const Provider* provider, provider_of(requirement));
    return store.find_package(entry.id,
                              store::package_key(entry.sha256, provider->rules(requirement)));
}

Result<std::vector<plan::LockEntry>> missing_entries(std::span<const plan::LockEntry> entries,
                                                     store::Store& store) {
    std::vector<plan::LockEntry> out;
    for (const plan::LockEntry& entry : entries) {
        KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
        KB_TRY(const Provider* provider, provider_of(requirement));
        if (!provider->has_files) {
            continue;
        }
        KB_TRY(const auto tree, find_tree(store, entry));
        if (!tree) {
            out.push_back(entry);
        }
    }
    return out;
}

Result<store::TreeRef> add_package(store::Store& store,
                                   const Machine& machine,
                                   const Provider& provider,
                                   const Requirement& requirement,
                                   const plan::LockEntry& entry,
                                   const sys::Path& file) {
    const store::UnpackRules rules = provider.rules(requirement);
    KB_TRY(const sys::Path content, store.make_temporary());
    auto manifest = store::unpack(machine.fs, file, provider.archive(entry.file), rules, content);
    auto tree = manifest
                    ? store.add_package(
                          entry.id, store::package_key(entry.sha256, rules), content, *manifest)
                    : Result<store::TreeRef>{manifest.error()};
    if (!tree) {
        // What cannot be removed now is swept by collection.
        static_cast<void>(machine.fs.remove_tree(content).has_value());
    }
    return std::move(tree).context(fmt::format("unpacking '{}'", entry.file));
}

namespace {

Result<void> write_sources(sys::FileSystem& fs,
                           const std::vector<FileImage>& sources,
                           const sys::Path& directory) {
    for (const FileImage& source : sources) {
        const sys::Path path = directory / source.path.text();
        KB_TRY(fs.make_directories(path.parent_path()));
        KB_TRY(fs.write_scratch(path, source.content, source.mode));
    }
    return {};
}

sandbox::SandboxSpec make_spec(const sys::Path& work, const store::TreeRef& compiler) {
    return {.mounts = {{.host = compiler.path, .inside = "/usr"},
                       {.host = work, .inside = "/work", .access = sandbox::Access::read_write}},
            .links = {{.inside = "/bin", .target = "usr/bin"},
                      {.inside = "/lib", .target = "usr/lib"},
                      {.inside = "/lib64", .target = "usr/lib64"}},
            .environment = {{"PATH", "/usr/bin"},
                            {"HOME", "/home"},
                            {"LC_ALL", "C"},
                            {"TMPDIR", "/tmp"},
                            {"TZ", "UTC"},
                            {"SOURCE_DATE_EPOCH", std::to_string(store::kFixedTime)}},
            .working_directory = "/work",
            .argv = {"/usr/bin/sh", "make.sh"}};
}

/// The same where the level has no mounts: below a view of the compiler's root.
Result<sandbox::SandboxSpec>
make_host_spec(sys::FileSystem& fs, const sys::Path& work, const store::TreeRef& compiler) {
    const sys::Path view = work / "view";
    const std::vector<Root> roots{{.host = compiler.path, .mount = "/usr"}};
    KB_TRY(write_host_view(fs, view, roots, {}));
    KB_TRY(fs.make_directories(work / "tmp"));
    sandbox::SandboxSpec spec = make_spec(work, compiler);
    spec.mounts = {{.host = work, .inside = work.string(), .access = sandbox::Access::read_write}};
    spec.links.clear();
    spec.environment["PATH"] = (view / "bin").string() + ":/usr/bin:/bin";
    spec.environment["HOME"] = spec.environment["TMPDIR"] = (work / "tmp").string();
    spec.working_directory = work.string();
    spec.argv = {"/bin/sh", "make.sh"};
    return spec;
}

Result<void> run_confined(const sys::Path& work,
                          const store::TreeRef& compiler,
                          const Machine& machine,
                          const Confinement& confinement) {
    sandbox::SandboxSpec spec = make_spec(work, compiler);
    if (!sandbox::has_fixed_paths(confinement.level)) {
        KB_TRY(spec, make_host_spec(machine.fs, work, compiler));
    }
    KB_TRY(const sys::ProcessSpec process,
           sandbox::confine(spec, confinement.level, confinement.tools));
    KB_TRY(const sys::ProcessResult result, machine.processes.run(process));
    if (result.status.kind == sys::ExitStatus::Kind::interrupted) {
        return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
    }
    if (!result.status.ok()) {
        return Error{.code = ErrorCode::internal,
                     .message = fmt::format("the pinned compiler failed ({}): {}",
                                            result.status.to_text(),
                                            escape_control(trim(result.err)))};
    }
    return {};
}

Result<store::TreeRef> make_tree(std::string_view id,
                                 const digest::Digest& key,
                                 const std::vector<FileImage>& sources,
                                 const store::TreeRef& compiler,
                                 store::Store& store,
                                 const Machine& machine,
                                 const Confinement& confinement,
                                 const sys::Path& work) {
    KB_TRY(write_sources(machine.fs, sources, work));
    KB_TRY(run_confined(work, compiler, machine, confinement));
    KB_TRY(const store::FileManifest manifest, store.read_manifest(work / "out"));
    return store.add_package(id, key, work / "out", manifest);
}

} // namespace

Result<store::TreeRef> generate_tree(std::string_view id,
                                     const std::vector<FileImage>& sources,
                                     const store::TreeRef& compiler,
                                     store::Store& store,
                                     const Machine& machine,
                                     const Confinement& confinement) {
    digest::KeyFile recipe;
    recipe.set("compiler", compiler.digest.hex());
    for (const FileImage& source : sources) {
        recipe.set("source." + source.path.text(), digest::sha256(source.content).hex());
    }
    digest::Digest key = recipe.digest();
    KB_TRY(const auto first_look, store.find_package(id, key));
    if (first_look) {
        return *first_look;
    }
    if (confinement.level != sandbox::Level::namespaces) {
        // What a weaker level made has a name of its own, so that no stronger one uses it.
        recipe.set("sandbox", std::string{sandbox::to_text(confinement.level)});
        key = recipe.digest();
    }
    KB_TRY(const auto held, store.lock(fmt::format("generate-{}", id)));
    KB_TRY(const auto there, store.find_package(id, key));
    if (there) {
        return *there;
    }
    KB_TRY(const sys::Path work, store.make_temporary());
    auto tree = make_tree(id, key, sources, compiler, store, machine, confinement, work);
    static_cast<void>(machine.fs.remove_tree(work).has_value());
    return std::move(tree).context(fmt::format("making '{}'", id));
}

} // namespace kb::toolchain
