// SPDX-License-Identifier: Apache-2.0
#include "store/unpack.hpp"

#include "base/text.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sys/stat.h>

namespace kb::store {
namespace {

constexpr std::size_t kBlock = 1UL << 18U;
constexpr std::uint64_t kFreeBytes = 64UL << 20U; // below this no ratio is too high

struct FreeArchive {
    void operator()(archive* a) const { archive_read_free(a); }
};

using Reader = std::unique_ptr<archive, FreeArchive>;

Error corrupt(std::string message) {
    return Error{.code = ErrorCode::corrupt, .message = std::move(message)};
}

Error archive_failure(archive* a) {
    const char* text = archive_error_string(a);
    return corrupt(fmt::format("damaged archive: {}",
                               text == nullptr ? "unexpected end" : escape_control(text)));
}

Result<Reader> open_outer(const sys::Path& path, ArchiveKind kind) {
    Reader reader{archive_read_new()};
    switch (kind) {
    case ArchiveKind::zip:
    case ArchiveKind::conda:
        archive_read_support_format_zip_seekable(reader.get());
        break;
    case ArchiveKind::deb:
        archive_read_support_format_ar(reader.get());
        break;
    case ArchiveKind::tar:
        archive_read_support_format_tar(reader.get());
        archive_read_support_filter_all(reader.get());
        break;
    }
    if (archive_read_open_filename(reader.get(), path.c_str(), kBlock) != ARCHIVE_OK) {
        return archive_failure(reader.get());
    }
    return reader;
}

/// Feeds the data part of a package to the reader of the tar inside.
struct DataPart {
    archive* outer = nullptr;
    std::array<char, kBlock> buffer{};
};

la_ssize_t read_data_part(archive* /*inner*/, void* client, const void** bytes) {
    auto* part = static_cast<DataPart*>(client);
    *bytes = part->buffer.data();
    return archive_read_data(part->outer, part->buffer.data(), part->buffer.size());
}

/// "data.tar.xz" of a deb, "pkg-NAME-VERSION-BUILD.tar.zst" of a conda package.
bool is_data_part(std::string_view name, ArchiveKind kind) {
    return kind == ArchiveKind::deb ? name.starts_with("data.tar")
                                    : name.starts_with("pkg-") && name.ends_with(".tar.zst");
}

Result<Reader> open_data_part(DataPart& part, ArchiveKind kind) {
    archive_entry* entry = nullptr;
    while (true) {
        const int status = archive_read_next_header(part.outer, &entry);
        if (status == ARCHIVE_EOF) {
            return corrupt(kind == ArchiveKind::deb ? "no 'data.tar' in the package"
                                                    : "no 'pkg-*.tar.zst' in the package");
        }
        if (status < ARCHIVE_WARN) {
            return archive_failure(part.outer);
        }
        const char* name = archive_entry_pathname(entry);
        if (name != nullptr && is_data_part(name, kind)) {
            break;
        }
    }
    Reader reader{archive_read_new()};
    archive_read_support_format_tar(reader.get());
    archive_read_support_filter_xz(reader.get());
    archive_read_support_filter_gzip(reader.get());
    archive_read_support_filter_zstd(reader.get());
    if (archive_read_open(reader.get(), &part, nullptr, read_data_part, nullptr) != ARCHIVE_OK) {
        return archive_failure(reader.get());
    }
    return reader;
}

class Unpacker {
public:
    Unpacker(sys::FileSystem& fs,
             const UnpackRules& rules,
             const sys::Path& destination,
             std::uint64_t packed_size)
        : fs_{fs},
          rules_{rules},
          destination_{destination},
          budget_{std::min(rules.limits.max_bytes,
                           std::max(kFreeBytes, packed_size * rules.limits.max_ratio))} {}

    Result<FileManifest> run(archive* reader);

private:
    Result<void> one(archive* reader, archive_entry* entry);
    Result<void> add_file(archive* reader, archive_entry* entry, const RelPath& path);
    Result<void> add_link(archive_entry* entry, const RelPath& path);
    Result<void> add_hard_link(std::string_view target, const RelPath& path);
    Result<void> claim(const RelPath& path);
    Result<void> copy_content(archive* reader, sys::OutputFile& file, ManifestEntry& entry);
    [[nodiscard]] EntryKind kind_of(archive_entry* entry, const RelPath& path) const;

