// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "registry/meta_store.hpp"
#include "registry/settings.hpp"
#include "store/blob_store.hpp"
#include "sys/clock.hpp"
#include "sys/file_lock.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kb::registry {

/// Where the parts of a registry lie below its root.
struct RootPaths {
    explicit RootPaths(sys::Path path) : root{std::move(path)} {}

    sys::Path root;

    [[nodiscard]] sys::Path version() const { return root / "VERSION"; }

    [[nodiscard]] sys::Path lock() const { return root / "LOCK"; }

    [[nodiscard]] sys::Path settings() const { return root / "registry.toml"; }

    [[nodiscard]] sys::Path database() const { return root / "meta.sqlite"; }

    [[nodiscard]] sys::Path blobs() const { return root / "blobs" / "sha256"; }

    [[nodiscard]] sys::Path temporary() const { return root / "tmp"; }

    [[nodiscard]] sys::Path parts() const { return root / "parts"; }

    [[nodiscard]] sys::Path xorbs() const { return root / "xet"; }
};

/// Makes an empty registry. `denied` when the directory holds anything already.
[[nodiscard]] Result<void> init_root(sys::FileSystem& fs, const sys::Path& root);
/// `not_found` with the command to run when there is no registry at `root`, `unsupported` for the
/// format of a newer program.
[[nodiscard]] Result<void> check_root(sys::FileSystem& fs, const sys::Path& root);
[[nodiscard]] Result<std::string> read_settings(sys::FileSystem& fs, const sys::Path& root);

/// An opened registry. With the lock only one process is a writer of blobs.
struct OpenedRoot {
    std::optional<sys::FileLock> lock{};
    std::unique_ptr<MetaStore> meta{};
    std::unique_ptr<store::BlobStore> blobs{};
};

enum class RootUse : std::uint8_t {
    serve,  ///< takes the lock, sweeps temporaries of a killed server
    manage, ///< beside a running server: tokens
    share,  ///< `serve` when nobody has the lock, else beside whoever has it
};

[[nodiscard]] Result<OpenedRoot> open_root(sys::FileSystem& fs, const sys::Path& root, RootUse use);

struct NewToken {
    std::string user{};
    Scope scope = Scope::write;
    std::vector<std::string> namespaces{};
    std::optional<std::uint64_t> days{};
};

/// The token itself: it is not kept and cannot be shown again. `corrupt` for a user or namespace
/// that cannot be an owner.
[[nodiscard]] Result<std::string>
create_token(MetaStore& meta, const NewToken& token, std::int64_t now);

} // namespace kb::registry
