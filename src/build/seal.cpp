// SPDX-License-Identifier: Apache-2.0
#include "build/seal.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "build/inspect.hpp"
#include "generate/package_files.hpp"
#include "package/attestation.hpp"
#include "package/source_archive.hpp"
#include "project/attestations.hpp"
#include "project/hash_cache.hpp"
#include "project/variant_dirs.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::build {

namespace {

Result<void>
stage_file(sys::FileSystem& fs, const sys::Path& path, std::string_view content, FileMode mode) {
    KB_TRY(fs.make_directories(path.parent_path()));
    KB_TRY(fs.write_scratch(path, content, mode));
    KB_TRY(fs.set_mode(path, mode == FileMode::executable ? 0755 : 0644));
    return fs.set_mtime(path, backend::kSourceDateEpoch);
}

std::string ops_module(const SealContext& context, const plan::PlannedVariant& variant) {
    const backend::FrameworkId framework = variant.name.variant().framework;
    const generate::Maturity maturity = generate::maturity_of(context.project.settings);
    if (framework == backend::FrameworkId::torch_noarch) {
        return generate::noarch_ops_module(
            context.project.config.name.module_name(), context.plan.unique_id, maturity);
    }
    return generate::ops_module(framework, variant.ops_id, maturity);
}

/// A file of the author's, as it was when the build began.
Result<FileImage>
read_source(const SealContext& context, const RelPath& path, const digest::Digest& sha256) {
    const sys::Path place = context.project.root() / path.text();
    KB_TRY(std::string text, context.fs.read_file(place));
    if (digest::sha256(text) != sha256) {
        return Error{
            .code = ErrorCode::corrupt,
            .message = fmt::format("'{}' changed during the build; run it again", place.string())};
    }
    return FileImage{.path = path, .content = std::move(text)};
}

/// What somebody needs to build this again, beside the lock: build.toml and what it names.
Result<std::string> archive_sources(const SealContext& context) {
    const project::ProjectText& text = context.project.text;
    std::vector<FileImage> files = {
        {.path = RelPath::literal("build.toml"), .content = text.config_text}};
    if (text.settings_text) {
        files.push_back(
            {.path = RelPath::literal("kernel-builder.toml"), .content = *text.settings_text});
    }
    for (const plan::SourceFile& file : context.snapshot.files) {
        if (!file.generated) {
            KB_TRY(FileImage image, read_source(context, file.path, file.sha256));
            files.push_back(std::move(image));
        }
    }
    const RelPath folder = project::package_directory(context.project.config);
    for (const plan::PackageFile& file : context.snapshot.package) {
        KB_TRY(FileImage image, read_source(context, folder / file.path, file.sha256));
        files.push_back(std::move(image));
    }
    std::ranges::sort(files, {}, &FileImage::path);
    // A declared source may lie in the package. Not std::ranges::unique: clang 14 cannot read it.
    files.erase(
        std::unique(files.begin(),
                    files.end(),
                    [](const FileImage& a, const FileImage& b) { return a.path == b.path; }),
        files.end());
    return package::write_source_archive(std::move(files));
}

/// Statement and bill of materials of a finished package.
Result<void> attest(const SealContext& context,
                    const plan::PlannedVariant& variant,
                    const package::Package& finished) {
    package::AttestationInput input{.package = finished};
    for (const plan::SourceFile& file : context.snapshot.files) {
        input.sources.push_back({.id = file.path.text(), .sha256 = file.sha256});
    }
    const backend::Platform platform = variant.name.variant().platform;
    for (const backend::Requirement& requirement : variant.requirements()) {
        for (const plan::LockEntry* entry :
             plan::entries_for(context.lock, requirement, platform)) {
            input.toolchain.push_back(
                {.id = entry->id, .file = entry->file, .sha256 = entry->sha256});
        }
    }
    std::ranges::sort(input.sources, {}, &package::Ingredient::id);
    std::ranges::sort(input.toolchain, {}, &package::Ingredient::id);
    const sys::Path directory =
        project::attestation_directory(context.project.root() / "build" / finished.variant);
    KB_TRY(const std::string archive, archive_sources(context));
    input.source_archive = digest::sha256(archive);
    KB_TRY(project::write_named_blob(context.fs, directory, project::kSourcesKind, archive));
    KB_TRY(project::write_named_blob(
        context.fs, directory, project::kLockKind, plan::write_lock(context.lock)));
    project::Attestations said{.sbom = package::write_sbom(input)};
    said.statement = package::write_statement(input, said.sbom);
    return project::write_attestations(context.fs, directory, finished.variant, said);
}

} // namespace

