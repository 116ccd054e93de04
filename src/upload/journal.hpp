// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "digest/digest.hpp"
#include "hub/lfs.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace kb::upload {

/// What an upload is about: the same four again continue it, anything else begins anew.
struct JournalKey {
    std::string endpoint{};
    std::string repo{}; ///< "kernels/owner/name"
    std::string branch{};
    digest::Digest content{};

    bool operator==(const JournalKey&) const = default;
};

/// Append-only file of what the server has confirmed, a JSON object a line, each fsynced before it
/// counts; it begins to exist with the first confirmation. A torn last line (we were killed) is
/// dropped. Usable from several threads.
class Journal {
public:
    /// Reads what an earlier run with the same key left; another key's journal is replaced.
    [[nodiscard]] static Result<Journal>
    open(sys::FileSystem& fs, sys::Path path, const JournalKey& key);

    Journal(Journal&& other) noexcept;
    Journal& operator=(Journal&&) = delete;
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    ~Journal() = default;

    [[nodiscard]] bool has_blob(const digest::Digest& oid) const;
    [[nodiscard]] Result<void> add_blob(const digest::Digest& oid);

    /// Confirmed parts of a blob that was sent in parts of that size.
    [[nodiscard]] std::map<std::uint64_t, hub::LfsPart> parts(const digest::Digest& oid,
                                                              std::uint64_t chunk_size) const;
    [[nodiscard]] Result<void>
    add_part(const digest::Digest& oid, std::uint64_t chunk_size, const hub::LfsPart& part);

    /// The server does not know what it once confirmed: believe it and begin again.
    [[nodiscard]] Result<void> forget_blobs();
    [[nodiscard]] Result<void> forget_parts(const digest::Digest& oid);
    /// The upload is complete: the file goes.
    [[nodiscard]] Result<void> close();

private:
    using PartKey = std::pair<digest::Digest, std::uint64_t>;

    Journal(sys::FileSystem& fs, sys::Path path) : fs_{&fs}, path_{std::move(path)} {}

    void take_line(std::string_view line);
    Result<void> append(const std::string& line);

    sys::FileSystem* fs_;
    sys::Path path_;
    /// First line of a file that is still to be made.
    std::string head_{};
    mutable std::mutex mutex_{};
    std::set<digest::Digest> blobs_{};
    std::map<PartKey, std::map<std::uint64_t, hub::LfsPart>> parts_{};
};

} // namespace kb::upload
