// SPDX-License-Identifier: Apache-2.0
#include "registry/xorb_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

namespace kb::registry {

namespace {

constexpr std::size_t kChunkRow = 44;
constexpr std::size_t kPlaceRow = 48;
constexpr std::size_t kBlock = 256UL << 10U;
/// Behind the chunks old clients write their hashes and offsets again.
constexpr std::uint64_t kMostFooter = 1UL << 20U;

constexpr std::string_view kChunks = ".chunks";
constexpr std::string_view kData = ".data";
constexpr std::string_view kPlaces = ".places";

sys::Path with(const sys::Path& path, std::string_view ending) {
    return path.string() + std::string{ending};
}

hub::HubStatus no_xorb(std::string why) {
    return {.http = 400, .message = "the upload is no xorb: " + std::move(why)};
}

hub::HubStatus too_large() {
    return {.http = 413,
            .message = fmt::format("a xorb has at most {} bytes and {} chunks",
                                   hub::kMaxXorbBytes,
                                   hub::kMaxXorbChunks)};
}

/// The body in pieces of the size that is wanted.
class PieceReader {
public:
    explicit PieceReader(http::BodyReader& body) : body_{&body}, block_(kBlock) {}

    /// `n` bytes, or fewer at the end of the body. They last until the next call.
    Reply<Bytes> take(std::size_t n) {
        KB_ASSERT(n <= block_.size(), "a chunk fits into a block");
        if (end_ - begin_ < n && !at_end_) {
            std::ranges::copy(std::span{block_}.subspan(begin_, end_ - begin_), block_.begin());
            end_ -= begin_;
            begin_ = 0;
            const Result<std::size_t> got =
                http::read_block(*body_, std::span{block_}.subspan(end_));
            if (!got) {
                return hub::HubStatus{.http = 408, .message = "the upload broke off"};
            }
            end_ += *got;
            at_end_ = end_ < block_.size();
        }
        const std::size_t size = std::min(n, end_ - begin_);
        begin_ += size;
        return Bytes{block_}.subspan(begin_ - size, size);
    }

    /// Reads to the end; false when more than `most` bytes come.
    Reply<bool> drain(std::uint64_t most) {
        while (true) {
            KB_TRY(const Bytes piece, take(kBlock));
            if (piece.empty()) {
                return true;
            }
            if (piece.size() > most) {
                return false;
            }
            most -= piece.size();
        }
    }

private:
    http::BodyReader* body_;
    std::vector<std::byte> block_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    bool at_end_ = false;
};

/// Numbers and digests of rows, little-endian.
void put(std::string& out, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) {
        out += static_cast<char>(value >> (8 * i) & 255U);
    }
}

std::uint64_t get(Bytes row, std::size_t at, std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
        value |= std::to_integer<std::uint64_t>(row[at + i]) << (8 * i);
    }
    return value;
}

template <typename Value>
void put_bytes(std::string& out, const Value& value) {
    out += as_text(std::as_bytes(std::span{value.bytes}));
}

template <typename Value>
Value get_bytes(Bytes row, std::size_t at) {
    Value out;
    std::ranges::copy(row.subspan(at, out.bytes.size()),
                      std::as_writable_bytes(std::span{out.bytes}).begin());
    return out;
}

std::string write_chunks(const std::vector<XorbChunk>& chunks) {
    std::string out;
    for (const XorbChunk& chunk : chunks) {
        put_bytes(out, chunk.node.hash);
        put(out, chunk.header.raw, 4);
        put(out,
            chunk.header.packed | std::uint64_t{static_cast<unsigned>(chunk.header.scheme)} << 24U,
            4);
        put(out, chunk.offset, 4);
    }
    return out;
}

