// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "config/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::config {

namespace {

using document::Node;
using document::Reader;

/// All white space of Unicode, as UTF-8; versions may stand between it.
constexpr std::array<std::string_view, 25> kWhiteSpace{
    "\t",     "\n",     "\v",     "\f",     "\r",     " ",      "\u0085", "\u00A0", "\u1680",
    "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008",
    "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};

std::string_view trim_white_space(std::string_view text) {
    const auto at_front = [&](std::string_view space) {
        return text.starts_with(space);
    };
    const auto at_back = [&](std::string_view space) {
        return text.ends_with(space);
    };
    for (auto it = std::ranges::find_if(kWhiteSpace, at_front); it != kWhiteSpace.end();
         it = std::ranges::find_if(kWhiteSpace, at_front)) {
        text.remove_prefix(it->size());
    }
    for (auto it = std::ranges::find_if(kWhiteSpace, at_back); it != kWhiteSpace.end();
         it = std::ranges::find_if(kWhiteSpace, at_back)) {
        text.remove_suffix(it->size());
    }
    return text;
}

/// Why a key that this table does not have in this edition might have been written.
std::vector<std::string> unknown_key_notes(const DecodeContext& context,
                                           TableId table,
                                           std::string_view key,
                                           std::optional<BackendId> backend) {
    for (const KeyRow& row : key_rows()) {
        if (row.table != table || row.key != key) {
            continue;
        }
        if (row.only && backend && row.only != backend) {
            return {fmt::format("'{}' belongs to sections with backend '{}', this one has '{}'",
                                key,
                                backend::to_text(*row.only),
                                backend::to_text(*backend))};
        }
        if (context.edition < row.since) {
            return {fmt::format("'{}' came with edition {}; this file is read as edition {}, add "
                                "'edition = 5' to [general] if it is meant to be a current one",
                                key,
                                static_cast<int>(row.since),
                                static_cast<int>(context.edition))};
        }
        if (context.edition > row.until) {
            return {
                fmt::format("'{}' went away after edition {}", key, static_cast<int>(row.until))};
        }
    }
    const std::vector<std::string_view> known = keys_of(table, context.edition, backend);
    std::vector<std::string> notes = suggestion_note(key, known);
    if (notes.empty()) {
        const std::vector<std::string> names{known.begin(), known.end()};
        notes.push_back(fmt::format("known keys: {}", quoted_list(names)));
    }
    return notes;
}

} // namespace

std::string key_text(std::string_view key) {
    const auto bare = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
    };
    return !key.empty() && std::ranges::all_of(key, bare)
               ? std::string{key}
               : fmt::format("\"{}\"", escape_control(key));
}

Reader open_table(const DecodeContext& context,
                  TableId table,
                  const Node& node,
                  std::string path,
                  std::optional<BackendId> backend) {
    Reader reader{node, std::move(path), *context.diagnostics};
    const std::vector<std::string_view> known = keys_of(table, context.edition, backend);
    for (const document::Entry& entry : node.entries()) {
        if (std::ranges::find(known, entry.key) == known.end()) {
            context.diagnostics->error(
                "unknown-key",
                entry.value.key_span,
                fmt::format("{} has no key '{}'", reader.path(), escape_control(entry.key)),
                unknown_key_notes(context, table, entry.key, backend));
        }
    }
    reader.require(required_keys_of(table, context.edition));
    return reader;
}

std::optional<Version> parse_bound(std::string_view text, std::string& problem) {
    const std::string_view trimmed = trim_white_space(text);
    if (trimmed.empty()) {
        problem = "is empty";
        return std::nullopt;
    }
    std::vector<std::uint64_t> components;
    for (std::string_view part : split(trimmed, '.')) {
        if (part.starts_with('+')) {
            part.remove_prefix(1);
        }
        const std::optional<std::uint64_t> number = parse_unsigned(part);
        if (!number) {
            problem = "is not made of numbers";
            return std::nullopt;
        }
        components.push_back(*number);
    }
    if (components.size() != 2) {
        problem = fmt::format("has {}", counted(components.size(), "number"));
        return std::nullopt;
    }
    return Version{std::move(components)};
}

