// SPDX-License-Identifier: Apache-2.0
#include "registry/parts.hpp"

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "store/blob_store.hpp"
#include "sys/errno_error.hpp"
#include "sys/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <set>
#include <unistd.h>
#include <vector>

namespace kb::registry {

namespace {

constexpr std::size_t kBlock = 1UL << 20U;
constexpr std::uint64_t kMostParts = 1000;
constexpr std::uint64_t kMiB = 1UL << 20U;
constexpr const char* kData = "data";

hub::HubStatus refused(std::string message) {
    return {.http = 422, .message = std::move(message)};
}

hub::HubStatus busy() {
    // Clients repeat after 503 by themselves; a killed one may still be busy here with its last
    // parts.
    return {.http = 503, .message = "the upload is in use by another request: repeat this one"};
}

Result<void> write_at(int file, Bytes bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return error_from_errno(errno, "writing a part");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(n));
        offset += static_cast<std::uint64_t>(n);
    }
    return {};
}

/// `length` bytes of the body to `offset` of the file, synced.
Reply<Done>
copy_body(http::BodyReader& body, int file, std::uint64_t offset, std::uint64_t length) {
    std::vector<std::byte> block(static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, length)));
    std::uint64_t done = 0;
    while (true) {
        const Result<std::size_t> n = http::read_block(body, block);
        if (!n) {
            return hub::HubStatus{.http = 408, .message = "the part broke off"};
        }
        if (*n == 0) {
            break;
        }
        if (done + *n > length) {
            return refused(fmt::format("the part has over {} bytes", length));
        }
        KB_TRY(write_at(file, std::span{block}.first(*n), offset + done));
        done += *n;
    }
    if (done != length) {
        return refused(fmt::format("the part has {} bytes instead of {}", done, length));
    }
    if (::fdatasync(file) != 0) {
        return error_from_errno(errno, "syncing a part");
    }
    return Done{};
}

std::string_view unquoted(std::string_view etag) {
    const bool is_quoted = etag.size() >= 2 && etag.front() == '"' && etag.back() == '"';
    return is_quoted ? etag.substr(1, etag.size() - 2) : etag;
}

} // namespace

std::uint64_t choose_part_bytes(std::uint64_t size, std::uint64_t least) {
    const std::uint64_t needed = (size / kMostParts / kMiB + 1) * kMiB;
    return size / std::max<std::uint64_t>(least, 1) < kMostParts ? std::max<std::uint64_t>(least, 1)
                                                                 : std::max(least, needed);
}

class PartStore::Lease {
public:
    enum class Kind : std::uint8_t { writer, completer };

    Lease(PartStore& store, const std::string& id, Kind kind)
        : store_{&store}, id_{id}, kind_{kind} {
        const std::scoped_lock lock{store.mutex_};
        Use& use = store.in_use_[id];
        granted_ = !use.completing && (kind == Kind::writer || use.writers == 0);
        if (granted_ && kind == Kind::writer) {
            ++use.writers;
        } else if (granted_) {
            use.completing = true;
        }
    }

    ~Lease() {
        const std::scoped_lock lock{store_->mutex_};
        const auto found = store_->in_use_.find(id_);
        if (granted_ && kind_ == Kind::writer) {
            --found->second.writers;
        } else if (granted_) {
            found->second.completing = false;
        }
        if (found->second.writers == 0 && !found->second.completing) {
            store_->in_use_.erase(found);
        }
    }

    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    [[nodiscard]] bool is_granted() const { return granted_; }

private:
    PartStore* store_;
    std::string id_;
    Kind kind_;
    bool granted_ = false;
};

Reply<std::string>
PartStore::receive(const PartialUpload& upload, std::uint64_t number, http::BodyReader& body) {
    if (number < 1 || number > upload.parts()) {
        return refused(fmt::format("the upload has parts 1 to {}", upload.parts()));
    }
    const std::uint64_t offset = (number - 1) * upload.part_bytes;
    const std::uint64_t length = std::min(upload.part_bytes, upload.size - offset);
    if (const auto announced = body.length(); announced && *announced != length) {
        return refused(
            fmt::format("part {} has {} bytes instead of {}", number, *announced, length));
    }
    const Lease lease{*this, upload.id, Lease::Kind::writer};
    if (!lease.is_granted()) {
        return busy();
    }
    const sys::Path folder = this->folder(upload);
    const sys::Path note = folder / fmt::format("{}", number);
    KB_TRY(fs_->make_directories(folder));
    KB_TRY(fs_->sync_directory(directory_));
    // A part that comes again is not confirmed while it is half written.
    KB_TRY(fs_->remove_file(note));
    const sys::UniqueFd file{
        ::open((folder / kData).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (!file) {
        return error_from_errno(errno, "opening an upload");
    }
    KB_TRY(copy_body(body, file.get(), offset, length));
    // Not a digest: the whole object's is what counts. It names this writing of the part.
    const std::string etag = digest::sha256(digest::random_bytes(16)).hex().substr(0, 32);
    KB_TRY(fs_->write_atomic(note, etag, FileMode::regular));
    return etag;
}

Reply<Done> PartStore::check_parts(const PartialUpload& upload,
                                   const std::vector<hub::LfsPart>& parts) const {
    std::set<std::uint64_t> seen;
    for (const hub::LfsPart& part : parts) {
        if (part.number < 1 || part.number > upload.parts() || !seen.insert(part.number).second) {
            return refused(fmt::format("part {} is listed twice or does not exist", part.number));
        }
        const Result<std::string> etag =
            fs_->read_file(folder(upload) / fmt::format("{}", part.number), 100);
        if (!etag && etag.error().code != ErrorCode::not_found) {
            return etag.error();
        }
        if (!etag || *etag != unquoted(part.etag)) {
            return refused(fmt::format("part {} is not here, or not the one of that ETag: send it "
                                       "again",
                                       part.number));
        }
    }
    if (seen.size() != upload.parts()) {
        return refused(fmt::format("{} of {} parts are listed", seen.size(), upload.parts()));
    }
    return Done{};
}

Reply<Done> PartStore::complete(const PartialUpload& upload,
                                const std::vector<hub::LfsPart>& parts,
                                const std::function<Reply<Done>(const sys::Path&)>& take) {
    const Lease lease{*this, upload.id, Lease::Kind::completer};
    if (!lease.is_granted()) {
        return busy();
    }
    KB_TRY(check_parts(upload, parts));
    Reply<Done> taken = take(folder(upload) / kData);
    // An internal failure, such as a full disk, leaves the parts for the next try.
    if (taken || taken.error().http < 500) {
        KB_TRY(fs_->remove_tree(folder(upload)));
    }
    return taken;
}

Result<std::size_t>
sweep_parts(sys::FileSystem& fs, const sys::Path& directory, std::int64_t before) {
    std::size_t removed = 0;
    const Result<std::vector<sys::DirEntry>> uploads = fs.list(directory);
    if (!uploads) {
        return uploads.error().code == ErrorCode::not_found ? Result<std::size_t>{removed}
                                                            : Result<std::size_t>{uploads.error()};
    }
    for (const sys::DirEntry& upload : *uploads) {
        KB_TRY(const sys::FileInfo info, fs.stat(directory / upload.name, sys::FollowLinks::no));
        if (info.mtime_ns / 1'000'000'000 < before) {
            KB_TRY(fs.remove_tree(directory / upload.name));
            ++removed;
        }
    }
    return removed;
}

} // namespace kb::registry