std::vector<XorbChunk> parse_chunks(Bytes text) {
    std::vector<XorbChunk> out;
    for (; text.size() >= kChunkRow; text = text.subspan(kChunkRow)) {
        const auto raw = static_cast<std::uint32_t>(get(text, 32, 4));
        out.push_back({.node = {.hash = get_bytes<hub::XetHash>(text, 0), .size = raw},
                       .header = {.scheme = static_cast<hub::XetScheme>(get(text, 39, 1)),
                                  .packed = static_cast<std::uint32_t>(get(text, 36, 3)),
                                  .raw = raw},
                       .offset = static_cast<std::uint32_t>(get(text, 40, 4))});
    }
    return out;
}

std::vector<ChunkPlace> parse_places(Bytes text) {
    std::vector<ChunkPlace> out;
    for (; text.size() >= kPlaceRow; text = text.subspan(kPlaceRow)) {
        out.push_back({.first = static_cast<std::uint32_t>(get(text, 0, 4)),
                       .end = static_cast<std::uint32_t>(get(text, 4, 4)),
                       .blob = get_bytes<digest::Digest>(text, 8),
                       .offset = get(text, 40, 8)});
    }
    return out;
}

Result<std::vector<ChunkPlace>> read_places(sys::FileSystem& fs, const sys::Path& file) {
    const Result<std::string> text = fs.read_file(file);
    if (!text && text.error().code == ErrorCode::not_found) {
        return std::vector<ChunkPlace>{};
    }
    KB_TRY(text);
    return parse_places(as_bytes(*text));
}

/// Removes the file unless it was renamed away.
class Temporary {
public:
    Temporary(sys::FileSystem& fs, sys::Path path) : fs_{&fs}, path_{std::move(path)} {}

    ~Temporary() { static_cast<void>(fs_->remove_file(path_).has_value()); }

    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;

    [[nodiscard]] const sys::Path& path() const { return path_; }

private:
    sys::FileSystem* fs_;
    sys::Path path_;
};

Result<void> read_whole(sys::InputFile& file, std::uint64_t offset, std::string& out) {
    KB_TRY(const std::size_t n, file.read_at(offset, out.data(), out.size()));
    return n == out.size() ? Result<void>{}
                           : Error{.code = ErrorCode::corrupt, .message = "a xorb is cut short"};
}

} // namespace

struct XorbStore::Received {
    std::vector<XorbChunk> chunks{};
    std::vector<hub::XetNode> nodes{};
};

sys::Path XorbStore::path_of(std::string_view user, const hub::XetHash& hash) const {
    // Whatever letters a name may have; two users never share a folder.
    return directory_ / digest::sha256(user).hex().substr(0, 32) / hash.text();
}

Reply<XorbStore::Received> XorbStore::take(http::BodyReader& body, sys::OutputFile& out) {
    PieceReader pieces{body};
    Received received;
    std::string raw;
    std::uint64_t written = 0;
    while (true) {
        KB_TRY(const Bytes head, pieces.take(hub::kXetChunkHeader));
        if (head.empty()) {
            break;
        }
        if (hub::is_xorb_footer(head)) {
            KB_TRY(const bool is_short, pieces.drain(kMostFooter));
            if (!is_short) {
                return too_large();
            }
            break;
        }
        const Result<hub::XetChunkHeader> header = hub::parse_xet_chunk_header(head);
        if (!header) {
            return no_xorb(header.error().to_text());
        }
        written += header->packed;
        if (written > hub::kMaxXorbBytes || received.chunks.size() == hub::kMaxXorbChunks) {
            return too_large();
        }
        KB_TRY(const Bytes packed, pieces.take(header->packed));
        if (packed.size() != header->packed) {
            return no_xorb("it ends inside a chunk");
        }
        if (const auto unpacked = hub::unpack_xet_chunk(*header, packed, raw); !unpacked) {
            return no_xorb(unpacked.error().to_text());
        }
        const hub::XetNode node{.hash = hub::xet_chunk_hash(as_bytes(raw)), .size = raw.size()};
        received.nodes.push_back(node);
        received.chunks.push_back({.node = node,
                                   .header = *header,
                                   .offset = static_cast<std::uint32_t>(written - header->packed)});
        KB_TRY(out.write(as_text(packed)));
    }
    return received;
}

