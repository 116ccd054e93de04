// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/upload_input.hpp"

#include "package/attestation.hpp"
#include "project/attestations.hpp"
#include "store/blob_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace kb::cli {

namespace {

Result<upload::LocalFile>
local_file(sys::FileSystem& fs, const sys::Path& source, const std::string& place) {
    KB_TRY(RelPath path, RelPath::parse(place));
    KB_TRY(const std::string content, fs.read_file(source));
    return upload::LocalFile{.path = std::move(path),
                             .source = source.string(),
                             .size = content.size(),
                             .sha256 = digest::sha256(content)};
}

} // namespace

Result<void> read_extras(sys::FileSystem& fs,
                         const sys::Path& place,
                         const sys::Path& root,
                         upload::UploadInput& out) {
    if (sys::exists(fs, place / "CARD.md")) {
        KB_TRY(out.card, local_file(fs, place / "CARD.md", "README.md"));
    }
    const sys::Path benchmarks = root / "benchmarks";
    const auto entries = fs.list(benchmarks);
    if (!entries) {
        return entries.error().code == ErrorCode::not_found ? Result<void>{}
                                                            : Error{entries.error()};
    }
    out.has_benchmarks_folder = true;
    for (const sys::DirEntry& entry : *entries) {
        if (entry.type == sys::FileType::regular && entry.name.starts_with("benchmark") &&
            entry.name.ends_with(".py")) {
            KB_TRY(upload::LocalFile file,
                   local_file(fs, benchmarks / entry.name, "benchmarks/" + entry.name));
            out.benchmarks.push_back(std::move(file));
        }
    }
    return {};
}

Result<std::map<std::string, std::vector<check::Finding>>>
read_statements(sys::FileSystem& fs, Sources sources, upload::UploadInput& out) {
    std::map<std::string, std::vector<check::Finding>> untrue;
    std::set<std::string> names; // variants of one build name the same lock and archive
    for (const package::Package& package : out.packages) {
        const sys::Path directory = project::attestation_directory(package.directory);
        const auto said = project::read_attestations(fs, directory, package.variant);
        if (!said) {
            if (said.error().code == ErrorCode::not_found) {
                continue; // made by another tool, or copied without
            }
            return said.error();
        }
        auto findings = package::judge_statement(package, said->statement, said->sbom);
        if (!findings.empty()) {
            untrue.emplace(package.variant, std::move(findings));
            continue;
        }
        KB_TRY(const std::vector<std::string> found,
               project::attestation_names(fs, directory, package.variant, *said));
        for (const std::string& name : found) {
            const bool is_archive = name.ends_with(project::kSourcesKind);
            if ((is_archive && sources == Sources::leave_out) || !names.insert(name).second) {
                continue;
            }
            KB_TRY(upload::LocalFile file, local_file(fs, directory / name, "provenance/" + name));
            out.provenance.push_back(std::move(file));
        }
    }
    return untrue;
}

Result<void> check_writable(sys::FileSystem& fs, const sys::Path& file) {
    const auto info = fs.stat(file);
    if (info && info->type != sys::FileType::regular) {
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("'{}' is not a file", file.string())};
    }
    // A name that no file of the user's has.
    const sys::Path probe = file.parent_path() / fmt::format(".{}", store::unique_name());
    KB_TRY(fs.write_scratch(probe, "", FileMode::regular)
               .context(fmt::format("writing '{}'", file.string())));
    return fs.remove_file(probe);
}

} // namespace kb::cli
