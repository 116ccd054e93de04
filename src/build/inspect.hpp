// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "binfmt/shared_object.hpp"
#include "check/check.hpp"
#include "package/metadata.hpp"
#include "sys/file_system.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace kb::build {

/// Reads one file by offset; a library of any size costs its tables.
[[nodiscard]] Result<binfmt::SharedObject> inspect_file(const sys::Path& path);

/// Every library below `directory` (.so, .so.N, .pyd, .dylib, .dll; links to files count), sorted
/// by path, read on up to `threads` threads. A file that cannot be read is a Library with its
/// reason; only a directory that cannot be listed is an Error.
[[nodiscard]] Result<std::vector<check::Library>>
inspect_libraries(sys::FileSystem& fs, const sys::Path& directory, unsigned threads);

/// Runs every check, with what they need besides the libraries: the names that torch exports.
[[nodiscard]] check::Report run_checks(check::CheckInput input);

/// What a finished variant claims by its directory name and its metadata. Defaults where it says
/// nothing: manylinux_2_28, limited API of Python 3.9, macOS 15.0 (26.0 for Metal).
[[nodiscard]] check::Promise promise_of(std::string_view variant_name,
                                        const package::Metadata* metadata);

} // namespace kb::build
