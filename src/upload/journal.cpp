// SPDX-License-Identifier: Apache-2.0
#include "upload/journal.hpp"

#include "base/text.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::upload {

namespace {

using document::Node;

constexpr std::string_view kSchema = "kernel-builder/upload-journal/1";
constexpr std::uint64_t kMaxJournal = 256UL << 20U;

std::string write_line(const Node& node) {
    return document::write_json(node, {.indent = 0, .final_newline = true});
}

// {"schema":"kernel-builder/upload-journal/1","endpoint":"http://h","repo":"kernels/a/b","branch":"v1","content":"<sha256>"}
// {"blob":"<sha256>"}
// {"part-of":"<sha256>","chunk-size":20971520,"part":3,"etag":"\"x\""}
// {"forget-parts":"<sha256>"}
std::string head_line(const JournalKey& key) {
    return write_line(Node::table({{"schema", kSchema},
                                   {"endpoint", key.endpoint},
                                   {"repo", key.repo},
                                   {"branch", key.branch},
                                   {"content", key.content.hex()}}));
}

} // namespace

Journal::Journal(Journal&& other) noexcept
    : fs_{other.fs_},
      path_{std::move(other.path_)},
      head_{std::move(other.head_)},
      blobs_{std::move(other.blobs_)},
      parts_{std::move(other.parts_)} {}

Result<Journal> Journal::open(sys::FileSystem& fs, sys::Path path, const JournalKey& key) {
    Journal journal{fs, std::move(path)};
    const std::string head = head_line(key);
    auto text = fs.read_file(journal.path_, kMaxJournal);
    if (!text && text.error().code != ErrorCode::not_found) {
        return std::move(text).context("reading the upload journal").error();
    }
    if (text && text->starts_with(head)) {
        const std::size_t whole = text->rfind('\n') + 1; // a torn last line was never confirmed
        for (const std::string_view line :
             split(std::string_view{*text}.substr(head.size(), whole - head.size()), '\n')) {
            journal.take_line(line);
        }
        if (whole == text->size()) {
            return journal;
        }
        KB_TRY(fs.write_atomic(journal.path_, text->substr(0, whole), FileMode::regular));
        return journal;
    }
    // Made with the first confirmation: an upload of small files alone needs none.
    KB_TRY(fs.remove_file(journal.path_));
    journal.head_ = head;
    return journal;
}

void Journal::take_line(std::string_view line) {
    const auto node = document::parse_json(line, {.name = "upload journal"});
    if (!node) {
        return; // an empty or damaged line confirms nothing
    }
    if (const auto blob = digest::Digest::from_hex(node->text_or("blob"))) {
        blobs_.insert(*blob);
        return;
    }
    if (const auto oid = digest::Digest::from_hex(node->text_or("forget-parts"))) {
        std::erase_if(parts_, [&oid](const auto& entry) { return entry.first.first == *oid; });
        return;
    }
    const auto oid = digest::Digest::from_hex(node->text_or("part-of"));
    const Node* chunk = node->find("chunk-size");
    const Node* part = node->find("part");
    if (oid && chunk != nullptr && chunk->is_unsigned() && part != nullptr && part->is_unsigned()) {
        parts_[{*oid, chunk->as_unsigned()}][part->as_unsigned()] = {.number = part->as_unsigned(),
                                                                     .etag = node->text_or("etag")};
    }
}

Result<void> Journal::append(const std::string& line) {
    if (!head_.empty()) {
        KB_TRY(fs_->make_directories(path_.parent_path()).context("writing the upload journal"));
        KB_TRY(fs_->write_atomic(path_, head_ + line, FileMode::regular)
                   .context("writing the upload journal"));
        head_.clear();
        return {};
    }
    return fs_->append_durable(path_, line).context("writing the upload journal");
}

bool Journal::has_blob(const digest::Digest& oid) const {
    const std::lock_guard lock{mutex_};
    return blobs_.contains(oid);
}

Result<void> Journal::add_blob(const digest::Digest& oid) {
    const std::lock_guard lock{mutex_};
    KB_TRY(append(write_line(Node::table({{"blob", oid.hex()}}))));
    blobs_.insert(oid);
    return {};
}

std::map<std::uint64_t, hub::LfsPart> Journal::parts(const digest::Digest& oid,
                                                     std::uint64_t chunk_size) const {
    const std::lock_guard lock{mutex_};
    const auto found = parts_.find({oid, chunk_size});
    return found == parts_.end() ? std::map<std::uint64_t, hub::LfsPart>{} : found->second;
}

Result<void>
Journal::add_part(const digest::Digest& oid, std::uint64_t chunk_size, const hub::LfsPart& part) {
    const std::lock_guard lock{mutex_};
    KB_TRY(append(write_line(Node::table({{"part-of", oid.hex()},
                                          {"chunk-size", chunk_size},
                                          {"part", part.number},
                                          {"etag", part.etag}}))));
    parts_[{oid, chunk_size}][part.number] = part;
    return {};
}

Result<void> Journal::forget_blobs() {
    const std::lock_guard lock{mutex_};
    if (head_.empty()) {
        KB_TRY(auto text, fs_->read_file(path_, kMaxJournal));
        KB_TRY(fs_->write_atomic(path_, text.substr(0, text.find('\n') + 1), FileMode::regular));
    }
    blobs_.clear();
    parts_.clear();
    return {};
}

Result<void> Journal::forget_parts(const digest::Digest& oid) {
    const std::lock_guard lock{mutex_};
    if (std::ranges::none_of(parts_,
                             [&oid](const auto& entry) { return entry.first.first == oid; })) {
        return {};
    }
    KB_TRY(append(write_line(Node::table({{"forget-parts", oid.hex()}}))));
    std::erase_if(parts_, [&oid](const auto& entry) { return entry.first.first == oid; });
    return {};
}

Result<void> Journal::close() {
    return fs_->remove_file(path_);
}

} // namespace kb::upload
