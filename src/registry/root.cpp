// SPDX-License-Identifier: Apache-2.0
#include "registry/root.hpp"

#include "base/text.hpp"
#include "registry/sqlite_meta_store.hpp"

#include <fmt/format.h>

namespace kb::registry {

namespace {

constexpr std::string_view kVersion = "kernel-builder/registry/1\n";
constexpr std::uint64_t kMaxSettings = 1UL << 20U;
constexpr std::int64_t kSecondsPerDay = 86'400;

/// Whoever can write here can do so for every owner, whoever can read sees private repositories.
constexpr std::uint32_t kOwnerOnly = 0700;

} // namespace

Result<void> init_root(sys::FileSystem& fs, const sys::Path& root) {
    const RootPaths paths{root};
    KB_TRY(fs.make_directories(root));
    KB_TRY(const std::vector<sys::DirEntry> entries, fs.list(root));
    if (!entries.empty()) {
        const bool is_ours = sys::exists(fs, paths.version());
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("'{}' {}",
                                            root.string(),
                                            is_ours ? "is a registry already"
                                                    : "is not empty, name a new directory")};
    }
    KB_TRY(fs.set_mode(root, kOwnerOnly));
    for (const sys::Path& directory : {paths.blobs(), paths.temporary()}) {
        KB_TRY(fs.make_directories(directory));
    }
    KB_TRY(fs.write_atomic(paths.settings(), default_settings_text(), FileMode::regular));
    KB_TRY(prepare_database(paths.database().string(), OpenMode::create));
    // Last: a directory without it is not a registry yet.
    return fs.write_atomic(paths.version(), kVersion, FileMode::regular);
}

Result<void> check_root(sys::FileSystem& fs, const sys::Path& root) {
    const Result<std::string> version = fs.read_file(RootPaths{root}.version(), 100);
    if (!version && version.error().code == ErrorCode::not_found) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' is not a registry: make one with "
                                            "'kernel-builder registry init --root {}'",
                                            root.string(),
                                            root.string())};
    }
    KB_TRY(version);
    if (*version != kVersion) {
        return Error{.code = ErrorCode::unsupported,
                     .message = fmt::format("'{}' has the format '{}', this program knows '{}'",
                                            root.string(),
                                            escape_control(trim(*version)),
                                            trim(kVersion))};
    }
    return {};
}

Result<std::string> read_settings(sys::FileSystem& fs, const sys::Path& root) {
    return fs.read_file(RootPaths{root}.settings(), kMaxSettings);
}

Result<OpenedRoot> open_root(sys::FileSystem& fs, const sys::Path& root, RootUse use) {
    const RootPaths paths{root};
    KB_TRY(check_root(fs, root));
    OpenedRoot opened;
    if (use != RootUse::manage) {
        Result<sys::FileLock> lock = sys::FileLock::try_acquire(paths.lock());
        const bool is_taken = !lock && lock.error().code == ErrorCode::transient;
        if (is_taken && use == RootUse::serve) {
            return Error{.code = ErrorCode::denied,
                         .message =
                             fmt::format("'{}' is served by another process", root.string())};
        }
        if (!is_taken) {
            KB_TRY(opened.lock, std::move(lock));
        }
    }
    KB_TRY(store::BlobStore blobs,
           store::BlobStore::open(fs, paths.blobs(), paths.temporary(), store::Renew::yes));
    if (opened.lock) {
        // Under the lock nobody else writes here: what is left belongs to a killed server.
        KB_TRY(blobs.restore_aside());
        KB_TRY(fs.remove_tree(paths.temporary()));
        KB_TRY(fs.make_directories(paths.temporary()));
        KB_TRY(fs.make_directories(paths.parts()));
        KB_TRY(fs.make_directories(paths.xorbs()));
    }
    KB_TRY(prepare_database(paths.database().string(), OpenMode::read_write));
    opened.meta = make_sqlite_meta_store(paths.database().string());
    opened.blobs = std::make_unique<store::BlobStore>(std::move(blobs));
    return opened;
}

Result<std::string> create_token(MetaStore& meta, const NewToken& token, std::int64_t now) {
    KB_TRY(hub::check_repo_part(token.user).context("reading the user's name"));
    for (const std::string& name : token.namespaces) {
        KB_TRY(hub::check_repo_part(name).context("reading a namespace"));
    }
    std::string text = make_token();
    TokenRow row{.hash = token_hash(text),
                 .user = token.user,
                 .scope = token.scope,
                 .namespaces = token.namespaces,
                 .created = now};
    if (token.days) {
        row.expires =
            now + static_cast<std::int64_t>(std::min<std::uint64_t>(*token.days, 36'500)) *
                      kSecondsPerDay;
    }
    KB_TRY(meta.add_token(
        row,
        {.time = now,
         .actor = "registry token",
         .action = "create-token",
         .detail = fmt::format(
             "{} {} [{}]", token.user, to_text(token.scope), join(token.namespaces, " "))}));
    return text;
}

} // namespace kb::registry
