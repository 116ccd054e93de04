// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "http/message.hpp"
#include "hub/lfs.hpp"
#include "registry/reply.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kb::registry {

/// A large object that comes in parts. `id` is the same for the same object, repository and user,
/// so that a client that was killed finds its parts again.
struct PartialUpload {
    std::string id{};
    std::uint64_t size = 0;
    std::uint64_t part_bytes = 0;

    [[nodiscard]] std::uint64_t parts() const { return hub::part_count(size, part_bytes); }
};

/// Size of the parts of an object: `least`, or more when there would be over a thousand.
[[nodiscard]] std::uint64_t choose_part_bytes(std::uint64_t size, std::uint64_t least);

/// <directory>/<upload id>/: one file that all parts are written into, in place, and a note for
/// each part that is synced. Usable from several threads; one process.
class PartStore {
public:
    PartStore(sys::FileSystem& fs, sys::Path directory)
        : fs_{&fs}, directory_{std::move(directory)} {}

    /// The part's ETag, once it survives a crash. 422 for a part that is no part of this upload or
    /// has another length, 409 while the upload is being put together.
    [[nodiscard]] Reply<std::string>
    receive(const PartialUpload& upload, std::uint64_t number, http::BodyReader& body);

    /// Gives the whole file to `take`, which moves it away and says whether it is the object; then
    /// the parts are gone, whatever it said. 422 names the part that is missing, twice there or not
    /// the one that was confirmed; 409 while parts are still coming in.
    [[nodiscard]] Reply<Done> complete(const PartialUpload& upload,
                                       const std::vector<hub::LfsPart>& parts,
                                       const std::function<Reply<Done>(const sys::Path&)>& take);

private:
    struct Use {
        std::size_t writers = 0;
        bool completing = false;
    };

    /// Counts one writer, or the one who completes, until it goes out of scope.
    class Lease;

    [[nodiscard]] sys::Path folder(const PartialUpload& upload) const {
        return directory_ / upload.id;
    }

    [[nodiscard]] Reply<Done> check_parts(const PartialUpload& upload,
                                          const std::vector<hub::LfsPart>& parts) const;

    sys::FileSystem* fs_;
    sys::Path directory_;
    std::mutex mutex_{};
    std::map<std::string, Use> in_use_{};
};

/// Removes uploads that nobody added to since `before` (Unix time); says how many. Not beside a
/// running server.
[[nodiscard]] Result<std::size_t>
sweep_parts(sys::FileSystem& fs, const sys::Path& directory, std::int64_t before);

} // namespace kb::registry
