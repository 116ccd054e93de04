// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include "digest/key_file.hpp"
#include "store/blob_store.hpp"
#include "store/seal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace kb::store {
namespace {

constexpr std::string_view kVersion = "kernel-builder store 1\n";

/// Ids hold '/', '#' and whatever a version may hold; a file name must not.
std::string escape_id(std::string_view id) {
    std::string out;
    for (const char c : id) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '+' || c == '-' ||
                           c == '@';
        if (plain && !(out.empty() && c == '.')) {
            out += c;
        } else {
            fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

std::string package_name(std::string_view id, const digest::Digest& key) {
    return escape_id(id) + "-" + key.hex().substr(0, 16);
}

std::string moves_text(const std::vector<PathRule>& moves) {
    std::string out;
    for (const PathRule& rule : moves) {
        fmt::format_to(std::back_inserter(out),
                       " {}={}",
                       rule.from,
                       rule.to ? *rule.to : std::string{"dropped"});
    }
    return out;
}

} // namespace

digest::Digest package_key(const digest::Digest& archive, const UnpackRules& rules) {
    return digest::sha256("archive " + archive.hex() + "\n" + rules.to_text());
}

std::string RootRecipe::to_text() const {
    digest::KeyFile key;
    key.set("format", "kernel-builder root 1");
    for (std::size_t i = 0; i < parts.size(); ++i) {
        key.set(fmt::format("part.{:04}", i), parts[i].tree.hex() + moves_text(parts[i].moves));
    }
    for (const FileImage& file : files) {
        key.set("file." + file.path.text(),
                fmt::format("{} {}",
                            file.mode == FileMode::executable ? "x" : "f",
                            digest::sha256(file.content).hex()));
    }
    for (const RootLink& link : links) {
        key.set("link." + link.path.text(), link.target);
    }
    return key.to_text();
}

digest::Digest RootRecipe::digest() const {
    return digest::sha256(to_text());
}

Result<Store> Store::open(sys::FileSystem& fs, sys::Clock& clock, sys::Path directory) {
    Store store{fs, clock, std::move(directory)};
    const sys::Path& root = store.directory_;
    for (const std::string_view name : {"obj/sha256", "pkg", "tree", "root", "locks", "tmp"}) {
        KB_TRY(fs.make_directories(root / name).context("opening the store"));
    }
    const auto version = fs.read_file(root / "VERSION", 4096);
    if (!version && version.error().code == ErrorCode::not_found) {
        KB_TRY(fs.write_atomic(root / "VERSION", kVersion, FileMode::regular));
        return store;
    }
    if (!version) {
        return version.error();
    }
    if (*version != kVersion) {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("'{}' is not a store of this version; give another "
                                            "directory with --store",
                                            root.string())};
    }
    return store;
}

Result<sys::FileLock> Store::lock(std::string_view name, const std::function<void()>& on_wait) {
    return sys::FileLock::acquire(directory_ / "locks" / (escape_id(name) + ".lock"), on_wait);
}

Result<sys::Path> Store::make_temporary() {
    sys::Path path = directory_ / "tmp" / unique_name();
    KB_TRY(fs_->make_directories(path));
    return path;
}

Result<void> Store::touch(const sys::Path& stamp) {
    return fs_->write_scratch(
        stamp, fmt::format("{}\n", clock_->unix_seconds()), FileMode::regular);
}

Result<std::optional<TreeRef>> Store::find_package(std::string_view id, const digest::Digest& key) {
    const sys::Path package = directory_ / "pkg" / package_name(id, key);
    const auto text = fs_->read_file(package / "manifest", 1U << 16U);
    if (!text) {
        return text.error().code == ErrorCode::not_found
                   ? Result<std::optional<TreeRef>>{std::nullopt}
                   : text.error();
    }
    KB_TRY(const auto record,
           digest::KeyFile::parse(*text).context(fmt::format("reading '{}'", package.string())));
    const auto& lines = record.lines();
    const auto tree = lines.find("tree");
    const auto full_key = lines.find("key");
    if (tree == lines.end() || full_key == lines.end() || full_key->second != key.hex()) {
        return std::optional<TreeRef>{}; // another package with the same 16 digits: make it anew
    }
    KB_TRY(const digest::Digest digest, digest::Digest::from_hex(tree->second));
    if (!sys::exists(*fs_, tree_path(digest))) {
        return std::optional<TreeRef>{};
    }
    KB_TRY(const bool sound, is_sound("tree", tree_path(digest)));
    if (!sound) {
        return std::optional<TreeRef>{};
    }
    // A store that we may only read has no stamps; collection is its owner's business.
    static_cast<void>(touch(package / "used").has_value());
    return std::optional{TreeRef{.digest = digest, .path = tree_path(digest)}};
}

Result<TreeRef> Store::add_package(std::string_view id,
                                   const digest::Digest& key,
                                   const sys::Path& content,
                                   const FileManifest& manifest) {
    const digest::Digest tree = manifest.digest();
    KB_TRY(publish(content, manifest, tree_path(tree)));
    digest::KeyFile record;
    record.set("id", id);
    record.set("key", key.hex());
    record.set("tree", tree.hex());
    const sys::Path package = directory_ / "pkg" / package_name(id, key);
    KB_TRY(fs_->make_directories(package));
    KB_TRY(touch(package / "used"));
    KB_TRY(fs_->write_atomic(package / "manifest", record.to_text(), FileMode::regular));
    return TreeRef{.digest = tree, .path = tree_path(tree)};
}

Result<FileManifest> Store::read_manifest(const sys::Path& content) {
    KB_TRY(const auto entries, sys::walk(*fs_, content));
    FileManifest manifest;
    for (const sys::WalkEntry& found : entries) {
        ManifestEntry entry{.path = found.path};
        const sys::Path path = content / found.path.text();
        switch (found.info.type) {
        case sys::FileType::directory:
            continue;
        case sys::FileType::symlink: {
            entry.kind = EntryKind::symlink;
            KB_TRY(entry.target, fs_->read_link(path));
            break;
        }
        case sys::FileType::regular: {
            entry.kind =
                (found.info.mode & 0111U) != 0 ? EntryKind::executable : EntryKind::regular;
            KB_TRY(const StoredBlob blob, hash_file(*fs_, path));
            entry.size = blob.size;
            entry.digest = blob.digest;
            break;
        }
        case sys::FileType::other:
            return Error{.code = ErrorCode::corrupt,
                         .message =
                             fmt::format("'{}' is neither a file nor a link", path.string())};
        }
        manifest.entries.push_back(std::move(entry));
    }
    manifest.sort();
    return manifest;
}

Result<FileManifest> Store::manifest_of(const digest::Digest& tree) {
    const sys::Path path = manifest_path(tree_path(tree));
    KB_TRY(const std::string text, fs_->read_file(path));
    return FileManifest::parse(text).context(fmt::format("reading '{}'", path.string()));
}

sys::Path Store::tree_path(const digest::Digest& tree) const {
    return directory_ / "tree" / tree.hex();
}

Result<void>
Store::publish(const sys::Path& content, const FileManifest& manifest, const sys::Path& target) {
    if (sys::exists(*fs_, target)) {
        return fs_->remove_tree(content);
    }
    KB_TRY(seal_files(*fs_, content, manifest));
    KB_TRY(share_files(*fs_, directory_ / "obj" / "sha256", content, manifest));
    KB_TRY(seal_directories(*fs_, content, manifest));
    KB_TRY(fs_->write_atomic(manifest_path(target), manifest.to_text(), FileMode::regular));
    KB_TRY(fs_->sync_file_system(content));
    const auto renamed = fs_->rename(content, target);
    if (!renamed) {
        // Another process may have been faster; its tree is the same.
        return sys::exists(*fs_, target) ? fs_->remove_tree(content) : renamed;
    }
    KB_TRY(fs_->sync_directory(target.parent_path()));
    KB_TRY(fs_->set_mode(target, 0555));
    return fs_->set_mtime(target, kFixedTime);
}

Result<FileManifest> Store::link_parts(const RootRecipe& recipe, const sys::Path& content) {
    RootBuilder builder{*fs_, content};
    for (const RootPart& part : recipe.parts) {
        KB_TRY(const FileManifest manifest, manifest_of(part.tree));
        KB_TRY(builder.add_tree(tree_path(part.tree), manifest, part.moves));
    }
    for (const FileImage& file : recipe.files) {
        KB_TRY(builder.add_file(file));
    }
    for (const RootLink& link : recipe.links) {
        KB_TRY(builder.add_link(link.path, link.target));
    }
    return builder.finish();
}

Result<TreeRef> Store::compose(const RootRecipe& recipe) {
    const digest::Digest digest = recipe.digest();
    const TreeRef root{.digest = digest, .path = directory_ / "root" / digest.hex()};
    sys::Path stamp = root.path;
    stamp += ".used";
    if (sys::exists(*fs_, root.path)) {
        KB_TRY(is_sound("root", root.path));
    }
    if (!sys::exists(*fs_, root.path)) {
        KB_TRY(const auto held, lock("root-" + digest.hex()));
        if (!sys::exists(*fs_, root.path)) {
            KB_TRY(const sys::Path content, make_temporary());
            auto manifest = link_parts(recipe, content);
            auto published =
                manifest ? publish(content, *manifest, root.path) : Result<void>{manifest.error()};
            if (!published) {
                // What cannot be removed now is swept by collection.
                static_cast<void>(fs_->remove_tree(content).has_value());
                return std::move(published)
                    .context(fmt::format("composing root '{}'", recipe.name))
                    .error();
            }
        }
    }
    static_cast<void>(touch(stamp).has_value());
    return root;
}

} // namespace kb::store
