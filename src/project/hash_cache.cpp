// SPDX-License-Identifier: Apache-2.0
#include "project/hash_cache.hpp"

#include "base/text.hpp"
#include "sys/random_access_file.hpp"
#include "sys/worker_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <vector>

namespace kb::project {

namespace {

constexpr std::int64_t kRacySeconds = 2;
/// Stays in the cache of a core between read and hash: 5 % less CPU than 1 MiB, as much as 128 KiB
/// (SHA-NI, 300 MB from the page cache, 2026-12-01).
constexpr std::size_t kChunk = 64UL << 10U;

std::string stamp(const sys::FileInfo& info) {
    return fmt::format(
        "{}:{}:{}:{}:{}", info.device, info.inode, info.size, info.mtime_ns, info.ctime_ns);
}

} // namespace

Result<digest::Digest> hash_file(const sys::Path& path) {
    KB_TRY(const sys::RandomAccessFile file, sys::RandomAccessFile::open(path));
    const std::uint64_t size = file.size();
    digest::Sha256 hasher;
    std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, size)));
    for (std::uint64_t at = 0; at < size; at += buffer.size()) {
        const std::size_t n =
            static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - at));
        const std::span<std::byte> part = std::span{buffer}.first(n);
        KB_TRY(file.read(at, part));
        hasher.update(part);
    }
    return hasher.finish();
}

// "<device>:<inode>:<size>:<mtime ns>:<ctime ns> <sha256>"
HashCache HashCache::open(sys::FileSystem& fs, sys::Path file) {
    HashCache cache{std::move(file)};
    const Result<std::string> text = fs.read_file(cache.file_);
    if (!text) {
        return cache;
    }
    for (const std::string_view line : split(*text, '\n')) {
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos) {
            continue;
        }
        if (const Result<digest::Digest> value = digest::Digest::from_hex(line.substr(space + 1))) {
            cache.known_.emplace(line.substr(0, space), *value);
        }
    }
    return cache;
}

void HashCache::remember(sys::Clock& clock,
                         const sys::FileInfo& info,
                         const digest::Digest& value) {
    const std::int64_t newest = std::max(info.mtime_ns, info.ctime_ns) / 1'000'000'000;
    if (clock.unix_seconds() - newest > kRacySeconds) {
        used_.insert_or_assign(stamp(info), value);
    }
}

Result<digest::Digest>
HashCache::sha256(sys::FileSystem& fs, sys::Clock& clock, const sys::Path& path) {
    KB_TRY(const sys::FileInfo before, fs.stat(path));
    const std::string key = stamp(before);
    if (const auto found = known_.find(key); found != known_.end()) {
        used_.insert(*found);
        return found->second;
    }
    if (const auto found = ahead_.find(key); found != ahead_.end()) {
        return found->second;
    }
    KB_TRY(const digest::Digest value, hash_file(path));
    KB_TRY(const sys::FileInfo after, fs.stat(path));
    if (stamp(after) == key) {
        remember(clock, after, value);
    }
    return value;
}

std::optional<digest::Digest> HashCache::find(sys::FileSystem& fs, const sys::Path& path) {
    const Result<sys::FileInfo> info = fs.stat(path);
    const auto found = info ? known_.find(stamp(*info)) : known_.end();
    if (found == known_.end()) {
        return std::nullopt;
    }
    used_.insert(*found);
    return found->second;
}

void HashCache::hash_ahead(sys::FileSystem& fs,
                           sys::Clock& clock,
                           std::span<const sys::Path> paths,
                           unsigned threads) {
    struct Job {
        sys::Path path{};
        sys::FileInfo info{};
        std::optional<digest::Digest> value{};
    };

    std::vector<Job> jobs;
    for (const sys::Path& path : paths) {
        const Result<sys::FileInfo> info = fs.stat(path);
        if (info && info->type == sys::FileType::regular && !known_.contains(stamp(*info)) &&
            !ahead_.contains(stamp(*info))) {
            jobs.push_back({.path = path, .info = *info});
        }
    }
    std::ranges::sort(jobs, std::greater{}, [](const Job& job) { return job.info.size; });
    sys::parallel_for(jobs.size(), std::max(1U, threads), [&jobs](std::size_t i) {
        if (const Result<digest::Digest> value = hash_file(jobs[i].path)) {
            jobs[i].value = *value;
        }
    });
    for (const Job& job : jobs) {
        const Result<sys::FileInfo> after = fs.stat(job.path);
        if (job.value && after && stamp(*after) == stamp(job.info)) {
            ahead_.insert_or_assign(stamp(*after), *job.value);
            remember(clock, *after, *job.value);
        }
    }
}

Result<void> HashCache::save(sys::FileSystem& fs) {
    if (used_ == known_) {
        return {};
    }
    std::string text;
    for (const auto& [key, value] : used_) {
        text += fmt::format("{} {}\n", key, value.hex());
    }
    // Without fsync: what a crash tears is an empty cache. A random name, since process ids repeat
    // among containers that share a project.
    std::random_device random;
    const sys::Path temporary =
        fmt::format("{}.{:08x}{:08x}.tmp", file_.string(), random(), random());
    KB_TRY(const auto file, fs.create(temporary, FileMode::regular));
    Result<void> saved = file->write(text);
    if (saved) {
        saved = fs.rename(temporary, file_);
    }
    if (!saved) {
        static_cast<void>(fs.remove_file(temporary).has_value());
        return saved;
    }
    known_ = used_;
    return {};
}

} // namespace kb::project