Reply<bool>
XorbStore::receive(std::string_view user, const hub::XetHash& hash, http::BodyReader& body) {
    if (const auto length = body.length(); length && *length > hub::kMaxXorbBytes + kMostFooter) {
        return too_large();
    }
    const sys::Path path = path_of(user, hash);
    if (sys::exists(*fs_, with(path, kChunks))) {
        KB_TRY(const bool is_short, PieceReader{body}.drain(hub::kMaxXorbBytes + kMostFooter));
        return is_short ? Reply<bool>{false} : too_large();
    }
    const Temporary temporary{*fs_, temporary_ / store::unique_name()};
    KB_TRY(auto file, fs_->create(temporary.path(), FileMode::regular));
    KB_TRY(const Received received, take(body, *file));
    if (hub::xet_root(received.nodes) != hash || received.chunks.empty()) {
        return no_xorb("its chunks make another hash");
    }
    KB_TRY(file->sync());
    file.reset();
    KB_TRY(fs_->make_directories(path.parent_path()));
    KB_TRY(fs_->sync_directory(directory_));
    KB_TRY(fs_->rename(temporary.path(), with(path, kData)));
    // Last, and with a sync of the folder: without it there is no xorb.
    KB_TRY(
        fs_->write_atomic(with(path, kChunks), write_chunks(received.chunks), FileMode::regular));
    return true;
}

Result<std::optional<Xorb>>
XorbStore::find(std::string_view user, const hub::XetHash& hash, std::int64_t now) {
    const sys::Path path = path_of(user, hash);
    const Result<std::string> text = fs_->read_file(with(path, kChunks));
    if (!text && text.error().code == ErrorCode::not_found) {
        return std::optional<Xorb>{};
    }
    KB_TRY(text);
    KB_TRY(fs_->set_mtime(with(path, kChunks), now));
    return std::optional{Xorb{.path = path, .chunks = parse_chunks(as_bytes(*text))}};
}

bool XorbStore::has_data(const Xorb& xorb) const {
    return sys::exists(*fs_, with(xorb.path, kData));
}

Result<void>
XorbStore::read(const Xorb& xorb, std::uint32_t first, std::uint32_t end, const Sink& sink) {
    KB_ASSERT(first <= end && end <= xorb.chunks.size(), "the caller checked the term");
    std::string raw;
    auto data = fs_->open_read(with(xorb.path, kData));
    if (data) {
        std::string packed;
        for (std::uint32_t i = first; i < end; ++i) {
            const XorbChunk& chunk = xorb.chunks[i];
            packed.resize(chunk.header.packed);
            KB_TRY(read_whole(**data, chunk.offset, packed));
            KB_TRY(hub::unpack_xet_chunk(chunk.header, as_bytes(packed), raw));
            KB_TRY(sink(raw));
        }
        return {};
    }
    if (data.error().code != ErrorCode::not_found) {
        return data.error();
    }
    KB_TRY(const std::vector<ChunkPlace> places, read_places(*fs_, with(xorb.path, kPlaces)));
    std::unique_ptr<sys::InputFile> blob;
    const ChunkPlace* opened = nullptr;
    for (std::uint32_t i = first; i < end; ++i) {
        const auto place = std::ranges::find_if(
            places, [i](const ChunkPlace& p) { return p.first <= i && i < p.end; });
        if (place == places.end()) {
            return Error{.code = ErrorCode::not_found, .message = "a chunk lies nowhere"};
        }
        if (opened != &*place) {
            KB_TRY(blob, blobs_->open_read(place->blob));
            opened = &*place;
        }
        std::uint64_t offset = place->offset;
        for (std::uint32_t k = place->first; k < i; ++k) {
            offset += xorb.chunks[k].node.size;
        }
        raw.resize(xorb.chunks[i].node.size);
        KB_TRY(read_whole(*blob, offset, raw));
        KB_TRY(sink(raw));
    }
    return {};
}