    sys::FileSystem& fs_;
    const UnpackRules& rules_;
    const sys::Path& destination_;
    std::uint64_t budget_;
    std::uint64_t seen_ = 0;
    FileManifest manifest_{};
    std::map<std::string, std::size_t> index_{}; ///< Path -> place in the manifest.
    std::set<std::string> directories_{};
    std::map<std::string, std::string> renamed_{}; ///< Path in the archive -> path in the tree.
    std::string buffer_ = std::string(kBlock, '\0');
};

/// The path as a safe one; "./" in front and '/' at the end are how tar writes.
Result<RelPath> parse_path(std::string_view text) {
    while (text.starts_with("./")) {
        text.remove_prefix(2);
    }
    while (text.ends_with('/')) {
        text.remove_suffix(1);
    }
    auto path = RelPath::parse(text);
    if (!path) {
        return corrupt(fmt::format("unsafe path '{}' in the archive", escape_control(text)));
    }
    return path;
}

/// True when a relative link at `path` stays inside the tree at each step.
bool stays_inside(const RelPath& path, std::string_view target) {
    std::int64_t depth = std::ranges::count(path.text(), '/');
    for (const std::string_view part : split(target, '/')) {
        if (part == "..") {
            --depth;
        } else if (!part.empty() && part != ".") {
            ++depth;
        }
        if (depth < 0) {
            return false;
        }
    }
    return true;
}

/// Takes the path and its parents. The destination holds only what we made, so a path that is
/// claimed once and has no link above it cannot lead outside.
Result<void> Unpacker::claim(const RelPath& path) {
    if (index_.contains(path.text()) || directories_.contains(path.text())) {
        return corrupt(fmt::format("'{}' is in the archive twice", path.text()));
    }
    std::string_view parent = path.parent();
    std::vector<std::string_view> missing;
    while (!parent.empty() && !directories_.contains(std::string{parent})) {
        if (index_.contains(std::string{parent})) {
            return corrupt(
                fmt::format("'{}' lies below '{}', which is a file or link", path.text(), parent));
        }
        missing.push_back(parent);
        const std::size_t slash = parent.rfind('/');
        parent = slash == std::string_view::npos ? std::string_view{} : parent.substr(0, slash);
    }
    for (const std::string_view directory : missing) {
        directories_.emplace(directory);
    }
    if (!missing.empty()) {
        KB_TRY(fs_.make_directories(destination_ / std::string{path.parent()}));
    }
    index_.emplace(path.text(), manifest_.entries.size());
    return {};
}

EntryKind Unpacker::kind_of(archive_entry* entry, const RelPath& path) const {
    const bool listed = std::ranges::any_of(rules_.executable, [&](const std::string& prefix) {
        return path.text().starts_with(prefix);
    });
    return listed || (archive_entry_perm(entry) & 0111U) != 0 ? EntryKind::executable
                                                              : EntryKind::regular;
}

Result<void> Unpacker::copy_content(archive* reader, sys::OutputFile& file, ManifestEntry& entry) {
    digest::Sha256 hasher;
    while (true) {
        const la_ssize_t n = archive_read_data(reader, buffer_.data(), buffer_.size());
        if (n == 0) {
            break;
        }
        if (n == ARCHIVE_RETRY) {
            continue;
        }
        if (n < 0) {
            return archive_failure(reader);
        }
        const auto size = static_cast<std::uint64_t>(n);
        if (size > budget_) {
            return corrupt("the archive unpacks to more than the limit allows");
        }
        budget_ -= size;
        const std::string_view chunk{buffer_.data(), static_cast<std::size_t>(n)};
        hasher.update(chunk);
        entry.size += size;
        KB_TRY(file.write(chunk));
    }
    entry.digest = hasher.finish();
    return {};
}

Result<void> Unpacker::add_file(archive* reader, archive_entry* entry, const RelPath& path) {
    KB_TRY(claim(path));
    ManifestEntry added{.path = path, .kind = kind_of(entry, path)};
    const FileMode mode =
        added.kind == EntryKind::executable ? FileMode::executable : FileMode::regular;
    KB_TRY(const auto file, fs_.create(destination_ / path.text(), mode));
    KB_TRY(copy_content(reader, *file, added));
    manifest_.entries.push_back(std::move(added));
    return {};
}

Result<void> Unpacker::add_link(archive_entry* entry, const RelPath& path) {
    const char* raw = archive_entry_symlink(entry);
    const std::string_view target = raw == nullptr ? std::string_view{} : std::string_view{raw};
    const bool absolute = target.starts_with('/');
    const bool plain = !target.empty() && escape_control(target) == target &&
                       target.find('\t') == std::string_view::npos && is_valid_utf8(target);
    if (!plain || (absolute && rules_.absolute_links == AbsoluteLinks::refuse) ||
        (!absolute && !stays_inside(path, target))) {
        return corrupt(fmt::format(
            "link '{}' -> '{}' leaves the archive", path.text(), escape_control(target)));
    }
    KB_TRY(claim(path));
    KB_TRY(fs_.symlink(target, destination_ / path.text()));
    manifest_.entries.push_back(
        {.path = path, .kind = EntryKind::symlink, .target = std::string{target}});
    return {};
}

Result<void> Unpacker::add_hard_link(std::string_view target, const RelPath& path) {
    KB_TRY(const RelPath source, parse_path(target));
    const auto renamed = renamed_.find(source.text());
    const auto found = renamed == renamed_.end() ? index_.end() : index_.find(renamed->second);
    if (found == index_.end()) {
        return corrupt(fmt::format(
            "'{}' is a second name of '{}', which is not unpacked", path.text(), source.text()));
    }
    ManifestEntry entry = manifest_.entries[found->second];
    if (entry.kind == EntryKind::symlink) {
        return corrupt(fmt::format("'{}' is a second name of a link", path.text()));
    }
    KB_TRY(claim(path));
    KB_TRY(fs_.hard_link(destination_ / entry.path.text(), destination_ / path.text()));
    entry.path = path;
    manifest_.entries.push_back(std::move(entry));
    return {};
}

Result<void> Unpacker::one(archive* reader, archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    if (raw == nullptr) {
        return corrupt("an entry without a name");
    }
    const std::string_view name{raw};
    if (archive_entry_filetype(entry) == AE_IFDIR) {
        return {}; // made when a file needs it; names are judged then
    }
    KB_TRY(const RelPath original, parse_path(name));
    const auto kept = apply_rules(original.text(), rules_.keep);
    if (!kept) {
        return {};
    }
    KB_TRY(const RelPath path, parse_path(*kept));
    renamed_.emplace(original.text(), path.text());
    if (const char* target = archive_entry_hardlink(entry); target != nullptr) {
        return add_hard_link(target, path);
    }
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return add_file(reader, entry, path);
    case AE_IFLNK:
        return add_link(entry, path);
    default:
        return corrupt(fmt::format("'{}' is neither a file nor a link", path.text()));
    }
}

Result<FileManifest> Unpacker::run(archive* reader) {
    archive_entry* entry = nullptr;
    while (true) {
        const int status = archive_read_next_header(reader, &entry);
        if (status == ARCHIVE_EOF) {
            break;
        }
        if (status == ARCHIVE_RETRY) {
            continue;
        }
        if (status < ARCHIVE_WARN) {
            return archive_failure(reader);
        }
        if (++seen_ > rules_.limits.max_entries) {
            return corrupt(
                fmt::format("more than {} entries in the archive", rules_.limits.max_entries));
        }
        KB_TRY(one(reader, entry));
    }
    manifest_.sort();
    return std::move(manifest_);
}

} // namespace

