// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "digest/key_file.hpp"
#include "store/blob_store.hpp"
#include "store/seal.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kb::store {
namespace {

constexpr std::int64_t kTemporaryGrace = 24L * 3600;
/// A tree stands for a moment before its package is recorded.
constexpr std::int64_t kTreeGrace = 3600;

/// Disappears in one step, then is removed in peace.
Result<void>
remove_published(sys::FileSystem& fs, const sys::Path& path, const sys::Path& temporary) {
    if (sys::exists(fs, path)) {
        const sys::Path doomed = temporary / unique_name();
        KB_TRY(fs.set_mode(path, 0755));
        KB_TRY(fs.rename(path, doomed));
        KB_TRY(fs.remove_tree(doomed));
    }
    return fs.remove_file(manifest_path(path));
}

std::uint64_t bytes_in(sys::FileSystem& fs, const sys::Path& tree) {
    const auto text = fs.read_file(manifest_path(tree));
    const auto manifest = text ? FileManifest::parse(*text) : Result<FileManifest>{text.error()};
    std::uint64_t bytes = 0;
    if (manifest) {
        for (const ManifestEntry& entry : manifest->entries) {
            bytes += entry.size;
        }
    }
    return bytes;
}

/// What differs between what the manifest promises and what lies there; "" when nothing.
std::string difference(sys::FileSystem& fs,
                       const sys::Path& tree,
                       const FileManifest& promised,
                       const FileManifest& found) {
    std::map<RelPath, const ManifestEntry*> by_path;
    for (const ManifestEntry& entry : found.entries) {
        by_path.emplace(entry.path, &entry);
    }
    for (const ManifestEntry& entry : promised.entries) {
        const auto there = by_path.find(entry.path);
        if (there == by_path.end()) {
            return fmt::format("'{}' is missing", entry.path.text());
        }
        if (*there->second != entry) {
            return fmt::format("'{}' has changed", entry.path.text());
        }
        if (entry.kind != EntryKind::symlink) {
            const auto info = fs.stat(tree / entry.path.text(), sys::FollowLinks::no);
            if (info && info->mtime_ns != kFixedTime * 1'000'000'000) {
                return fmt::format("'{}' has another time", entry.path.text());
            }
        }
        by_path.erase(there);
    }
    return by_path.empty()
               ? std::string{}
               : fmt::format("'{}' does not belong there", by_path.begin()->first.text());
}

/// The first file that has not the size or time that it was published with; "" when all have.
std::string changed_by_look(sys::FileSystem& fs, const sys::Path& tree) {
    const auto text = fs.read_file(manifest_path(tree));
    const auto manifest = text ? FileManifest::parse(*text) : Result<FileManifest>{text.error()};
    if (!manifest) {
        return "its manifest is damaged";
    }
    for (const ManifestEntry& entry : manifest->entries) {
        const auto info = fs.stat(tree / entry.path.text(), sys::FollowLinks::no);
        if (!info) {
            return fmt::format("'{}' is missing", entry.path.text());
        }
        const bool is_file = entry.kind != EntryKind::symlink;
        if (is_file && (info->size != entry.size || info->mtime_ns != kFixedTime * 1'000'000'000)) {
            return fmt::format("'{}' has changed", entry.path.text());
        }
    }
    return {};
}

} // namespace

Result<bool> Store::is_sound(std::string_view kind, const sys::Path& published) {
    const std::string name = fmt::format("{}/{}", kind, published.filename().string());
    if (sound_.contains(name)) {
        return true;
    }
    std::string why = changed_by_look(*fs_, published);
    if (why.empty()) {
        sound_.insert(name);
        return true;
    }
    KB_TRY(discard(kind, published, std::move(why)));
    return false;
}

Result<void> Store::discard(std::string_view kind, const sys::Path& published, std::string why) {
    StoreFinding finding{.name = fmt::format("{}/{}", kind, published.filename().string()),
                         .message = std::move(why)};
    const auto removed = remove_published(*fs_, published, directory_ / "tmp");
    if (!removed && sys::exists(*fs_, published)) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' in the store is damaged ({}) and cannot be taken "
                                            "away: {}; its owner has to run 'kernel-builder store "
                                            "verify --repair'",
                                            finding.name,
                                            finding.message,
                                            removed.error().message)};
    }
    discarded_.push_back(std::move(finding));
    return {};
}

Result<void>
Store::verify_tree(std::string_view kind, const std::string& hex, VerifyReport& report) {
    const sys::Path path = directory_ / kind / hex;
    const auto add = [&](std::string message) {
        report.findings.push_back(
            {.name = fmt::format("{}/{}", kind, hex), .message = std::move(message)});
    };
    ++report.trees;
    const auto text = fs_->read_file(manifest_path(path));
    if (!text) {
        add(text.error().to_text());
        return {};
    }
    const auto promised = FileManifest::parse(*text);
    if (!promised || (kind == "tree" && digest::sha256(*text).hex() != hex)) {
        add("its manifest is damaged");
        return {};
    }
    const auto found = read_manifest(path);
    if (!found) {
        add(found.error().to_text());
        return {};
    }
    report.files += found->entries.size();
    if (std::string message = difference(*fs_, path, *promised, *found); !message.empty()) {
        add(std::move(message));
    }
    return {};
}