Result<void> XorbStore::add_places(const Xorb& xorb, std::span<const ChunkPlace> places) {
    const std::scoped_lock lock{places_mutex_}; // two files may be made of one xorb at once
    const sys::Path file = with(xorb.path, kPlaces);
    KB_TRY(std::vector<ChunkPlace> all, read_places(*fs_, file));
    std::vector<bool> lies(xorb.chunks.size());
    // Whether a chunk of the run lay nowhere before.
    const auto mark = [&lies](const ChunkPlace& place) {
        bool is_new = false;
        for (std::size_t i = place.first; i < std::min<std::size_t>(place.end, lies.size()); ++i) {
            is_new = is_new || !lies[i];
            lies[i] = true;
        }
        return is_new;
    };
    for (const ChunkPlace& place : all) {
        mark(place);
    }
    // A shard may name a chunk a million times: one place of it is enough.
    for (const ChunkPlace& place : places) {
        if (mark(place)) {
            all.push_back(place);
        }
    }
    std::string rows;
    for (const ChunkPlace& place : all) {
        put(rows, place.first, 4);
        put(rows, place.end, 4);
        put_bytes(rows, place.blob);
        put(rows, place.offset, 8);
    }
    KB_TRY(fs_->write_atomic(file, rows, FileMode::regular));
    return std::ranges::find(lies, false) == lies.end() ? fs_->remove_file(with(xorb.path, kData))
                                                        : Result<void>{};
}

Result<std::size_t>
sweep_xorbs(sys::FileSystem& fs, const sys::Path& directory, std::int64_t before) {
    std::size_t removed = 0;
    const Result<std::vector<sys::DirEntry>> users = fs.list(directory);
    if (!users) {
        return users.error().code == ErrorCode::not_found ? Result<std::size_t>{removed}
                                                          : Result<std::size_t>{users.error()};
    }
    for (const sys::DirEntry& user : *users) {
        KB_TRY(const std::vector<sys::DirEntry> files, fs.list(directory / user.name));
        for (const sys::DirEntry& file : files) {
            if (!file.name.ends_with(kChunks)) {
                continue;
            }
            const sys::Path path = directory / user.name / file.name;
            KB_TRY(const sys::FileInfo info, fs.stat(path, sys::FollowLinks::no));
            if (info.mtime_ns / 1'000'000'000 >= before) {
                continue;
            }
            const std::string stem = path.string().substr(0, path.string().size() - kChunks.size());
            for (const std::string_view ending : {kChunks, kData, kPlaces}) {
                KB_TRY(fs.remove_file(with(stem, ending)));
            }
            ++removed;
        }
    }
    return removed;
}

Result<std::set<digest::Digest>> blobs_of_xorbs(sys::FileSystem& fs, const sys::Path& directory) {
    std::set<digest::Digest> out;
    const Result<std::vector<sys::DirEntry>> users = fs.list(directory);
    if (!users) {
        return users.error().code == ErrorCode::not_found
                   ? Result<std::set<digest::Digest>>{out}
                   : Result<std::set<digest::Digest>>{users.error()};
    }
    for (const sys::DirEntry& user : *users) {
        KB_TRY(const std::vector<sys::DirEntry> files, fs.list(directory / user.name));
        for (const sys::DirEntry& file : files) {
            if (file.name.ends_with(kPlaces)) {
                KB_TRY(const std::vector<ChunkPlace> places,
                       read_places(fs, directory / user.name / file.name));
                for (const ChunkPlace& place : places) {
                    out.insert(place.blob);
                }
            }
        }
    }
    return out;
}

} // namespace kb::registry
