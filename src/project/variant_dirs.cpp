// SPDX-License-Identifier: Apache-2.0
#include "project/variant_dirs.hpp"

#include "base/text.hpp"
#include "project/hash_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace kb::project {

namespace {

constexpr std::uint64_t kMaxMetadataBytes = 16UL << 20U;

bool holds_metadata(sys::FileSystem& fs, const sys::Path& directory) {
    const auto info = fs.stat(directory / "metadata.json");
    return info && info->type == sys::FileType::regular;
}

/// Children with metadata; nothing for what cannot be listed (a place that is not there).
std::vector<VariantDir> variants_in(sys::FileSystem& fs, const sys::Path& place) {
    std::vector<VariantDir> out;
    const auto entries = fs.list(place);
    if (!entries) {
        return out;
    }
    for (const sys::DirEntry& entry : *entries) {
        const sys::Path path = place / entry.name;
        if (holds_metadata(fs, path)) {
            out.push_back({.name = entry.name, .path = path});
        }
    }
    return out;
}

/// What an entry of a variant is as a file; nothing for a directory.
Result<std::optional<sys::FileInfo>>
file_at(sys::FileSystem& fs, const sys::Path& path, const sys::FileInfo& own) {
    if (own.type == sys::FileType::directory) {
        return std::optional<sys::FileInfo>{};
    }
    if (own.type == sys::FileType::regular) {
        return std::optional{own};
    }
    if (own.type == sys::FileType::symlink) {
        const auto led = fs.stat(path);
        if (led && led->type == sys::FileType::regular) {
            return std::optional{*led};
        }
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' is a link that leads to no file; put what it "
                                            "leads to in its place, or delete it",
                                            escape_control(path.string()))};
    }
    return Error{.code = ErrorCode::corrupt,
                 .message = fmt::format("'{}' is neither a file nor a directory; delete it",
                                        escape_control(path.string()))};
}

} // namespace

Result<Discovery> discover_variants(sys::FileSystem& fs, const sys::Path& directory) {
    KB_TRY(const sys::FileInfo info, fs.stat(directory));
    if (info.type != sys::FileType::directory) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' is no directory", directory.string())};
    }
    // "x/" has no last component to name the variant by.
    const sys::Path named = directory.has_filename() ? directory : directory.parent_path();
    if (holds_metadata(fs, named)) {
        const std::string name = std::filesystem::absolute(named).lexically_normal().filename();
        return Discovery{.place = named.parent_path(), .variants = {{.name = name, .path = named}}};
    }
    Discovery out;
    for (const sys::Path& place : {directory / "build", directory / "result", directory}) {
        std::vector<VariantDir> found = variants_in(fs, place);
        if (found.empty()) {
            continue;
        }
        if (out.variants.empty()) {
            out.place = place;
            out.variants = std::move(found);
        } else {
            out.shadowed.push_back(place);
        }
    }
    if (out.variants.empty()) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format(
                         "no built variant (a directory with metadata.json) in '{0}/build', "
                         "'{0}/result' or '{0}'; 'kernel-builder build' makes them",
                         directory.string())};
    }
    return out;
}

Result<package::FileList> read_file_list(sys::FileSystem& fs, const sys::Path& directory) {
    return read_file_list(fs, directory, hash_file);
}

Result<package::FileList>
read_file_list(sys::FileSystem& fs, const sys::Path& directory, const HashFile& hash) {
    KB_TRY(const std::vector<sys::WalkEntry> entries, sys::walk(fs, directory));
    package::FileList out;
    for (const sys::WalkEntry& entry : entries) {
        const sys::Path path = directory / entry.path.text();
        KB_TRY(const std::optional<sys::FileInfo> info, file_at(fs, path, entry.info));
        if (!info) {
            continue;
        }
        package::FileEntry file{.path = entry.path,
                                .mode = (info->mode & 0111U) != 0 ? FileMode::executable
                                                                  : FileMode::regular};
        file.size = info->size;
        KB_TRY(file.sha256, hash(path));
        out.push_back(std::move(file));
    }
    return out;
}

Result<package::Metadata> read_metadata(sys::FileSystem& fs, const VariantDir& variant) {
    const sys::Path path = variant.path / "metadata.json";
    KB_TRY(const std::string text, fs.read_file(path, kMaxMetadataBytes));
    return package::parse_metadata(text).context(fmt::format("reading '{}'", path.string()));
}

Result<package::Package> read_package(sys::FileSystem& fs, const VariantDir& variant) {
    package::Package out{.variant = variant.name, .directory = variant.path.string()};
    KB_TRY(out.metadata, read_metadata(fs, variant));
    KB_TRY(out.files, read_file_list(fs, variant.path));
    return out;
}

digest::Digest digest_of(const package::FileList& files) {
    digest::Sha256 hasher;
    for (const package::FileEntry& file : files) {
        if (file.path.text() == "metadata.json" || package::is_digested(file.path)) {
            hasher.update(fmt::format("{} {} {}\n",
                                      file.path.text(),
                                      file.sha256.hex(),
                                      file.mode == FileMode::executable ? 'x' : '-'));
        }
    }
    return hasher.finish();
}

Result<void> publish_variant(sys::FileSystem& fs,
                             const sys::Path& staged,
                             const sys::Path& root,
                             std::string_view name) {
    const sys::Path target = root / "build" / name;
    KB_TRY(fs.make_directories(root / "build"));
    const Result<sys::FileInfo> there = fs.stat(target, sys::FollowLinks::no);
    if (!there && there.error().code != ErrorCode::not_found) {
        return there.error();
    }
    if (!there) {
        KB_TRY(fs.rename(staged, target));
        return fs.sync_directory(root / "build");
    }
    if (there->type != sys::FileType::directory || !sys::exists(fs, target / "metadata.json")) {
        return Error{.code = ErrorCode::denied,
                     .message =
                         fmt::format("'{}' is not a variant that kernel-builder made; move it away",
                                     target.string())};
    }
    KB_TRY(fs.exchange(staged, target));
    KB_TRY(fs.sync_directory(root / "build"));
    return fs.remove_tree(staged); // now the old package
}

} // namespace kb::project
