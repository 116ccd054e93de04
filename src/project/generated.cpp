// SPDX-License-Identifier: Apache-2.0
#include "project/generated.hpp"

#include "base/text.hpp"
#include "digest/digest.hpp"
#include "document/json.hpp"
#include "project/project.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace kb::project {

namespace {

constexpr std::string_view kSchema = "kernel-builder/manifest/1";
/// Path -> sha256 of what we wrote; while files are being replaced "old new", so that a killed run
/// leaves nothing that the next one takes for somebody else's.
using Manifest = std::map<std::string, std::string>;

bool is_ours(const Manifest& manifest, const std::string& path, const std::string& sha256) {
    const auto known = manifest.find(path);
    return known != manifest.end() && !sha256.empty() &&
           known->second.find(sha256) != std::string::npos;
}

Result<Manifest> read_manifest(sys::FileSystem& fs, const sys::Path& file) {
    Result<std::string> text = fs.read_file(file);
    if (!text && text.error().code == ErrorCode::not_found) {
        return Manifest{};
    }
    if (!text) {
        return std::move(text).error();
    }
    KB_TRY(const document::Node root, document::parse_json(*text, {.name = file.string()}));
    const document::Node* files = root.find("files");
    if (root.text_or("schema") != kSchema || files == nullptr || !files->is_table()) {
        return Error{
            .code = ErrorCode::corrupt,
            .message = fmt::format("'{}' is not a manifest; delete it to treat all files as yours",
                                   file.string())};
    }
    Manifest out;
    for (const document::Entry& entry : files->entries()) {
        if (entry.value.is_string() && RelPath::parse(entry.key)) {
            out.emplace(entry.key, entry.value.as_string());
        }
    }
    return out;
}

std::string manifest_text(const Manifest& manifest) {
    document::Node files = document::Node::table();
    for (const auto& [path, sha256] : manifest) {
        files.set(path, sha256);
    }
    return document::write_canonical_json(
        document::Node::table({{"schema", kSchema}, {"files", std::move(files)}}));
}

/// Digest of what stands there now, "" when nothing does.
Result<std::string> current_digest(sys::FileSystem& fs, const sys::Path& path) {
    const Result<sys::FileInfo> info = fs.stat(path, sys::FollowLinks::no);
    if (!info) {
        return info.error().code == ErrorCode::not_found ? Result<std::string>{std::string{}}
                                                         : Result<std::string>{info.error()};
    }
    if (info->type != sys::FileType::regular) {
        return std::string{"not a regular file"};
    }
    KB_TRY(const std::string text, fs.read_file(path));
    return digest::sha256(text).hex();
}

struct Decision {
    GeneratedReport report{};
    std::vector<const FileImage*> to_write{};
    std::vector<std::string> to_remove{};
};

Result<Decision> decide(sys::FileSystem& fs,
                        const sys::Path& root,
                        std::span<const FileImage> images,
                        const Manifest& ours,
                        Force force) {
    Decision out;
    std::set<std::string> wanted;
    for (const FileImage& image : images) {
        const std::string& path = image.path.text();
        wanted.insert(path);
        KB_TRY(const std::string now, current_digest(fs, root / path));
        if (now == digest::sha256(image.content).hex()) {
            out.report.unchanged.push_back(path);
        } else if (now.empty() || is_ours(ours, path, now) || force == Force::yes) {
            out.report.written.push_back(path);
            out.to_write.push_back(&image);
        } else {
            out.report.kept.push_back(path);
        }
    }
    for (const auto& [path, digests] : ours) {
        if (wanted.contains(path)) {
            continue;
        }
        KB_TRY(const std::string now, current_digest(fs, root / path));
        if (now.empty()) {
            continue;
        }
        if (is_ours(ours, path, now) || force == Force::yes) {
            out.report.removed.push_back(path);
            out.to_remove.push_back(path);
        } else {
            out.report.kept.push_back(path);
        }
    }
    std::ranges::sort(out.report.written);
    std::ranges::sort(out.report.unchanged);
    std::ranges::sort(out.report.kept);
    return out;
}

/// Removes the directory and its parents below `root` as long as they are empty.
void remove_empty_parents(sys::FileSystem& fs, const sys::Path& root, const RelPath& path) {
    for (std::string parent{path.parent()}; !parent.empty();
         parent = std::string{RelPath::literal(parent).parent()}) {
        const Result<std::vector<sys::DirEntry>> entries = fs.list(root / parent);
        if (!entries || !entries->empty() || !fs.remove_tree(root / parent)) {
            return;
        }
    }
}

} // namespace

Result<GeneratedReport> write_generated(sys::FileSystem& fs,
                                        const sys::Path& root,
                                        const sys::Path& state,
                                        std::span<const FileImage> images,
                                        Force force,
                                        DryRun dry_run) {
    const sys::Path manifest_file = state / "manifest.json";
    KB_TRY(const Manifest manifest, read_manifest(fs, manifest_file));
    KB_TRY(Decision decision, decide(fs, root, images, manifest, force));
    if (dry_run == DryRun::yes || (!decision.report.kept.empty() && force == Force::no)) {
        return decision.report;
    }
    Manifest after;
    for (const FileImage& image : images) {
        after.emplace(image.path.text(), digest::sha256(image.content).hex());
    }
    if (after == manifest && decision.to_write.empty() && decision.to_remove.empty()) {
        return decision.report;
    }
    KB_TRY(make_state_directory(fs, state));
    Manifest during = manifest;
    for (const auto& [path, sha256] : after) {
        std::string& digests = during[path];
        digests += digests.empty() || digests == sha256 ? "" : " ";
        digests = digests == sha256 ? sha256 : digests + sha256;
    }
    KB_TRY(fs.write_atomic(manifest_file, manifest_text(during), FileMode::regular));
    for (const FileImage* image : decision.to_write) {
        KB_TRY(fs.make_directories((root / image->path.text()).parent_path()));
        KB_TRY(fs.write_atomic(root / image->path.text(), image->content, image->mode));
    }
    for (const std::string& path : decision.to_remove) {
        KB_TRY(fs.remove_file(root / path));
        remove_empty_parents(fs, root, RelPath::literal(path));
    }
    KB_TRY(fs.write_atomic(manifest_file, manifest_text(after), FileMode::regular));
    return decision.report;
}

} // namespace kb::project