Result<void> assemble(const SealContext& context, const plan::PlannedVariant& variant) {
    sys::FileSystem& fs = context.fs;
    const sys::Path stage = context.workspace.stage(variant.name.text());
    KB_TRY(fs.remove_tree(stage));
    KB_TRY(fs.make_directories(stage));
    const sys::Path origin =
        context.project.root() / project::package_directory(context.project.config).text();
    for (const plan::PackageFile& file : context.snapshot.package) {
        KB_TRY(const std::string text, fs.read_file(origin / file.path.text()));
        if (digest::sha256(text) != file.sha256) {
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format("'{}' changed during the build; run it again",
                                                (origin / file.path.text()).string())};
        }
        KB_TRY(stage_file(fs, stage / file.path.text(), text, FileMode::regular));
    }
    KB_TRY(stage_file(fs, stage / "_ops.py", ops_module(context, variant), FileMode::regular));
    if (!variant.link.output.empty()) {
        const sys::Path library = stage / sys::Path{variant.link.output}.filename();
        KB_TRY(fs.copy_file(context.workspace.work() / variant.link.output, library));
        KB_TRY(fs.set_mode(library, 0755));
        KB_TRY(fs.set_mtime(library, backend::kSourceDateEpoch));
    }
    return {};
}

check::Promise promise_of(const plan::PlannedVariant& variant) {
    const plan::Promises& promises = variant.promises;
    check::Promise out{.variant = variant.name.variant(),
                       .manylinux = promises.libc_policy,
                       .torch_stable_abi = promises.torch_stable_abi};
    if (!promises.python_abi.empty()) {
        out.python_abi = promises.python_abi;
    }
    if (promises.device_code != backend::DeviceCode::none) {
        out.archs = promises.archs;
    }
    return out;
}

Result<check::Report> check_stage(const SealContext& context, const plan::PlannedVariant& variant) {
    check::CheckInput input{.variant = variant.name.text(),
                            .promise = promise_of(variant),
                            .allow_unchecked = context.allow_unchecked,
                            .suppressions = suppressions_of(context.project.settings),
                            .machine_places = machine_places(context.project.root())};
    KB_TRY(input.libraries,
           inspect_libraries(context.fs,
                             context.workspace.stage(variant.name.text()),
                             {.threads = 2, .machine_places = input.machine_places}));
    return run_checks(std::move(input));
}

Result<digest::Digest> seal(const SealContext& context, const plan::PlannedVariant& variant) {
    sys::FileSystem& fs = context.fs;
    const sys::Path stage = context.workspace.stage(variant.name.text());
    generate::MetadataInput input{.config = context.project.config,
                                  .backend = variant.name.variant().backend,
                                  .unique_id = context.plan.unique_id};
    if (variant.promises.device_code != backend::DeviceCode::none) {
        input.archs = variant.promises.archs; // check_stage() compared them with the binary
    }
    input.maturity = generate::maturity_of(context.project.settings);
    input.provenance = context.provenance;
    input.provenance->build_key = variant.key.id();
    package::Metadata metadata = generate::make_metadata(input);
    KB_TRY(const package::FileList files, project::read_file_list(fs, stage));
    metadata.digest = package::compute_digest(files);
    KB_TRY(stage_file(
        fs, stage / "metadata.json", package::write_metadata(metadata), FileMode::regular));
    KB_TRY(const package::FileList whole, project::read_file_list(fs, stage));
    KB_TRY(project::publish_variant(fs, stage, context.project.root(), variant.name.text()));
    KB_TRY(attest(context,
                  variant,
                  {.variant = variant.name.text(),
                   .metadata = std::move(metadata),
                   .files = whole,
                   .directory = {}}));
    return project::digest_of(whole);
}

} // namespace kb::build
