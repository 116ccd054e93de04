// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "document/node.hpp"
#include "package/package_digest.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::package {

/// A commit with the state of the tree it was taken from.
struct SourceState {
    /// 40 or 64 lower-case hex digits.
    std::string commit{};
    bool dirty = false;

    bool operator==(const SourceState&) const = default;
};

/// How a package came to be. Only source states may differ between builds of equal content.
struct Provenance {
    /// Version of kernel-builder.
    std::string tool_version{};
    std::optional<SourceState> tool{};
    std::optional<SourceState> kernel{};
    // Ours, unknown to other readers, written as "build": {"key", "lock", "sandbox"}; empty =
    // unknown.
    std::string build_key{};
    std::string lock_digest{};
    std::string sandbox{};

    /// Either part was built from an uncommitted tree.
    [[nodiscard]] bool is_dirty() const {
        return (tool && tool->dirty) || (kernel && kernel->dirty);
    }

    bool operator==(const Provenance&) const = default;
};

struct KernelDependency {
    std::string repo_id{};
    /// Exactly one of these two.
    std::optional<std::uint64_t> version{};
    std::optional<std::string> revision{};

    bool operator==(const KernelDependency&) const = default;
};

/// metadata.json: what a finished variant says about itself.
struct Metadata {
    std::string name{};
    /// "_<module>_<backend>_<unique id>": the key under which Python holds the module.
    std::string id{};
    std::uint64_t version = 0;
    std::string license{};
    std::optional<std::string> upstream{};
    std::optional<std::string> source{};
    /// Oldest client that can load it, three components ("0.17.0").
    std::optional<std::string> kernels_minver{};
    std::vector<std::string> python_depends{};
    std::vector<KernelDependency> kernel_depends{};
    /// Backend name as written: "cuda"; a name that we do not know is kept.
    std::string backend{};
    /// Architectures of the device code ("8.0", "9.0a", "12.0+PTX", "gfx942"); nothing for
    /// backends without. Written without duplicates, sorted as text, as readers expect.
    std::optional<std::vector<std::string>> archs{};
    std::optional<PackageDigest> digest{};
    std::optional<Provenance> provenance{};
    bool experimental = false;

    /// The document this was read from, null for a new one. Keys that we do not know are kept there
    /// at every level and written back in place.
    document::Node origin{};
};

/// Tolerant: unknown keys are kept, `sha` is read as `commit`, a malformed commit drops that source
/// state. A missing or mistyped key that readers require is `corrupt`, with the key's name.
[[nodiscard]] Result<Metadata> parse_metadata(std::string_view json);

/// Strict: the result validates against schemas/metadata.schema.json. Equal values give equal
/// bytes: two spaces, the format's key order, then unknown keys, LF at the end.
[[nodiscard]] std::string write_metadata(const Metadata& metadata);

} // namespace kb::package
