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

constexpr std::array<std::pair<BackendId, TableId>, 4> kBackendTables{{
    {BackendId::cuda, TableId::general_cuda},
    {BackendId::neuron, TableId::general_neuron},
    {BackendId::tpu, TableId::general_tpu},
    {BackendId::xpu, TableId::general_xpu},
}};

/// Editions 1 and 2 had no rules for names; underscores were common.
std::string name_in_current_spelling(const DecodeContext& context,
                                     const Located<std::string>& name) {
    std::string text = name.value;
    if (context.edition >= Edition::v3 || text.find('_') == std::string::npos) {
        return text;
    }
    std::ranges::replace(text, '_', '-');
    context.diagnostics->warning(
        "old-name",
        name.span,
        fmt::format("'{}' is no legal kernel name any more, '{}' is used", name.value, text));
    return text;
}

void decode_name(const DecodeContext& context, Reader& reader, Config& config) {
    const std::optional<Located<std::string>> name = reader.string("name");
    if (!name) {
        return;
    }
    config.name_span = name->span;
    const std::optional<KernelName> parsed =
        KernelName::parse(name_in_current_spelling(context, *name));
    if (!parsed) {
        context.diagnostics->error(
            "bad-name",
            name->span,
            fmt::format("'{}' is no kernel name", escape_control(name->value)),
            KernelName::rules());
        return;
    }
    config.name = *parsed;
}

BackendTable decode_backend_table(const DecodeContext& context,
                                  TableId id,
                                  BackendId backend,
                                  const Node& node) {
    Reader reader =
        open_table(context, id, node, fmt::format("[general.{}]", backend::to_text(backend)));
    BackendTable out{.python_depends = read_strings(reader, "python-depends"), .span = node.span};
    if (backend == BackendId::cuda) {
        out.minver = read_bound(reader, "minver");
        out.maxver = read_bound(reader, "maxver");
    }
    if (backend != BackendId::tpu) {
        out.kernel_depends = read_kernel_depends(context, reader);
    }
    return out;
}

/// Edition 2 had the CUDA bounds in [general].
void decode_flat_cuda_bounds(Reader& reader, Config& config) {
    BackendTable table{.minver = read_bound(reader, "cuda-minver"),
                       .maxver = read_bound(reader, "cuda-maxver"),
                       .span = reader.node().span};
    if (table.minver || table.maxver) {
        config.backend_tables.emplace(BackendId::cuda, std::move(table));
    }
}

} // namespace

void decode_general(const DecodeContext& context, const Node& node, Config& config) {
    Reader reader = open_table(context, TableId::general, node, "[general]");
    decode_name(context, reader, config);
    if (context.edition >= Edition::v3) {
        config.version =
            reader.unsigned_integer("version").value_or(Located<std::uint64_t>{1, node.span});
        config.license = reader.string("license").value_or(Located<std::string>{"", node.span});
        config.backends = read_backends(reader, "backends");
        config.upstream = read_git_url(reader, "upstream");
        for (const auto& [backend, table] : kBackendTables) {
            const std::string_view key = backend::to_text(backend);
            const std::vector<std::string_view> known = keys_of(TableId::general, context.edition);
            const bool exists = std::ranges::find(known, key) != known.end();
            if (const Node* found = exists ? reader.table(key) : nullptr) {
                config.backend_tables.emplace(
                    backend, decode_backend_table(context, table, backend, *found));
            }
        }
    } else {
        config.version = {1, node.span};
        config.license = {"", node.span};
    }
    if (context.edition >= Edition::v4) {
        config.source = read_git_url(reader, "source");
    }
    if (context.edition == Edition::v2) {
        decode_flat_cuda_bounds(reader, config);
    }
    if (context.edition >= Edition::v2) {
        config.python_depends = read_strings(reader, "python-depends");
        if (const Node* hub = reader.table("hub")) {
            Reader fields = open_table(context, TableId::general_hub, *hub, "[general.hub]");
            config.hub = {.repo_id = fields.string("repo-id"), .branch = fields.string("branch")};
        }
    }
    config.kernel_depends = read_kernel_depends(context, reader);
}

} // namespace kb::config