std::optional<Located<Version>> read_bound(Reader& reader, std::string_view key) {
    const Node* node = reader.any(key);
    if (node != nullptr && (node->is(Node::Kind::floating) || node->is(Node::Kind::integer))) {
        reader.diagnostics().error(
            "wrong-type",
            node->span,
            fmt::format(
                "'{}' in {} must be a string, not {}", key, reader.path(), node->kind_text()),
            {"write the version in quotes: \"12.6\""});
        return std::nullopt;
    }
    const std::optional<Located<std::string>> text = reader.string(key);
    if (!text) {
        return std::nullopt;
    }
    std::string problem;
    std::optional<Version> version = parse_bound(text->value, problem);
    if (!version) {
        reader.diagnostics().error(
            "bad-version",
            text->span,
            fmt::format("'{}' in {} must be a version of two numbers such as "
                        "\"12.6\"; '{}' {}",
                        key,
                        reader.path(),
                        escape_control(text->value),
                        problem));
        return std::nullopt;
    }
    return Located<Version>{.value = std::move(*version), .span = text->span};
}

Strings read_strings(Reader& reader, std::string_view key) {
    return reader.strings(key).value_or(Strings{});
}

std::optional<Located<GitUrl>> read_git_url(Reader& reader, std::string_view key) {
    const std::optional<Located<std::string>> text = reader.string(key);
    if (!text) {
        return std::nullopt;
    }
    std::string reason;
    std::optional<GitUrl> url = GitUrl::parse(text->value, reason);
    if (!url) {
        reader.diagnostics().error(
            "bad-url", text->span, fmt::format("'{}' in {}: {}", key, reader.path(), reason));
        return std::nullopt;
    }
    return Located<GitUrl>{.value = std::move(*url), .span = text->span};
}

std::optional<Located<BackendId>> to_backend(const Located<std::string>& text,
                                             Diagnostics& diagnostics) {
    if (const std::optional<BackendId> backend = backend::parse_backend(text.value)) {
        return Located<BackendId>{.value = *backend, .span = text.span};
    }
    std::vector<std::string_view> names;
    std::ranges::transform(backend::kAllBackends, std::back_inserter(names), [](BackendId id) {
        return backend::to_text(id);
    });
    std::vector<std::string> notes = suggestion_note(text.value, names);
    if (notes.empty()) {
        const std::vector<std::string> all{names.begin(), names.end()};
        notes.push_back(fmt::format("backends are {}", quoted_list(all)));
    }
    diagnostics.error("unknown-backend",
                      text.span,
                      fmt::format("there is no backend '{}'", escape_control(text.value)),
                      std::move(notes));
    return std::nullopt;
}

std::vector<Located<BackendId>> read_backends(Reader& reader, std::string_view key) {
    std::vector<Located<BackendId>> out;
    for (const Located<std::string>& text : read_strings(reader, key)) {
        if (const auto backend = to_backend(text, reader.diagnostics())) {
            out.push_back(*backend);
        }
    }
    return out;
}

std::vector<KernelDependency> read_kernel_depends(const DecodeContext& context, Reader& reader) {
    static constexpr std::string_view kKey = "kernel-depends";
    std::vector<KernelDependency> out;
    const bool known = context.edition == Edition::v5;
    const Node* items = known ? reader.array(kKey) : nullptr;
    if (items == nullptr) {
        return out;
    }
    for (std::size_t i = 0; i < items->as_array().size(); ++i) {
        const Node& item = items->as_array()[i];
        if (!item.is_table()) {
            reader.diagnostics().error(
                "wrong-type",
                item.span,
                fmt::format("each item of '{}' in {} must be a table, not {}",
                            kKey,
                            reader.path(),
                            item.kind_text()),
                {"for example { repo-id = \"owner/name\", version = 1 }"});
            continue;
        }
        Reader fields = open_table(
            context, TableId::kernel_dependency, item, fmt::format("item {} of '{}'", i + 1, kKey));
        KernelDependency dependency{.version = fields.unsigned_integer("version"),
                                    .revision = fields.string("revision"),
                                    .span = item.span};
        if (auto repo_id = fields.string("repo-id")) {
            dependency.repo_id = std::move(*repo_id);
        }
        if ((item.find("version") != nullptr) == (item.find("revision") != nullptr)) {
            reader.diagnostics().error(
                "version-or-revision",
                item.span,
                fmt::format("{} must have exactly one of 'version' and 'revision'", fields.path()));
        }
        out.push_back(std::move(dependency));
    }
    return out;
}

} // namespace kb::config