Result<VerifyReport> Store::verify(Repair repair) {
    VerifyReport report;
    for (const std::string_view kind : {"tree", "root"}) {
        KB_TRY(const auto entries, fs_->list(directory_ / kind));
        for (const sys::DirEntry& entry : entries) {
            if (entry.type == sys::FileType::directory) {
                const std::size_t before = report.findings.size();
                KB_TRY(verify_tree(kind, entry.name, report));
                if (repair == Repair::yes && report.findings.size() > before) {
                    KB_TRY(discard(
                        kind, directory_ / kind / entry.name, report.findings.back().message));
                }
            }
        }
    }
    return report;
}

bool Store::older_than(const sys::Path& path, std::int64_t seconds) {
    // A stamp holds the time; for everything else the file system knows.
    const auto text = fs_->read_file(path, 64);
    std::int64_t when = 0;
    if (const auto stamp = text ? parse_unsigned(trim(*text)) : std::nullopt) {
        when = static_cast<std::int64_t>(*stamp);
    } else if (const auto info = fs_->stat(path, sys::FollowLinks::no)) {
        when = info->mtime_ns / 1'000'000'000;
    }
    return clock_->unix_seconds() - when >= seconds;
}

Result<std::vector<std::string>> Store::collect_packages(std::int64_t seconds,
                                                         CollectReport& report) {
    std::vector<std::string> live;
    KB_TRY(const auto packages, fs_->list(directory_ / "pkg"));
    for (const sys::DirEntry& package : packages) {
        const sys::Path path = directory_ / "pkg" / package.name;
        if (older_than(path / "used", seconds)) {
            KB_TRY(fs_->remove_tree(path));
            ++report.packages;
            continue;
        }
        const auto text = fs_->read_file(path / "manifest", 1U << 16U);
        const auto record =
            text ? digest::KeyFile::parse(*text) : Result<digest::KeyFile>{text.error()};
        if (record && record->lines().contains("tree")) {
            live.push_back(record->lines().at("tree"));
        }
    }
    std::ranges::sort(live);
    return live;
}

Result<void> Store::collect_trees(std::string_view kind,
                                  const std::vector<std::string>& live,
                                  std::int64_t grace_seconds,
                                  CollectReport& report) {
    KB_TRY(const auto entries, fs_->list(directory_ / kind));
    for (const sys::DirEntry& entry : entries) {
        if (entry.type != sys::FileType::directory) {
            continue;
        }
        const sys::Path path = directory_ / kind / entry.name;
        sys::Path stamp = path;
        stamp += kind == "root" ? ".used" : ".manifest";
        if (std::ranges::binary_search(live, entry.name) || !older_than(stamp, grace_seconds)) {
            continue;
        }
        report.bytes += bytes_in(*fs_, path);
        ++(kind == "root" ? report.roots : report.trees);
        KB_TRY(remove_published(*fs_, path, directory_ / "tmp"));
        if (kind == "root") {
            KB_TRY(fs_->remove_file(stamp));
        }
    }
    return {};
}

Result<CollectReport> Store::collect(const CollectOptions& options) {
    KB_TRY(const auto held, lock("collect"));
    CollectReport report;
    KB_TRY(collect_trees("root", {}, options.older_than_seconds, report));
    KB_TRY(const auto live, collect_packages(options.older_than_seconds, report));
    KB_TRY(collect_trees("tree", live, std::min(kTreeGrace, options.older_than_seconds), report));
    // An object that no tree links to any more has one name left.
    KB_TRY(const auto shards, fs_->list(directory_ / "obj" / "sha256"));
    for (const sys::DirEntry& shard : shards) {
        const sys::Path directory = directory_ / "obj" / "sha256" / shard.name;
        KB_TRY(const auto objects, fs_->list(directory));
        for (const sys::DirEntry& object : objects) {
            KB_TRY(const auto info, fs_->stat(directory / object.name, sys::FollowLinks::no));
            if (info.links <= 1) {
                KB_TRY(fs_->remove_file(directory / object.name));
            }
        }
    }
    KB_TRY(const auto temporaries, fs_->list(directory_ / "tmp"));
    for (const sys::DirEntry& entry : temporaries) {
        const sys::Path path = directory_ / "tmp" / entry.name;
        if (older_than(path, std::min(kTemporaryGrace, options.older_than_seconds))) {
            KB_TRY(fs_->remove_tree(path));
        }
    }
    return report;
}

} // namespace kb::store
