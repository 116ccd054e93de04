// SPDX-License-Identifier: Apache-2.0
#include "document/json.hpp"
#include "package/metadata.hpp"

#include <algorithm>
#include <initializer_list>

namespace kb::package {

namespace {

using document::Node;
using Keys = std::initializer_list<std::string_view>;

/// The table `key` of what was read, or nullptr.
const Node* child_of(const Node* table, std::string_view key) {
    return table == nullptr ? nullptr : table->find(key);
}

/// Appends the entries of `old` whose keys are not ours.
void keep_unknown(Node& out, const Node* old, Keys ours) {
    if (old == nullptr || !old->is_table()) {
        return;
    }
    for (const document::Entry& entry : old->entries()) {
        if (std::ranges::find(ours, std::string_view{entry.key}) == ours.end()) {
            out.set(entry.key, entry.value);
        }
    }
}

void set_optional(Node& out, std::string_view key, const std::optional<std::string>& value) {
    if (value) {
        out.set(key, *value);
    }
}

void set_nonempty(Node& out, std::string_view key, const std::string& value) {
    if (!value.empty()) {
        out.set(key, value);
    }
}

Node dependencies(const Metadata& metadata) {
    Node out = Node::array();
    for (const KernelDependency& dependency : metadata.kernel_depends) {
        Node item = Node::table({{"repo-id", dependency.repo_id}});
        if (dependency.version) {
            item.set("version", *dependency.version);
        }
        set_optional(item, "revision", dependency.revision);
        out.push(std::move(item));
    }
    return out;
}

Node backend_table(const Metadata& metadata) {
    Node out = Node::table({{"type", metadata.backend}});
    if (metadata.archs) {
        std::vector<std::string> archs = *metadata.archs;
        std::ranges::sort(archs);
        archs.erase(std::unique(archs.begin(), archs.end()), archs.end());
        out.set("archs", Node::strings(archs));
    }
    keep_unknown(out, child_of(&metadata.origin, "backend"), {"type", "archs"});
    return out;
}

Node digest_table(const PackageDigest& digest, const Node* old) {
    Node files = Node::table();
    for (const auto& [path, hash] : digest.files) {
        files.set(path, hash);
    }
    Node out = Node::table({{"algorithm", digest.algorithm}, {"files", std::move(files)}});
    keep_unknown(out, old, {"algorithm", "files"});
    return out;
}

void set_state(Node& out, const std::optional<SourceState>& state) {
    if (state) {
        out.set("commit", state->commit);
        out.set("dirty", state->dirty);
    }
}

Node provenance_table(const Provenance& provenance, const Node* old) {
    Node tool = Node::table({{"version", provenance.tool_version}});
    set_state(tool, provenance.tool);
    keep_unknown(tool, child_of(old, "kernel-builder"), {"version", "commit", "sha", "dirty"});
    Node out = Node::table({{"kernel-builder", std::move(tool)}});
    if (provenance.kernel) {
        Node kernel = Node::table();
        set_state(kernel, provenance.kernel);
        keep_unknown(kernel, child_of(old, "kernel"), {"commit", "sha", "dirty"});
        out.set("kernel", std::move(kernel));
    }
    Node build = Node::table();
    set_nonempty(build, "key", provenance.build_key);
    set_nonempty(build, "lock", provenance.lock_digest);
    set_nonempty(build, "sandbox", provenance.sandbox);
    keep_unknown(build, child_of(old, "build"), {"key", "lock", "sandbox"});
    if (!build.entries().empty()) {
        out.set("build", std::move(build));
    }
    keep_unknown(out, old, {"kernel-builder", "kernel", "build"});
    return out;
}

} // namespace

std::string write_metadata(const Metadata& metadata) {
    const Node* old = metadata.origin.is_table() ? &metadata.origin : nullptr;
    Node out = Node::table({{"name", metadata.name},
                            {"id", metadata.id},
                            {"version", metadata.version},
                            {"license", metadata.license}});
    set_optional(out, "upstream", metadata.upstream);
    set_optional(out, "source", metadata.source);
    set_optional(out, "kernels-minver", metadata.kernels_minver);
    out.set("python-depends", Node::strings(metadata.python_depends));
    out.set("kernel-depends", dependencies(metadata));
    out.set("backend", backend_table(metadata));
    if (metadata.digest) {
        out.set("digest", digest_table(*metadata.digest, child_of(old, "digest")));
    }
    if (metadata.provenance) {
        out.set("provenance", provenance_table(*metadata.provenance, child_of(old, "provenance")));
    }
    if (metadata.experimental) {
        out.set("experimental", true);
    }
    keep_unknown(out,
                 old,
                 {"name",
                  "id",
                  "version",
                  "license",
                  "upstream",
                  "source",
                  "kernels-minver",
                  "python-depends",
                  "kernel-depends",
                  "backend",
                  "digest",
                  "provenance",
                  "experimental"});
    return document::write_json(out);
}

} // namespace kb::package
