// SPDX-License-Identifier: Apache-2.0
#include "package/metadata.hpp"

#include "base/text.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

#include <algorithm>

// {
//   "name": "relu", "id": "_relu_cuda_1a2b3c4", "version": 1, "license": "apache-2.0",
//   "upstream": "https://...", "source": "https://...", "kernels-minver": "0.17.0",
//   "python-depends": ["einops"], "kernel-depends": [{"repo-id": "o/r", "version": 1}],
//   "backend": {"type": "cuda", "archs": ["8.0", "9.0a"]},
//   "digest": {"algorithm": "sha256", "files": {"__init__.py": "<base64>"}},
//   "provenance": {"kernel-builder": {"version": "0.1.0", "commit": "<hex>", "dirty": false},
//                  "kernel": {"commit": "<hex>", "dirty": false}}
// }

namespace kb::package {

namespace {

using document::Node;

constexpr std::size_t kMaxMetadataBytes = 16UL << 20U;

Error corrupt(std::string message) {
    return Error{.code = ErrorCode::corrupt, .message = std::move(message)};
}

Error wrong_type(std::string_view path, std::string_view wanted, const Node& found) {
    return corrupt(fmt::format("'{}' is {}, expected {}", path, found.kind_text(), wanted));
}

/// A table and what messages call it: "" for the root, "backend." below.
struct Place {
    const Node* table = nullptr;
    std::string prefix{};

