// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "toolchain/provider.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::toolchain {

/// What of a place is filled in.
struct PlaceWords {
    std::string_view name{};
    std::string_view version{};
    std::string_view file{};
};

/// Where the user lets this requirement be read, with its words filled in; the entry of the
/// requirement itself before that of its provider. An address without {file} and {version} is a
/// folder: the file is below it, if there is one. `not_found` says what to configure.
[[nodiscard]] Result<std::string>
place_of(const backend::Requirement& requirement, const PlaceWords& words, const Sources& sources);

/// Copies a place (address or local path) to a new file. `not_found` when it is not there, with
/// the address as people may see it. Broken connections are tried three times.
Result<void> get_file(const std::string& place,
                      const sys::Path& target,
                      const Machine& machine,
                      const FetchOptions& options);

/// The start of a file is HTML: what proxies and log-in pages send in place of an archive.
[[nodiscard]] bool looks_like_page(std::string_view head);
/// Up to `size` bytes of the start of a file.
Result<std::string> read_head(sys::FileSystem& fs, const sys::Path& path, std::size_t size);

/// The entry that pins this file for the requirement, under its own name.
Result<std::vector<plan::LockEntry>> pin_file(const Machine& machine,
                                              const backend::Requirement& requirement,
                                              const sys::Path& file,
                                              std::string platform = "any");

/// A new folder in TMPDIR, removed with this object.
class TemporaryFolder {
public:
    static Result<TemporaryFolder> make(const Machine& machine, std::string_view purpose);

    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    TemporaryFolder(TemporaryFolder&& other) noexcept;
    TemporaryFolder& operator=(TemporaryFolder&&) = delete;
    ~TemporaryFolder();

    [[nodiscard]] const sys::Path& path() const { return path_; }

private:
    TemporaryFolder(sys::FileSystem& fs, sys::Path path) : fs_{&fs}, path_{std::move(path)} {}

    sys::FileSystem* fs_;
    sys::Path path_;
};

} // namespace kb::toolchain
