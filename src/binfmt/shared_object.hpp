// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/version.hpp"
#include "binfmt/byte_reader.hpp"
#include "binfmt/path_texts.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::binfmt {

enum class Format : std::uint8_t { elf, macho, pe };

/// Groups of facts that are read, or not, together.
enum class Fact : std::uint8_t {
    symbols,     ///< imports, exports
    versions,    ///< version_needs, and the versions of imports
    needed,      ///< needed, soname, search_paths
    flags,       ///< exec_stack, text_relocations, relro
    device_code, ///< device_images
    minimum_os,  ///< minimum_os
    path_texts,  ///< path_texts
};

/// A fact that could not be read; not the same as there being none.
struct Gap {
    Fact fact = Fact::symbols;
    std::string reason{};

    bool operator==(const Gap&) const = default;
};

enum class Binding : std::uint8_t { global, weak, unique };

/// A dynamic symbol. The texts point into the storage of its SharedObject.
struct Symbol {
    std::string_view name{};
    /// "GLIBC_2.34"; empty without a version.
    std::string_view version{};
    /// Library that the version is wanted from; empty for definitions and unversioned imports.
    std::string_view library{};
    Binding binding = Binding::global;
};

/// One entry of the version-need table: the loader refuses the file when `library` lacks `version`,
/// whatever symbols use it (unless weak).
struct VersionNeed {
    std::string_view library{};
    std::string_view version{};
    bool weak = false;
};

/// How the search path was written: both are looked at by the loader, at different times.
enum class SearchPathKind : std::uint8_t { rpath, runpath };

struct SearchPath {
    SearchPathKind kind = SearchPathKind::runpath;
    /// Whole text, entries separated by ':'.
    std::string_view text{};
};

enum class DeviceImageKind : std::uint8_t { cubin, ptx, code_object, other };

/// One piece of embedded device code.
struct DeviceImage {
    DeviceImageKind kind = DeviceImageKind::other;
    /// "8.0", "9.0a", "10.0f" for NVIDIA; "gfx942:xnack-" for AMD; empty for `other`.
    std::string arch{};
    bool compressed = false;
    std::uint64_t size = 0;

    bool operator==(const DeviceImage&) const = default;
};

/// What a library says about itself. Movable only: its texts point into `storage`. Facts in `gaps`
/// were not read and mean nothing.
struct SharedObject {
    Format format = Format::elf;
    /// "x86_64", "aarch64", or the file's own word for anything else.
    std::string architecture{};
    std::vector<Symbol> imports{};
    std::vector<Symbol> exports{};
    std::vector<VersionNeed> version_needs{};
    std::vector<std::string_view> needed{};
    std::string_view soname{};
    std::vector<SearchPath> search_paths{};
    bool exec_stack = false;
    bool text_relocations = false;
    bool relro = false;
    /// Hex; empty without one.
    std::string build_id{};
    std::vector<DeviceImage> device_images{};
    /// Mach-O: oldest macOS.
    std::optional<Version> minimum_os{};
    /// Paths in the bytes of the file. Looked for on request only: the whole file has to be read.
    std::vector<PathText> path_texts{};
    std::vector<Gap> gaps{};

    std::vector<std::unique_ptr<const std::vector<std::byte>>> storage{};

    /// Why the fact is not known; nothing when it is.
    [[nodiscard]] std::optional<std::string_view> gap(Fact fact) const;
    void add_gap(Fact fact, std::string reason);
    void remove_gap(Fact fact);
    /// Every fact but path_texts is unknown for this reason.
    void add_all_gaps(const std::string& reason);
    /// Keeps the bytes alive as long as the object; the result points into them.
    Bytes keep(std::vector<std::byte> bytes);
};

/// Reads any supported file. An ELF, Mach-O or PE file of a kind that we do not look into comes
/// back with gaps, and so does every one for path_texts; anything else is `unsupported`, a broken
/// file `corrupt` or `not_found` as the source says.
[[nodiscard]] Result<SharedObject> read_shared_object(const ByteSource& source);

[[nodiscard]] std::string_view to_text(Format format);
[[nodiscard]] std::string_view to_text(DeviceImageKind kind);

} // namespace kb::binfmt