    [[nodiscard]] std::string path(std::string_view key) const { return prefix + std::string{key}; }
};

Result<const Node*> required(const Place& place, std::string_view key) {
    const Node* node = place.table->find(key);
    if (node == nullptr) {
        return corrupt(fmt::format("the key '{}' is missing", place.path(key)));
    }
    return node;
}

Result<std::string> text(const Place& place, std::string_view key) {
    KB_TRY(const Node* node, required(place, key));
    if (!node->is_string()) {
        return wrong_type(place.path(key), "a string", *node);
    }
    return node->as_string();
}

Result<std::optional<std::string>> optional_text(const Place& place, std::string_view key) {
    if (place.table->find(key) == nullptr) {
        return std::optional<std::string>{};
    }
    KB_TRY(std::string value, text(place, key));
    return std::optional{std::move(value)};
}

Result<std::uint64_t> number(const Place& place, std::string_view key) {
    KB_TRY(const Node* node, required(place, key));
    if (!node->is_unsigned()) {
        return wrong_type(place.path(key), "an integer that is not negative", *node);
    }
    return node->as_unsigned();
}

Result<std::vector<std::string>> texts(const Place& place, std::string_view key) {
    KB_TRY(const Node* node, required(place, key));
    if (!node->is_array()) {
        return wrong_type(place.path(key), "an array", *node);
    }
    std::vector<std::string> out;
    for (const Node& item : node->as_array()) {
        if (!item.is_string()) {
            return wrong_type(fmt::format("{}[{}]", place.path(key), out.size()), "a string", item);
        }
        out.push_back(item.as_string());
    }
    return out;
}

/// A null `table` when the key is missing.
Result<Place> child(const Place& place, std::string_view key) {
    const Node* node = place.table->find(key);
    if (node != nullptr && !node->is_table()) {
        return wrong_type(place.path(key), "an object", *node);
    }
    return Place{.table = node, .prefix = place.path(key) + "."};
}

bool is_commit(std::string_view hex) {
    return (hex.size() == 40 || hex.size() == 64) && std::ranges::all_of(hex, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

/// Both parts, well formed, or nothing: readers in the field drop a malformed state too.
std::optional<SourceState> source_state(const Node& table) {
    const Node* commit = table.find("commit");
    if (commit == nullptr) {
        commit = table.find("sha"); // how older builders called it
    }
    const Node* dirty = table.find("dirty");
    if (commit == nullptr || !commit->is_string() || dirty == nullptr ||
        !dirty->is(Node::Kind::boolean)) {
        return std::nullopt;
    }
    SourceState out{.commit = to_lower(commit->as_string()), .dirty = dirty->as_bool()};
    return is_commit(out.commit) ? std::optional{std::move(out)} : std::nullopt;
}

Result<std::vector<KernelDependency>> kernel_dependencies(const Place& root) {
    std::vector<KernelDependency> out;
    const Node* list = root.table->find("kernel-depends");
    if (list == nullptr) {
        return out;
    }
    if (!list->is_array()) {
        return wrong_type("kernel-depends", "an array", *list);
    }
    for (const Node& item : list->as_array()) {
        const Place place{.table = &item, .prefix = fmt::format("kernel-depends[{}].", out.size())};
        if (!item.is_table()) {
            return wrong_type(fmt::format("kernel-depends[{}]", out.size()), "an object", item);
        }
        KernelDependency dependency;
        KB_TRY(dependency.repo_id, text(place, "repo-id"));
        KB_TRY(dependency.revision, optional_text(place, "revision"));
        if (item.find("version") != nullptr) {
            KB_TRY(dependency.version, number(place, "version"));
        }
        if (dependency.version.has_value() == dependency.revision.has_value()) {
            return corrupt(fmt::format(
                "'kernel-depends[{}]' needs exactly one of 'version' and 'revision'", out.size()));
        }
        out.push_back(std::move(dependency));
    }
    return out;
}

Result<void> read_backend(const Place& root, Metadata& out) {
    KB_TRY(const Place place, child(root, "backend"));
    if (place.table == nullptr) {
        return corrupt("the key 'backend' is missing");
    }
    KB_TRY(out.backend, text(place, "type"));
    if (place.table->find("archs") != nullptr) {
        KB_TRY(out.archs, texts(place, "archs"));
    }
    return {};
}

Result<std::optional<PackageDigest>> read_digest(const Place& root) {
    KB_TRY(const Place place, child(root, "digest"));
    if (place.table == nullptr) {
        return std::optional<PackageDigest>{};
    }
    PackageDigest out;
    KB_TRY(out.algorithm, text(place, "algorithm"));
    if (out.algorithm != "sha256" && out.algorithm != "sha512") {
        return corrupt(fmt::format("'digest.algorithm' is '{}', expected 'sha256' or 'sha512'",
                                   escape_control(out.algorithm)));
    }
    KB_TRY(const Place files, child(place, "files"));
    if (files.table == nullptr) {
        return corrupt("the key 'digest.files' is missing");
    }
    for (const document::Entry& entry : files.table->entries()) {
        if (!entry.value.is_string()) {
            return wrong_type("digest.files." + escape_control(entry.key), "a string", entry.value);
        }
        out.files.emplace(entry.key, entry.value.as_string());
    }
    return std::optional{std::move(out)};
}

Result<std::optional<Provenance>> read_provenance(const Place& root) {
    KB_TRY(const Place place, child(root, "provenance"));
    if (place.table == nullptr) {
        return std::optional<Provenance>{};
    }
    Provenance out;
    KB_TRY(const Place tool, child(place, "kernel-builder"));
    if (tool.table != nullptr) {
        out.tool_version = tool.table->text_or("version");
        out.tool = source_state(*tool.table);
    }
    KB_TRY(const Place kernel, child(place, "kernel"));
    if (kernel.table != nullptr) {
        out.kernel = source_state(*kernel.table);
    }
    if (const Node* build = place.table->find("build")) {
        out.build_key = build->text_or("key");
        out.lock_digest = build->text_or("lock");
        out.sandbox = build->text_or("sandbox");
    }
    return std::optional{std::move(out)};
}

} // namespace

Result<Metadata> parse_metadata(std::string_view json) {
    KB_TRY(Node root,
           document::parse_json(
               json, Origin{.name = "metadata.json"}, {.max_bytes = kMaxMetadataBytes}));
    if (!root.is_table()) {
        return corrupt(fmt::format("metadata is {}, expected an object", root.kind_text()));
    }
    Metadata out;
    out.origin = std::move(root);
    const Place place{.table = &out.origin};
    KB_TRY(out.name, text(place, "name"));
    KB_TRY(out.id, text(place, "id"));
    KB_TRY(out.version, number(place, "version"));
    KB_TRY(out.license, text(place, "license"));
    KB_TRY(out.upstream, optional_text(place, "upstream"));
    KB_TRY(out.source, optional_text(place, "source"));
    KB_TRY(out.kernels_minver, optional_text(place, "kernels-minver"));
    KB_TRY(out.python_depends, texts(place, "python-depends"));
    KB_TRY(out.kernel_depends, kernel_dependencies(place));
    KB_TRY(read_backend(place, out));
    KB_TRY(out.digest, read_digest(place));
    KB_TRY(out.provenance, read_provenance(place));
    const Node* experimental = out.origin.find("experimental");
    out.experimental =
        experimental != nullptr && experimental->is(Node::Kind::boolean) && experimental->as_bool();
    return out;
}

} // namespace kb::package