std::optional<std::string> apply_rules(std::string_view path, const std::vector<PathRule>& rules) {
    if (rules.empty()) {
        return std::string{path};
    }
    for (const PathRule& rule : rules) {
        if (path.starts_with(rule.from)) {
            if (!rule.to) {
                return std::nullopt;
            }
            return *rule.to + std::string{path.substr(rule.from.size())};
        }
    }
    return std::nullopt;
}

std::string UnpackRules::to_text() const {
    std::string out;
    for (const PathRule& rule : keep) {
        fmt::format_to(std::back_inserter(out),
                       "{} {}\n",
                       rule.from,
                       rule.to ? "-> " + *rule.to : std::string{"dropped"});
    }
    for (const std::string& prefix : executable) {
        fmt::format_to(std::back_inserter(out), "executable {}\n", prefix);
    }
    if (absolute_links == AbsoluteLinks::keep) {
        out += "absolute links\n";
    }
    return out;
}

Result<FileManifest> unpack(sys::FileSystem& fs,
                            const sys::Path& archive,
                            ArchiveKind kind,
                            const UnpackRules& rules,
                            const sys::Path& destination) {
    KB_TRY(const sys::FileInfo info, fs.stat(archive));
    KB_TRY(const Reader outer, open_outer(archive, kind));
    Unpacker unpacker{fs, rules, destination, info.size};
    if (kind == ArchiveKind::zip || kind == ArchiveKind::tar) {
        return unpacker.run(outer.get());
    }
    const auto part = std::make_unique<DataPart>(); // too large for the stack
    part->outer = outer.get();
    KB_TRY(const Reader inner, open_data_part(*part, kind));
    return unpacker.run(inner.get());
}

} // namespace kb::store
