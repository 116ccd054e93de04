// SPDX-License-Identifier: Apache-2.0
#include "store/blob_store.hpp"

#include <fmt/format.h>

#include <atomic>
#include <ctime>
#include <string>
#include <unistd.h>

namespace kb::store {
namespace {

constexpr std::size_t kBlock = 1UL << 18U;
constexpr std::string_view kAside = "aside-";

sys::Path shard_of(const sys::Path& directory, const digest::Digest& digest) {
    return directory / digest.hex().substr(0, 2);
}

/// The temporary becomes the blob. rename() over an equal blob would be harmless, but a reader may
/// hold the old one and its stat cache: the first one stays.
Result<void> move_in(sys::FileSystem& fs,
                     const sys::Path& temporary,
                     const sys::Path& directory,
                     const digest::Digest& digest,
                     Renew renew) {
    const sys::Path shard = shard_of(directory, digest);
    const sys::Path target = shard / digest.hex();
    // A collector that set it aside meanwhile leaves nothing to renew: then this one moves in.
    const bool is_there = renew == Renew::yes ? fs.set_mtime(target, ::time(nullptr)).has_value()
                                              : sys::exists(fs, target);
    if (is_there) {
        return fs.remove_file(temporary);
    }
    KB_TRY(fs.make_directories(shard));
    KB_TRY(fs.set_mode(temporary, 0444));
    KB_TRY(fs.rename(temporary, target));
    KB_TRY(fs.sync_directory(shard));
    return fs.sync_directory(directory);
}

} // namespace

std::string unique_name() {
    static std::atomic<unsigned> counter{0};
    // The random part keeps containers apart that share a store but not their process ids.
    return fmt::format("{}-{}-{}",
                       ::getpid(),
                       counter.fetch_add(1),
                       digest::sha256(digest::random_bytes(16)).hex().substr(0, 12));
}

Result<void> check_blob(const StoredBlob& found, const BlobExpectation& expected) {
    if (expected.size && *expected.size != found.size) {
        return Error{.code = ErrorCode::corrupt,
                     .message =
                         fmt::format("expected {} bytes, found {}", *expected.size, found.size)};
    }
    if (expected.digest && *expected.digest != found.digest) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("expected sha256 {}, found {}",
                                            expected.digest->hex(),
                                            found.digest.hex())};
    }
    return {};
}

Result<StoredBlob> hash_file(sys::FileSystem& fs, const sys::Path& path) {
    KB_TRY(const auto file, fs.open_read(path));
    digest::Sha256 hasher;
    std::string buffer(kBlock, '\0');
    StoredBlob out;
    while (true) {
        KB_TRY(const std::size_t n, file->read_at(out.size, buffer.data(), buffer.size()));
        hasher.update(std::string_view{buffer.data(), n});
        out.size += n;
        if (n < buffer.size()) {
            break;
        }
    }
    out.digest = hasher.finish();
    return out;
}

BlobWriter::BlobWriter(sys::FileSystem& fs,
                       sys::Path directory,
                       sys::Path temporary,
                       std::unique_ptr<sys::OutputFile> file,
                       Renew renew)
    : fs_{&fs},
      directory_{std::move(directory)},
      temporary_{std::move(temporary)},
      file_{std::move(file)},
      renew_{renew} {}

BlobWriter::BlobWriter(BlobWriter&& other) noexcept
    : fs_{other.fs_},
      directory_{std::move(other.directory_)},
      temporary_{std::move(other.temporary_)},
      file_{std::move(other.file_)},
      hasher_{std::move(other.hasher_)},
      written_{other.written_},
      renew_{other.renew_} {
    other.temporary_.clear();
}

BlobWriter::~BlobWriter() {
    if (!temporary_.empty()) {
        // Nobody to tell: a temporary that stays is swept by collection.
        static_cast<void>(fs_->remove_file(temporary_).has_value());
    }
}

Result<void> BlobWriter::write(std::string_view bytes) {
    hasher_.update(bytes);
    written_ += bytes.size();
    return file_->write(bytes);
}

Result<StoredBlob> BlobWriter::finish(const BlobExpectation& expected) {
    const StoredBlob blob{.digest = hasher_.finish(), .size = written_};
    KB_TRY(check_blob(blob, expected));
    KB_TRY(file_->sync());
    file_.reset();
    KB_TRY(move_in(*fs_, temporary_, directory_, blob.digest, renew_));
    temporary_.clear();
    return blob;
}

