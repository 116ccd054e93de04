// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "binfmt/shared_object.hpp"
#include "check/abi_diff.hpp"
#include "check/check.hpp"
#include "config/project_settings.hpp"
#include "package/metadata.hpp"
#include "sys/file_system.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

/// What inspection reads besides the tables.
struct InspectOptions {
    unsigned threads = 1;
    /// Whether the whole file is searched for paths of a building machine.
    enum class Paths : std::uint8_t { find, skip } paths = Paths::find;
    /// As CheckInput::machine_places.
    std::vector<std::string> machine_places{};
};

/// Reads one file by offset. Without the search for paths a library of any size costs its tables;
/// with it, memory does not grow with the file either.
[[nodiscard]] Result<binfmt::SharedObject> inspect_file(const sys::Path& path,
                                                        const InspectOptions& options);

/// A library as a diff wants it.
struct AbiFacts {
    binfmt::SharedObject object{};
    std::map<std::string, std::uint64_t> sections{};
    std::vector<std::string> schemas{};

    /// Points into this.
    [[nodiscard]] check::AbiSide side() const {
        return {.object = &object, .sections = sections, .schemas = schemas};
    }
};

/// Symbols, sections and schemas of one file. `unsupported` when its symbols cannot be read;
/// sections are empty for other files than ELF.
[[nodiscard]] Result<AbiFacts> read_abi(const sys::Path& path);

/// Every library below `directory` (.so, .so.N, .pyd, .dylib, .dll; links to files count), sorted
/// by path, read on up to `threads` threads. A file that cannot be read is a Library with its
/// reason; only a directory that cannot be listed is an Error.
[[nodiscard]] Result<std::vector<check::Library>>
inspect_libraries(sys::FileSystem& fs, const sys::Path& directory, const InspectOptions& options);

/// What the author of the project lets be.
[[nodiscard]] std::vector<check::Suppression>
suppressions_of(const config::ProjectSettings& settings);

/// Directories of this machine that no library may name (CheckInput::machine_places): the project
/// and its state folder, both as named and as links resolve. Left out is what the sandbox calls its
/// own places: there '/src/x.cpp' is the same on every machine.
[[nodiscard]] std::vector<std::string> machine_places(const sys::Path& project);

/// "check: message" of each finding that counts.
[[nodiscard]] std::vector<std::string> failures_of(const check::Report& report);

/// Ids of the checks that keep the variant from being published, each once, sorted: with a finding
/// that counts, or a refused look that was not allowed.
[[nodiscard]] std::vector<std::string> failed_checks(const check::Report& report);

/// Runs every check, with what they need besides the libraries: the names that torch exports.
[[nodiscard]] check::Report run_checks(check::CheckInput input);

/// What a finished variant claims by its directory name and its metadata. Defaults where it says
/// nothing: manylinux_2_28, limited API of Python 3.9, macOS 15.0 (26.0 for Metal).
[[nodiscard]] check::Promise promise_of(std::string_view variant_name,
                                        const package::Metadata* metadata);

} // namespace kb::build
