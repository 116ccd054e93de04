// SPDX-License-Identifier: Apache-2.0
#include "document/reader.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::document {

Reader::Reader(const Node& table, std::string path, Diagnostics& diagnostics)
    : node_{&table}, path_{std::move(path)}, diagnostics_{&diagnostics} {}

void Reader::wrong_type(const Node& found, std::string_view key, std::string_view expected) {
    diagnostics_->error(
        "wrong-type",
        found.span,
        fmt::format("'{}' in {} must be {}, not {}", key, path_, expected, found.kind_text()));
}

std::optional<Located<std::string>> Reader::string(std::string_view key) {
    const Node* found = any(key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is_string()) {
        wrong_type(*found, key, "a string");
        return std::nullopt;
    }
    return Located<std::string>{.value = found->as_string(), .span = found->span};
}

std::optional<Located<std::uint64_t>> Reader::unsigned_integer(std::string_view key) {
    const Node* found = any(key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is(Node::Kind::integer)) {
        wrong_type(*found, key, "an integer >= 0");
        return std::nullopt;
    }
    if (!found->is_unsigned()) {
        diagnostics_->error(
            "wrong-type",
            found->span,
            fmt::format("'{}' in {} must be an integer >= 0, not {}", key, path_, found->as_int()));
        return std::nullopt;
    }
    return Located<std::uint64_t>{.value = found->as_unsigned(), .span = found->span};
}

std::optional<Located<bool>> Reader::boolean(std::string_view key) {
    const Node* found = any(key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is(Node::Kind::boolean)) {
        wrong_type(*found, key, "true or false");
        return std::nullopt;
    }
    return Located<bool>{.value = found->as_bool(), .span = found->span};
}

std::optional<std::vector<Located<std::string>>> Reader::strings(std::string_view key) {
    const Node* found = any(key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is_array()) {
        wrong_type(*found, key, "an array of strings");
        return std::nullopt;
    }
    std::vector<Located<std::string>> out;
    for (const Node& item : found->as_array()) {
        if (item.is_string()) {
            out.push_back({.value = item.as_string(), .span = item.span});
        } else {
            diagnostics_->error("wrong-type",
                                item.span,
                                fmt::format("each item of '{}' in {} must be a string, not {}",
                                            key,
                                            path_,
                                            item.kind_text()));
        }
    }
    return out;
}

const Node* Reader::table(std::string_view key) {
    const Node* found = any(key);
    if (found != nullptr && !found->is_table()) {
        wrong_type(*found, key, "a table");
        return nullptr;
    }
    return found;
}

const Node* Reader::array(std::string_view key) {
    const Node* found = any(key);
    if (found != nullptr && !found->is_array()) {
        wrong_type(*found, key, "an array");
        return nullptr;
    }
    return found;
}

const Node* Reader::any(std::string_view key) const {
    return node_->find(key);
}

void Reader::require(std::span<const std::string_view> keys) {
    for (const std::string_view key : keys) {
        if (node_->find(key) == nullptr) {
            diagnostics_->error(
                "missing-key", node_->span, fmt::format("{} needs the key '{}'", path_, key));
        }
    }
}

void Reader::require(std::initializer_list<std::string_view> keys) {
    require(std::span<const std::string_view>{keys.begin(), keys.size()});
}

void Reader::finish(std::span<const std::string_view> known) {
    if (!node_->is_table()) {
        return;
    }
    for (const Entry& entry : node_->entries()) {
        if (std::ranges::find(known, std::string_view{entry.key}) != known.end()) {
            continue;
        }
        std::vector<std::string> notes = suggestion_note(entry.key, known);
        if (notes.empty()) {
            std::vector<std::string> names{known.begin(), known.end()};
            notes.push_back(names.empty() ? fmt::format("{} has no keys", path_)
                                          : fmt::format("known keys: {}", quoted_list(names)));
        }
        diagnostics_->error("unknown-key",
                            entry.value.key_span,
                            fmt::format("{} has no key '{}'", path_, escape_control(entry.key)),
                            std::move(notes));
    }
}

void Reader::finish(std::initializer_list<std::string_view> known) {
    finish(std::span<const std::string_view>{known.begin(), known.size()});
}

} // namespace kb::document
