// SPDX-License-Identifier: Apache-2.0
#include "config/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::config {

namespace {

using document::Node;
using document::Reader;

constexpr std::array<std::string_view, 3> kFrameworks{"torch", "torch-noarch", "tvm-ffi"};

StableAbi decode_stable_abi_table(const Node& node, Diagnostics& diagnostics) {
    StableAbi out{.span = node.span};
    Reader reader{node, "'stable-abi' of [torch]", diagnostics};
    for (const document::Entry& entry : node.entries()) {
        const std::optional<Located<BackendId>> backend =
            to_backend({.value = entry.key, .span = entry.value.key_span}, diagnostics);
        std::optional<Located<Version>> version = read_bound(reader, entry.key);
        if (backend && version) {
            out.by_backend.emplace(backend->value, std::move(*version));
        }
    }
    return out;
}

std::optional<StableAbi> decode_stable_abi(const DecodeContext& context, Reader& reader) {
    const Node* node = reader.any("stable-abi");
    if (node == nullptr || context.edition < Edition::v4) {
        return std::nullopt;
    }
    if (node->is_table() && context.edition >= Edition::v5) {
        return decode_stable_abi_table(*node, *context.diagnostics);
    }
    if (node->is_table()) {
        context.diagnostics->error(
            "wrong-type",
            node->span,
            "'stable-abi' in [torch] must be a string in edition 4",
            {"a table by backend came with edition 5: add 'edition = 5' to [general]"});
        return std::nullopt;
    }
    StableAbi out{.span = node->span};
    out.all = read_bound(reader, "stable-abi");
    return out;
}

Torch decode_torch(const DecodeContext& context, const Node& node) {
    Reader reader = open_table(context, TableId::torch, node, "[torch]");
    Torch out{.include = read_strings(reader, "include"),
              .pyext = reader.strings("pyext"),
              .src = read_strings(reader, "src")};
    if (context.edition >= Edition::v2) {
        out.minver = read_bound(reader, "minver");
        out.maxver = read_bound(reader, "maxver");
    }
    if (context.edition >= Edition::v4) {
        out.cxx_flags = read_strings(reader, "cxx-flags");
    }
    out.stable_abi = decode_stable_abi(context, reader);
    return out;
}

TorchNoarch decode_torch_noarch(const DecodeContext& context, const Node& node) {
    Reader reader = open_table(context, TableId::torch_noarch, node, "[torch-noarch]");
    return {.pyext = reader.strings("pyext"),
            .cuda_capabilities = reader.strings("cuda_capabilities"),
            .rocm_archs = reader.strings("rocm_archs")};
}

TvmFfi decode_tvm_ffi(const DecodeContext& context, const Node& node) {
    Reader reader = open_table(context, TableId::tvm_ffi, node, "[tvm-ffi]");
    TvmFfi out{.include = read_strings(reader, "include"),
               .pyext = reader.strings("pyext"),
               .src = read_strings(reader, "src")};
    if (context.edition >= Edition::v4) {
        out.cxx_flags = read_strings(reader, "cxx-flags");
    }
    return out;
}

Framework decode_named(const DecodeContext& context, std::string_view name, const Node& node) {
    if (name == kFrameworks[0]) {
        return decode_torch(context, node);
    }
    if (name == kFrameworks[1]) {
        return decode_torch_noarch(context, node);
    }
    return decode_tvm_ffi(context, node);
}

/// Editions 1 and 2 said "universal" of what is [torch-noarch] today.
bool is_universal(const DecodeContext& context, const Node& root) {
    const bool first = context.edition == Edition::v1;
    if (context.edition > Edition::v2) {
        return false;
    }
    const Node* table = root.find(first ? "torch" : "general");
    if (table == nullptr || !table->is_table()) {
        return false;
    }
    Reader reader{*table, first ? "[torch]" : "[general]", *context.diagnostics};
    const std::optional<Located<bool>> universal = reader.boolean("universal");
    return universal && universal->value;
}

/// The framework tables that the file has, in file order.
std::vector<const document::Entry*> framework_entries(const Node& root) {
    std::vector<const document::Entry*> out;
    for (const document::Entry& entry : root.entries()) {
        if (std::ranges::find(kFrameworks, entry.key) != kFrameworks.end()) {
            out.push_back(&entry);
        }
    }
    return out;
}

} // namespace

void decode_framework(const DecodeContext& context, const Node& root, Config& config) {
    const bool universal = is_universal(context, root);
    const std::vector<const document::Entry*> entries = framework_entries(root);
    const std::vector<std::string_view> known = keys_of(TableId::root, context.edition);
    config.framework_span = root.span;
    for (const document::Entry* entry : entries) {
        if (entry != entries.front()) {
            context.diagnostics->error("two-frameworks",
                                       entry->value.key_span,
                                       fmt::format("[{}] cannot stand beside [{}]: a kernel has "
                                                   "one framework",
                                                   entry->key,
                                                   entries.front()->key));
        }
        if (!entry->value.is_table()) {
            context.diagnostics->error(
                "wrong-type",
                entry->value.span,
                fmt::format("'{}' must be a table, not {}", entry->key, entry->value.kind_text()));
            continue;
        }
        if (std::ranges::find(known, entry->key) == known.end()) {
            continue; // reported as an unknown key
        }
        Framework decoded = decode_named(context, entry->key, entry->value);
        if (entry == entries.front()) {
            config.framework = std::move(decoded);
            config.framework_span = entry->value.key_span;
        }
    }
    if (universal) {
        TorchNoarch noarch;
        if (const auto* torch = std::get_if<Torch>(&config.framework)) {
            noarch.pyext = torch->pyext;
        }
        config.framework = std::move(noarch);
    } else if (entries.empty() && context.edition == Edition::v3) {
        config.framework = TorchNoarch{};
    } else if (entries.empty()) {
        context.diagnostics->error(
            "missing-framework",
            root.span,
            "build.toml needs one of the tables [torch], [torch-noarch] and [tvm-ffi]",
            {"[torch] has compiled kernels, [torch-noarch] only Python such as Triton kernels"});
    }
}

} // namespace kb::config
