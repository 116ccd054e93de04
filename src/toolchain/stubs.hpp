// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file_image.hpp"
#include "base/result.hpp"
#include "base/version.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::toolchain {

enum class SymbolType : std::uint8_t { function, object, tls };

/// A symbol that a stub exports.
struct StubSymbol {
    std::string_view name{};
    std::string_view version{}; ///< "GLIBC_2.17"; empty for libraries without versions.
    bool is_default = true;     ///< What a link takes ("@@").
    SymbolType type = SymbolType::function;
    bool is_weak = false;
    std::uint64_t size = 0;
};

/// One stub library: what a linker sees of the real one.
struct StubLibrary {
    std::string soname{};
    std::vector<StubSymbol> symbols{};
};

/// Reads data/<policy>_<arch>.tsv. The texts point into `tsv`.
[[nodiscard]] Result<std::vector<StubLibrary>> parse_stub_table(std::string_view tsv);

/// Assembler text whose object, linked with stub_version_script(), is the stub.
[[nodiscard]] std::string stub_assembly(const StubLibrary& library);
/// Empty for a library without versions.
[[nodiscard]] std::string stub_version_script(const StubLibrary& library);

/// Everything that makes the stubs of the manylinux baseline, `make.sh` included: run by sh in a
/// folder that holds these files, it leaves the result in `out/`. The compiler's name is `gcc`
/// after `tools`: "" or "aarch64-linux-gnu-".
[[nodiscard]] std::vector<FileImage> baseline_stub_sources(std::span<const StubLibrary> libraries,
                                                           std::string_view compat_source,
                                                           std::string_view tools);
/// The same for the libraries of torch or tvm-ffi, which have a link name each.
[[nodiscard]] std::vector<FileImage> framework_stub_sources(std::span<const StubLibrary> libraries,
                                                            std::string_view tools);

} // namespace kb::toolchain
