// SPDX-License-Identifier: Apache-2.0
#include "toolchain/providers/source.hpp"

#include "base/text.hpp"
#include "http/curl_client.hpp"
#include "store/blob_store.hpp"
#include "sys/environment.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>

namespace kb::toolchain {
namespace {

/// Before the second and the third try.
constexpr std::array kRetryPauses{std::chrono::seconds{1}, std::chrono::seconds{5}};

bool is_address(std::string_view place) {
    return place.starts_with("http://") || place.starts_with("https://");
}

Result<void> copy_local(const std::string& place, const sys::Path& target, const Machine& machine) {
    if (!sys::exists(machine.fs, place)) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("there is no file '{}'", place)};
    }
    return machine.fs.copy_file(place, target);
}

Result<void> try_download(http::HttpClient& client,
                          const http::Url& url,
                          const sys::Path& target,
                          const Machine& machine) {
    KB_TRY(machine.fs.remove_file(target));
    KB_TRY(const auto file, machine.fs.create(target, FileMode::regular));
    http::Request request{.url = url};
    request.sink = [&](Bytes bytes) {
        return file->write(as_text(bytes));
    };
    KB_TRY(const http::Response response, client.send(request));
    if (response.ok()) {
        return {};
    }
    const bool gone = response.status == 404 || response.status == 410;
    const bool passing = response.status == 429 || response.status >= 500;
    return Error{.code = gone      ? ErrorCode::not_found
                         : passing ? ErrorCode::transient
                                   : ErrorCode::denied,
                 .message =
                     fmt::format("'{}' answers with status {}", url.redacted(), response.status)};
}

} // namespace

Result<std::string>
place_of(const backend::Requirement& requirement, const PlaceWords& words, const Sources& sources) {
    auto found = sources.find(requirement.provider + "/" + requirement.name);
    if (found == sources.end()) {
        found = sources.find(requirement.provider);
    }
    if (found == sources.end()) {
        return Error{
            .code = ErrorCode::not_found,
            .message = fmt::format(
                "no source of '{0}' is configured: set \"{1}/{2}\" or \"{1}\" in [sources] "
                "of config.toml, or give a directory of files with --from",
                requirement.id(),
                requirement.provider,
                requirement.name)};
    }
    std::string place = found->second;
    const bool whole =
        place.find("{file}") != std::string::npos || place.find("{version}") != std::string::npos;
    if (!whole && !words.file.empty()) {
        place += place.ends_with('/') ? "{file}" : "/{file}";
    }
    place = replace_all(place, "{name}", words.name);
    place = replace_all(place, "{version}", words.version);
    return replace_all(place, "{file}", words.file);
}

Result<void> get_file(const std::string& place,
                      const sys::Path& target,
                      const Machine& machine,
                      const FetchOptions& options) {
    if (!is_address(place)) {
        return copy_local(place, target, machine);
    }
    KB_TRY(const http::Url url, http::Url::parse(place));
    std::unique_ptr<http::HttpClient> own;
    http::HttpClient* client = options.http;
    if (client == nullptr) {
        own = http::make_curl_client();
        client = own.get();
    }
    for (std::size_t attempt = 0;; ++attempt) {
        auto done = try_download(*client, url, target, machine);
        if (done) {
            return {};
        }
        static_cast<void>(machine.fs.remove_file(target).has_value());
        if (done.error().code != ErrorCode::transient || attempt == kRetryPauses.size()) {
            return done;
        }
        if (!machine.clock.sleep(kRetryPauses.at(attempt))) {
            return Error{.code = ErrorCode::cancelled, .message = "interrupted"};
        }
    }
}

bool looks_like_page(std::string_view head) {
    const std::string start = to_lower(trim(head).substr(0, 14));
    return start.starts_with("<!doctype html") || start.starts_with("<html");
}

Result<std::string> read_head(sys::FileSystem& fs, const sys::Path& path, std::size_t size) {
    KB_TRY(const auto file, fs.open_read(path));
    std::string head(size, '\0');
    KB_TRY(const std::size_t got, file->read_at(0, head.data(), head.size()));
    head.resize(got);
    return head;
}

Result<std::vector<plan::LockEntry>> pin_file(const Machine& machine,
                                              const backend::Requirement& requirement,
                                              const sys::Path& file,
                                              std::string platform) {
    KB_TRY(const store::StoredBlob blob, store::hash_file(machine.fs, file));
    plan::LockEntry entry{.id = requirement.id(),
                          .file = file.filename().string(),
                          .platform = std::move(platform),
                          .size = blob.size,
                          .sha256 = blob.digest};
    if (!requirement.slice.empty()) {
        entry.slice = plan::LockSlice{.name = requirement.slice};
    }
    return std::vector{std::move(entry)};
}

Result<TemporaryFolder> TemporaryFolder::make(const Machine& machine, std::string_view purpose) {
    const std::string base = sys::lookup(machine.environment, "TMPDIR").value_or("/tmp");
    sys::Path path =
        sys::Path{base} / fmt::format("kernel-builder-{}-{}", purpose, store::unique_name());
    KB_TRY(machine.fs.make_directories(path));
    return TemporaryFolder{machine.fs, std::move(path)};
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : fs_{other.fs_}, path_{std::exchange(other.path_, {})} {}

TemporaryFolder::~TemporaryFolder() {
    if (!path_.empty()) {
        // What cannot be removed is a temporary file of the system then.
        static_cast<void>(fs_->remove_tree(path_).has_value());
    }
}

} // namespace kb::toolchain
