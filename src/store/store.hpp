// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "base/result.hpp"
#include "digest/digest.hpp"
#include "store/manifest.hpp"
#include "store/unpack.hpp"
#include "sys/clock.hpp"
#include "sys/file_lock.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kb::store {

/// mtime of every file and directory in the store: 1980-01-01, the oldest time that zip can hold.
inline constexpr std::int64_t kFixedTime = 315532800;

/// A read-only directory of the store, named by the sha256 of its manifest.
struct TreeRef {
    digest::Digest digest{};
    sys::Path path{};

    bool operator==(const TreeRef&) const = default;
};

/// One tree of a root. `moves` as in UnpackRules::keep: empty takes all as is.
struct RootPart {
    digest::Digest tree{};
    std::vector<PathRule> moves{};
};

struct RootLink {
    RelPath path = RelPath::literal("unnamed");
    std::string target{};
};

/// How a root is put together. Equal recipes give equal roots on every machine.
struct RootRecipe {
    std::string name{}; ///< For people, in messages only.
    std::vector<RootPart> parts{};
    std::vector<FileImage> files{};
    std::vector<RootLink> links{};

    /// Sorted and canonical; its sha256 names the root.
    [[nodiscard]] std::string to_text() const;
    [[nodiscard]] digest::Digest digest() const;
};

/// One damaged thing in the store.
struct StoreFinding {
    std::string name{};    ///< "tree/<digest>" or "root/<digest>"
    std::string message{}; ///< What is wrong, with the path inside.

    bool operator==(const StoreFinding&) const = default;
};

struct VerifyReport {
    std::uint64_t trees = 0;
    std::uint64_t files = 0;
    std::vector<StoreFinding> findings{};
};

enum class Repair : std::uint8_t { no, yes };

struct CollectOptions {
    std::int64_t older_than_seconds = 30L * 24 * 3600; ///< Since the last use.
};

struct CollectReport {
    std::uint64_t packages = 0;
    std::uint64_t trees = 0;
    std::uint64_t roots = 0;
    std::uint64_t bytes = 0; ///< Freed, as the manifests count.
};

/// Trees of files by content. Append-only: what is there is whole and read-only; collect() removes
/// what is not used, and what is found damaged is taken away to be made anew. Several processes may
/// use one store at a time.
class Store {
public:
    /// Makes the directories of a new store; `unsupported` for one of a later version.
    static Result<Store> open(sys::FileSystem& fs, sys::Clock& clock, sys::Path directory);

    [[nodiscard]] const sys::Path& directory() const { return directory_; }

    /// Exclusive among processes, for making the thing of that name once.
    Result<sys::FileLock> lock(std::string_view name, const std::function<void()>& on_wait = {});
    /// A new empty directory on the store's file system; the caller removes it or gives it back by
    /// add_tree(). What is left over is swept by collect().
    Result<sys::Path> make_temporary();

    /// The tree that was made for this id from this key (the digest of archive and rules), if any.
    /// Marks it as used. Each file is looked at by size and time, not read: one that differs makes
    /// the tree damaged, which is taken away and counts as not there (see discarded()). A tree that
    /// cannot be taken away is `corrupt`.
    Result<std::optional<TreeRef>> find_package(std::string_view id, const digest::Digest& key);
    /// Publishes `content` (a directory from make_temporary(), or below it) as a tree: reads only,
    /// fixed time, shared files linked, synced, renamed; then records it as the tree of `id`.
    Result<TreeRef> add_package(std::string_view id,
                                const digest::Digest& key,
                                const sys::Path& content,
                                const FileManifest& manifest);
    /// The manifest of `content` by reading it, for directories that were not unpacked by us.
    Result<FileManifest> read_manifest(const sys::Path& content);

    Result<FileManifest> manifest_of(const digest::Digest& tree);
    [[nodiscard]] sys::Path tree_path(const digest::Digest& tree) const;

    /// Makes the root unless it is there and looks whole, as for find_package(). `corrupt` when two
    /// parts hold different files of one path.
    Result<TreeRef> compose(const RootRecipe& recipe);

    /// Reads everything; damage is a finding, not an error. With `yes` what is damaged is taken
    /// away, so that the next fetch or build makes it anew.
    Result<VerifyReport> verify(Repair repair = Repair::no);

    /// What this object found damaged and took away, in the order of finding.
    [[nodiscard]] const std::vector<StoreFinding>& discarded() const { return discarded_; }

    Result<CollectReport> collect(const CollectOptions& options);

private:
    Store(sys::FileSystem& fs, sys::Clock& clock, sys::Path directory)
        : fs_{&fs}, clock_{&clock}, directory_{std::move(directory)} {}

    Result<void>
    publish(const sys::Path& content, const FileManifest& manifest, const sys::Path& target);
    Result<void> verify_tree(std::string_view kind, const std::string& hex, VerifyReport& report);
    /// True when every file has the size and time that it was published with; else takes it away
    /// and says false.
    Result<bool> is_sound(std::string_view kind, const sys::Path& published);
    Result<void> discard(std::string_view kind, const sys::Path& published, std::string why);
    Result<FileManifest> link_parts(const RootRecipe& recipe, const sys::Path& content);
    [[nodiscard]] bool older_than(const sys::Path& path, std::int64_t seconds);
    Result<void> collect_trees(std::string_view kind,
                               const std::vector<std::string>& live,
                               std::int64_t grace_seconds,
                               CollectReport& report);
    Result<std::vector<std::string>> collect_packages(std::int64_t seconds, CollectReport& report);
    Result<void> touch(const sys::Path& stamp);

    sys::FileSystem* fs_;
    sys::Clock* clock_;
    sys::Path directory_;
    std::set<std::string> sound_{}; ///< Names of what was looked at already.
    std::vector<StoreFinding> discarded_{};
};

/// sha256 over the archive's digest and the rules: the key of the package made from them.
[[nodiscard]] digest::Digest package_key(const digest::Digest& archive, const UnpackRules& rules);

} // namespace kb::store
