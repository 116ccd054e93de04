// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "digest/digest.hpp"
#include "http/message.hpp"
#include "hub/xet_chunk.hpp"
#include "hub/xet_hash.hpp"
#include "registry/reply.hpp"
#include "store/blob_store.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::registry {

/// A chunk of a xorb that was received.
struct XorbChunk {
    hub::XetNode node{};
    hub::XetChunkHeader header{};
    /// Of the packed bytes.
    std::uint32_t offset = 0;
};

/// A xorb of one user: what it holds, and the name of its files.
struct Xorb {
    sys::Path path{};
    std::vector<XorbChunk> chunks{};
};

/// Where a run of chunks lies unpacked, once a file was made of it.
struct ChunkPlace {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    digest::Digest blob{};
    std::uint64_t offset = 0;

    bool operator==(const ChunkPlace&) const = default;
};

/// Xorbs, each known to the user who sent it alone: naming one is no way to read what somebody else
/// uploaded. A client remembers for three weeks what it sent and does not send it again, so a xorb
/// is known for longer than that; its bytes are dropped as soon as all its chunks lie in blobs, and
/// come from there. Usable from several threads.
///
/// <directory>/<user>/<hash>.chunks   the chunks, 44 bytes each
///                          .data     the packed bytes
///                          .places   where chunks lie in blobs, 48 bytes a run
class XorbStore {
public:
    XorbStore(sys::FileSystem& fs,
              store::BlobStore& blobs,
              sys::Path directory,
              sys::Path temporary)
        : fs_{&fs},
          blobs_{&blobs},
          directory_{std::move(directory)},
          temporary_{std::move(temporary)} {}

    /// False: it is known already. 400 when the body is not the xorb of that hash, 413 when it is
    /// larger than a xorb may be; nothing is kept then.
    [[nodiscard]] Reply<bool>
    receive(std::string_view user, const hub::XetHash& hash, http::BodyReader& body);

    /// Nothing: this user did not send it, or too long ago. Finding one keeps it for longer.
    [[nodiscard]] Result<std::optional<Xorb>>
    find(std::string_view user, const hub::XetHash& hash, std::int64_t now);

    using Sink = std::function<Result<void>(std::string_view)>;
    /// The raw bytes of chunks `first` to `end` (exclusive, both of the xorb). `not_found` when one
    /// lies nowhere any more.
    [[nodiscard]] Result<void>
    read(const Xorb& xorb, std::uint32_t first, std::uint32_t end, const Sink& sink);

    /// Whether its packed bytes are still here: no file was made of some of its chunks.
    [[nodiscard]] bool has_data(const Xorb& xorb) const;
    /// Remembers where chunks lie, and drops the packed bytes when all do.
    [[nodiscard]] Result<void> add_places(const Xorb& xorb, std::span<const ChunkPlace> places);

private:
    struct Received;

    [[nodiscard]] sys::Path path_of(std::string_view user, const hub::XetHash& hash) const;
    [[nodiscard]] Reply<Received> take(http::BodyReader& body, sys::OutputFile& out);

    sys::FileSystem* fs_;
    store::BlobStore* blobs_;
    sys::Path directory_;
    sys::Path temporary_;
    std::mutex places_mutex_{};
};

/// How long a client may name a xorb without sending it.
inline constexpr std::int64_t kXorbLifetime = 28 * 86'400;

/// Forgets xorbs that were not named since `before` (Unix time); says how many. Not beside a
/// running server.
[[nodiscard]] Result<std::size_t>
sweep_xorbs(sys::FileSystem& fs, const sys::Path& directory, std::int64_t before);

/// The blobs that known xorbs lie in.
[[nodiscard]] Result<std::set<digest::Digest>> blobs_of_xorbs(sys::FileSystem& fs,
                                                              const sys::Path& directory);

} // namespace kb::registry
