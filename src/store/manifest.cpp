// SPDX-License-Identifier: Apache-2.0
#include "store/manifest.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kb::store {
namespace {

constexpr std::string_view kHead = "# kernel-builder tree 1\n";

char letter(EntryKind kind) {
    switch (kind) {
    case EntryKind::regular:
        return 'f';
    case EntryKind::executable:
        return 'x';
    case EntryKind::symlink:
        return 'l';
    }
    return '?';
}

Result<ManifestEntry> parse_line(std::string_view line) {
    const auto cells = split(line, '\t');
    if (cells.size() != 4 || cells[0].size() != 1) {
        return Error{.code = ErrorCode::corrupt, .message = "expected four cells"};
    }
    KB_TRY(RelPath path, RelPath::parse(cells[3]));
    ManifestEntry entry{.path = std::move(path)};
    switch (cells[0][0]) {
    case 'l':
        entry.kind = EntryKind::symlink;
        entry.target = cells[2];
        return entry;
    case 'x':
        entry.kind = EntryKind::executable;
        break;
    case 'f':
        break;
    default:
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("unknown kind '{}'", cells[0])};
    }
    KB_TRY(entry.digest, digest::Digest::from_hex(cells[1]));
    const auto size = parse_unsigned(cells[2]);
    if (!size) {
        return Error{.code = ErrorCode::corrupt, .message = fmt::format("bad size '{}'", cells[2])};
    }
    entry.size = *size;
    return entry;
}

} // namespace

void FileManifest::sort() {
    std::ranges::sort(entries, {}, &ManifestEntry::path);
}

std::string FileManifest::to_text() const {
    std::string out{kHead};
    for (const ManifestEntry& e : entries) {
        if (e.kind == EntryKind::symlink) {
            fmt::format_to(std::back_inserter(out), "l\t-\t{}\t{}\n", e.target, e.path.text());
        } else {
            fmt::format_to(std::back_inserter(out),
                           "{}\t{}\t{}\t{}\n",
                           letter(e.kind),
                           e.digest.hex(),
                           e.size,
                           e.path.text());
        }
    }
    return out;
}

digest::Digest FileManifest::digest() const {
    return digest::sha256(to_text());
}

Result<FileManifest> FileManifest::parse(std::string_view text) {
    if (!text.starts_with(kHead) || !text.ends_with('\n')) {
        return Error{.code = ErrorCode::corrupt, .message = "not a tree manifest, or cut short"};
    }
    text.remove_prefix(kHead.size());
    FileManifest out;
    std::size_t number = 1;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        ++number;
        auto entry = parse_line(line);
        if (entry && !out.entries.empty() && !(out.entries.back().path < entry->path)) {
            entry = Error{.code = ErrorCode::corrupt, .message = "paths are not in order"};
        }
        if (!entry) {
            return std::move(entry).context(fmt::format("line {} of a manifest", number)).error();
        }
        out.entries.push_back(std::move(*entry));
    }
    return out;
}

} // namespace kb::store