Result<BlobStore> BlobStore::open(sys::FileSystem& fs,
                                  sys::Path directory,
                                  sys::Path temporary_directory,
                                  Renew renew) {
    KB_TRY(fs.make_directories(directory));
    KB_TRY(fs.make_directories(temporary_directory));
    return BlobStore{fs, std::move(directory), std::move(temporary_directory), renew};
}

Result<BlobWriter> BlobStore::begin() {
    sys::Path temporary = temporary_ / unique_name();
    KB_TRY(auto file, fs_->create(temporary, FileMode::regular));
    return BlobWriter{*fs_, directory_, std::move(temporary), std::move(file), renew_};
}

Result<StoredBlob> BlobStore::put(std::string_view content, const BlobExpectation& expected) {
    KB_TRY(BlobWriter writer, begin());
    KB_TRY(writer.write(content));
    return writer.finish(expected);
}

Result<StoredBlob> BlobStore::adopt(const sys::Path& file, const BlobExpectation& expected) {
    KB_TRY(const StoredBlob blob, hash_file(*fs_, file));
    KB_TRY(check_blob(blob, expected).context(fmt::format("adding '{}'", file.string())));
    KB_TRY(move_in(*fs_, file, directory_, blob.digest, renew_));
    return blob;
}

Result<std::unique_ptr<sys::InputFile>> BlobStore::open_read(const digest::Digest& digest) {
    return fs_->open_read(path_of(digest));
}

Result<std::optional<std::uint64_t>> BlobStore::size(const digest::Digest& digest) {
    const auto info = fs_->stat(path_of(digest), sys::FollowLinks::no);
    if (info) {
        return std::optional{info->size};
    }
    if (info.error().code == ErrorCode::not_found) {
        return std::optional<std::uint64_t>{};
    }
    return info.error();
}

Result<StoredBlob> BlobStore::verify(const digest::Digest& digest) {
    KB_TRY(const StoredBlob blob, hash_file(*fs_, path_of(digest)));
    KB_TRY(check_blob(blob, {.digest = digest})
               .context(fmt::format("checking '{}'", path_of(digest).string())));
    return blob;
}

Result<bool> BlobStore::set_aside(const digest::Digest& digest,
                                  std::int64_t before,
                                  const std::function<Result<bool>()>& is_wanted) {
    const sys::Path place = path_of(digest);
    const sys::Path aside = temporary_ / fmt::format("{}{}", kAside, digest.hex());
    const Result<void> moved = fs_->rename(place, aside);
    if (!moved) {
        return moved.error().code == ErrorCode::not_found ? Result<bool>{false}
                                                          : Result<bool>{moved.error()};
    }
    const auto judge = [&]() -> Result<bool> {
        KB_TRY(const sys::FileInfo info, fs_->stat(aside, sys::FollowLinks::no));
        return info.mtime_ns / 1'000'000'000 >= before ? Result<bool>{true} : is_wanted();
    };
    const Result<bool> wanted = judge();
    if (wanted && !*wanted) {
        KB_TRY(fs_->remove_file(aside));
        return true;
    }
    KB_TRY(fs_->rename(aside, place)); // over an equal one, if somebody added it meanwhile
    KB_TRY(wanted);
    return false;
}

Result<void> BlobStore::restore_aside() {
    KB_TRY(const std::vector<sys::DirEntry> entries, fs_->list(temporary_));
    for (const sys::DirEntry& entry : entries) {
        if (!entry.name.starts_with(kAside)) {
            continue;
        }
        const Result<digest::Digest> digest =
            digest::Digest::from_hex(std::string_view{entry.name}.substr(kAside.size()));
        if (digest) {
            KB_TRY(fs_->rename(temporary_ / entry.name, path_of(*digest)));
        }
    }
    return {};
}

Result<void> BlobStore::remove(const digest::Digest& digest) {
    return fs_->remove_file(path_of(digest));
}

Result<std::vector<digest::Digest>> BlobStore::list() {
    std::vector<digest::Digest> out;
    KB_TRY(const auto shards, fs_->list(directory_));
    for (const sys::DirEntry& shard : shards) {
        if (shard.type != sys::FileType::directory || shard.name.size() != 2) {
            continue;
        }
        KB_TRY(const auto names, fs_->list(directory_ / shard.name));
        for (const sys::DirEntry& entry : names) {
            const auto digest = digest::Digest::from_hex(entry.name);
            if (digest && entry.type == sys::FileType::regular) {
                out.push_back(*digest);
            }
        }
    }
    return out;
}

sys::Path BlobStore::path_of(const digest::Digest& digest) const {
    return shard_of(directory_, digest) / digest.hex();
}

} // namespace kb::store
