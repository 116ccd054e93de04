// SPDX-License-Identifier: Apache-2.0
#include "plan/lock.hpp"

#include "document/json.hpp"
#include "document/reader.hpp"
#include "plan/document_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace kb::plan {

namespace {

using document::Node;
using document::Reader;

constexpr std::string_view kSchema = "kernel-builder/lock/1";

std::optional<digest::Digest> digest_member(Reader& reader, std::string_view key) {
    const Node* value = reader.any(key);
    if (value == nullptr || value->is(Node::Kind::null)) {
        return std::nullopt;
    }
    if (value->is_string()) {
        if (auto parsed = digest::Digest::from_hex(value->as_string())) {
            return *parsed;
        }
    }
    reader.diagnostics().error(
        "bad-digest",
        value->span,
        fmt::format("'{}' of {} is not a sha256 of 64 lower-case hex digits", key, reader.path()));
    return std::nullopt;
}

std::optional<LockSlice> read_slice(Reader& entry) {
    const Node* node = entry.any("slice");
    if (node == nullptr || node->is(Node::Kind::null)) {
        return std::nullopt;
    }
    Reader reader{*node, entry.path() + ".slice", entry.diagnostics()};
    LockSlice slice{.name = text_member(reader, "name"),
                    .record_sha256 = digest_member(reader, "record-sha256"),
                    .manifest_sha256 = digest_member(reader, "manifest-sha256")};
    reader.require({"name"});
    reader.finish({"name", "record-sha256", "manifest-sha256"});
    return slice;
}

/// A file name, as a mirror serves it: never a path.
bool is_file_name(std::string_view text) {
    return !text.empty() && text != "." && text != ".." && text.size() <= 255 &&
           std::ranges::all_of(
               text, [](char c) { return c > ' ' && c != '/' && c != '\\' && c != '\x7f'; });
}

void check_entry(const LockEntry& entry, Reader& reader) {
    const auto fail = [&](std::string_view key, std::string_view what) {
        reader.diagnostics().error("bad-lock-entry",
                                   reader.node().span,
                                   fmt::format("'{}' of {} {}", key, reader.path(), what));
    };
    if (const auto requirement = backend::Requirement::parse(entry.id); !requirement) {
        fail("id", "cannot be used: " + requirement.error().message);
    }
    if (!is_file_name(entry.file)) {
        fail("file", "is not a file name");
    }
    if (entry.platform != "any" && !backend::parse_platform(entry.platform)) {
        fail("platform", "is neither a platform nor 'any'");
    }
}

LockEntry read_entry(const Node& node, std::size_t index, Diagnostics& diagnostics) {
    Reader reader{node, fmt::format("entries[{}]", index), diagnostics};
    LockEntry entry{.id = text_member(reader, "id"),
                    .file = text_member(reader, "file"),
                    .platform = text_member(reader, "platform")};
    if (const auto size = reader.unsigned_integer("size")) {
        entry.size = size->value;
    }
    const auto sha256 = digest_member(reader, "sha256");
    entry.sha256 = sha256.value_or(digest::Digest{});
    entry.slice = read_slice(reader);
    reader.require({"id", "file", "platform", "size", "sha256"});
    reader.finish({"id", "file", "platform", "size", "sha256", "slice"});
    check_entry(entry, reader);
    return entry;
}

bool before(const LockEntry& a, const LockEntry& b) {
    return std::tie(a.id, a.platform, a.file) < std::tie(b.id, b.platform, b.file);
}

bool same_place(const LockEntry& a, const LockEntry& b) {
    return !before(a, b) && !before(b, a);
}

Node digest_node(const std::optional<digest::Digest>& digest) {
    return digest ? Node{digest->hex()} : Node{};
}

} // namespace

Result<Lock> parse_lock(std::string_view json) {
    KB_TRY(const Node root,
           document::parse_json(json, Origin{"build.lock"}).context("reading 'build.lock'"));
    Diagnostics diagnostics;
    Reader reader{root, "the lock", diagnostics};
    if (text_member(reader, "schema") != kSchema) {
        return Error{ErrorCode::corrupt,
                     fmt::format("'build.lock' is not of schema '{}': run 'kernel-builder lock' to "
                                 "write it again",
                                 kSchema),
                     {}};
    }
    Lock lock;
    if (const Node* entries = reader.array("entries")) {
        for (std::size_t i = 0; i < entries->as_array().size(); ++i) {
            lock.entries.push_back(read_entry(entries->as_array()[i], i, diagnostics));
        }
    }
    reader.require({"entries"});
    reader.finish({"schema", "entries"});
    std::ranges::sort(lock.entries, before);
    if (const auto twice = std::ranges::adjacent_find(lock.entries, same_place);
        twice != lock.entries.end()) {
        diagnostics.error("double-entry",
                          reader.node().span,
                          fmt::format("'{}' pins the file '{}' twice", twice->id, twice->file));
    }
    if (auto error = first_error(diagnostics)) {
        return std::move(*error);
    }
    return lock;
}

std::string write_lock(const Lock& lock) {
    std::vector<LockEntry> entries = lock.entries;
    std::ranges::sort(entries, before);
    Node list = Node::array();
    for (const LockEntry& entry : entries) {
        Node slice;
        if (entry.slice) {
            slice = Node::table({{"name", entry.slice->name},
                                 {"record-sha256", digest_node(entry.slice->record_sha256)},
                                 {"manifest-sha256", digest_node(entry.slice->manifest_sha256)}});
        }
        list.push(Node::table({{"id", entry.id},
                               {"file", entry.file},
                               {"platform", entry.platform},
                               {"size", entry.size},
                               {"sha256", entry.sha256.hex()},
                               {"slice", std::move(slice)}}));
    }
    return document::write_canonical_json(
        Node::table({{"schema", std::string{kSchema}}, {"entries", std::move(list)}}));
}

digest::Digest digest_of(const Lock& lock) {
    return digest::sha256(write_lock(lock));
}

bool satisfies(const LockEntry& entry, const backend::Requirement& requirement) {
    if (entry.id == requirement.id()) {
        return true;
    }
    const bool has_sets = requirement.provider == "deb" || requirement.provider == "conda";
    return has_sets && requirement.slice.empty() && entry.slice &&
           entry.id.starts_with(requirement.provider + "/") &&
           entry.slice->name == fmt::format("{}-{}", requirement.name, requirement.version);
}

std::vector<const LockEntry*> entries_for(const Lock& lock,
                                          const backend::Requirement& requirement,
                                          const backend::Platform& platform) {
    // Debs are what runs while something is built, whatever it is built for, and headers that are
    // the same everywhere: they are those of the one kind of machine that builds.
    const std::string wanted =
        to_text(requirement.provider == "deb" ? backend::Platform{} : platform);
    std::vector<const LockEntry*> found;
    for (const LockEntry& entry : lock.entries) {
        if ((entry.platform == wanted || entry.platform == "any") &&
            satisfies(entry, requirement)) {
            found.push_back(&entry);
        }
    }
    return found;
}

} // namespace kb::plan
