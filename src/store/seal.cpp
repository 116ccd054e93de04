// SPDX-License-Identifier: Apache-2.0
#include "store/seal.hpp"

#include "store/blob_store.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <string>

namespace kb::store {
namespace {

/// Directories below the root of a tree, each before what is in it.
std::set<std::string> directories_of(const FileManifest& manifest) {
    std::set<std::string> out;
    for (const ManifestEntry& entry : manifest.entries) {
        std::string_view parent = entry.path.parent();
        while (!parent.empty() && out.emplace(parent).second) {
            const std::size_t slash = parent.rfind('/');
            parent = slash == std::string_view::npos ? std::string_view{} : parent.substr(0, slash);
        }
    }
    return out;
}

/// The object to link to, or nothing when there is none that is whole. A damaged one is replaced:
/// else it would come back into every tree that is fetched again.
bool has_good_object(sys::FileSystem& fs, const sys::Path& object, const ManifestEntry& entry) {
    if (!sys::exists(fs, object)) {
        return false;
    }
    const auto found = hash_file(fs, object);
    if (found && found->digest == entry.digest) {
        return true;
    }
    static_cast<void>(fs.remove_file(object).has_value());
    return false;
}

} // namespace

sys::Path manifest_path(const sys::Path& tree) {
    sys::Path out = tree;
    out += ".manifest";
    return out;
}

sys::Path object_path(const sys::Path& objects, const ManifestEntry& entry) {
    const std::string hex = entry.digest.hex();
    const bool executable = entry.kind == EntryKind::executable;
    return objects / hex.substr(0, 2) / (executable ? hex + ".x" : hex);
}

Result<void>
seal_files(sys::FileSystem& fs, const sys::Path& content, const FileManifest& manifest) {
    for (const ManifestEntry& entry : manifest.entries) {
        const sys::Path path = content / entry.path.text();
        if (entry.kind != EntryKind::symlink) {
            KB_TRY(fs.set_mode(path, entry.kind == EntryKind::executable ? 0555 : 0444));
        }
        KB_TRY(fs.set_mtime(path, kFixedTime));
    }
    return {};
}

Result<void>
seal_directories(sys::FileSystem& fs, const sys::Path& content, const FileManifest& manifest) {
    const std::set<std::string> directories = directories_of(manifest);
    // A parent sorts before its children, so the reverse order is deepest first.
    for (auto it = directories.rbegin(); it != directories.rend(); ++it) {
        KB_TRY(fs.set_mode(content / *it, 0555));
        KB_TRY(fs.set_mtime(content / *it, kFixedTime));
    }
    return {};
}

Result<void> share_files(sys::FileSystem& fs,
                         const sys::Path& objects,
                         const sys::Path& content,
                         const FileManifest& manifest) {
    std::string shard;
    for (const ManifestEntry& entry : manifest.entries) {
        if (entry.kind == EntryKind::symlink || entry.size == 0) {
            continue;
        }
        const sys::Path path = content / entry.path.text();
        const sys::Path object = object_path(objects, entry);
        if (!has_good_object(fs, object, entry)) {
            KB_TRY(fs.make_directories(object.parent_path()));
            static_cast<void>(fs.hard_link(path, object).has_value());
            continue;
        }
        const sys::Path beside = path.parent_path() / (".share-" + unique_name());
        if (fs.hard_link(object, beside)) {
            KB_TRY(fs.rename(beside, path));
            // rename() of two names of one file does nothing and keeps both.
            KB_TRY(fs.remove_file(beside));
        }
    }
    return {};
}

Result<bool> RootBuilder::claim(const ManifestEntry& entry) {
    const auto [place, added] = entries_.emplace(entry.path, entry);
    if (!added) {
        if (place->second == entry) {
            return false;
        }
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("two parts of the root hold different files '{}'",
                                            entry.path.text())};
    }
    const sys::Path parent = content_ / std::string{entry.path.parent()};
    if (!sys::exists(*fs_, parent)) {
        KB_TRY(fs_->make_directories(parent));
    }
    return true;
}

Result<void> RootBuilder::add_tree(const sys::Path& tree,
                                   const FileManifest& manifest,
                                   const std::vector<PathRule>& moves) {
    for (const ManifestEntry& original : manifest.entries) {
        const auto moved = apply_rules(original.path.text(), moves);
        if (!moved) {
            continue;
        }
        KB_TRY(RelPath path, RelPath::parse(*moved));
        ManifestEntry entry = original;
        entry.path = std::move(path);
        KB_TRY(const bool is_new, claim(entry));
        if (!is_new) {
            continue;
        }
        const sys::Path target = content_ / entry.path.text();
        if (entry.kind == EntryKind::symlink) {
            KB_TRY(fs_->symlink(entry.target, target));
            continue;
        }
        const sys::Path source = tree / original.path.text();
        if (!fs_->hard_link(source, target)) {
            KB_TRY(fs_->copy_file(source, target)); // too many links, or links are forbidden
        }
    }
    return {};
}

Result<void> RootBuilder::add_file(const FileImage& file) {
    const ManifestEntry entry{.path = file.path,
                              .kind = file.mode == FileMode::executable ? EntryKind::executable
                                                                        : EntryKind::regular,
                              .size = file.content.size(),
                              .digest = digest::sha256(file.content)};
    KB_TRY(const bool is_new, claim(entry));
    return is_new ? fs_->write_scratch(content_ / file.path.text(), file.content, file.mode)
                  : Result<void>{};
}

Result<void> RootBuilder::add_link(const RelPath& path, const std::string& target) {
    KB_TRY(const bool is_new, claim({.path = path, .kind = EntryKind::symlink, .target = target}));
    return is_new ? fs_->symlink(target, content_ / path.text()) : Result<void>{};
}

FileManifest RootBuilder::finish() {
    FileManifest manifest;
    for (auto& [path, entry] : entries_) {
        manifest.entries.push_back(std::move(entry));
    }
    return manifest;
}

} // namespace kb::store
