// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kb::build {

enum class StubMachine : std::uint8_t { x86_64, aarch64 };

/// What a stub function answers: 100 (the CUDA runtime's "no device"), or a text that says what it
/// is.
enum class StubAnswer : std::uint8_t { no_device, text };

struct StubSymbol {
    std::string name{};
    /// Version node that importers ask for; may be empty.
    std::string version{};
    StubAnswer answer = StubAnswer::no_device;

    auto operator<=>(const StubSymbol&) const = default;
};

/// A library that can be loaded but does nothing.
struct StubLibrary {
    std::string soname{};
    StubMachine machine = StubMachine::x86_64;
    /// Each (name, version) once; order is kept.
    std::vector<StubSymbol> symbols{};
    /// Version nodes beyond those of the symbols.
    std::vector<std::string> versions{};
};

/// The ELF file of the library: PURE, equal values give equal bytes. It has no section table, so a
/// loader takes it and a linker does not.
[[nodiscard]] std::string write_stub_library(const StubLibrary& library);

} // namespace kb::build
