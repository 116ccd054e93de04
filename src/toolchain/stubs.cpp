// SPDX-License-Identifier: Apache-2.0
#include "toolchain/stubs.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace kb::toolchain {
namespace {

/// By their numbers: "GLIBC_2.2.5" before "GLIBC_2.17".
bool version_before(std::string_view a, std::string_view b) {
    return natural_less(a, b);
}

void write_symbol(std::string& out, const StubSymbol& symbol, std::size_t number) {
    const std::string label =
        symbol.version.empty() ? std::string{symbol.name} : fmt::format("__kb_{}", number);
    std::string_view section = ".text";
    std::string_view type = "function";
    std::uint64_t size = 0;
    if (symbol.type == SymbolType::object) {
        section = ".section .bss,\"aw\",@nobits";
        type = "object";
        size = symbol.size;
    } else if (symbol.type == SymbolType::tls) {
        section = ".section .tbss,\"awT\",@nobits";
        type = "tls_object";
        size = symbol.size;
    }
    fmt::format_to(std::back_inserter(out),
                   "{}\n.type {},%{}\n{} {}\n.size {},{}\n{}:\n.skip {}\n",
                   section,
                   label,
                   type,
                   symbol.is_weak ? ".weak" : ".globl",
                   label,
                   label,
                   size,
                   label,
                   std::max<std::uint64_t>(size, 4));
    if (!symbol.version.empty()) {
        fmt::format_to(std::back_inserter(out),
                       ".symver {},{}{}{},remove\n",
                       label,
                       symbol.name,
                       symbol.is_default ? "@@" : "@",
                       symbol.version);
    }
}

FileImage file(std::string_view path, std::string content) {
    return {.path = RelPath::literal(path), .content = std::move(content)};
}

/// Sources of one library, and the line of make.sh that links it.
std::string
add_library(const StubLibrary& library, std::string_view tools, std::vector<FileImage>& out) {
    out.push_back(file(library.soname + ".s", stub_assembly(library)));
    const std::string script = stub_version_script(library);
    std::string options;
    if (!script.empty()) {
        out.push_back(file(library.soname + ".map", script));
        options = fmt::format(" -Wl,--version-script={}.map", library.soname);
    }
    return fmt::format(
        "{2}gcc -shared -nostdlib -Wl,-soname,{0}{1} -Wl,--build-id=none -o out/{0} {0}.s\n",
        library.soname,
        options,
        tools);
}

Result<StubSymbol> parse_row(std::span<const std::string_view> cells) {
    StubSymbol symbol{.name = cells[1],
                      .version = cells[2],
                      .is_default = cells[3] == "@@",
                      .is_weak = cells[5] == "weak"};
    const auto size = parse_unsigned(cells[6]);
    const bool known_type = cells[4] == "function" || cells[4] == "object" || cells[4] == "tls";
    if (symbol.name.empty() || !size || !known_type) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("symbol '{}' has a malformed row", cells[1])};
    }
    symbol.size = *size;
    symbol.type = cells[4] == "object" ? SymbolType::object
                  : cells[4] == "tls"  ? SymbolType::tls
                                       : SymbolType::function;
    return symbol;
}

} // namespace

Result<std::vector<StubLibrary>> parse_stub_table(std::string_view tsv) {
    std::vector<StubLibrary> out;
    for (const std::string_view line : split(tsv, '\n')) {
        if (line.empty() || line.front() == '#') {
            continue;
        }
        const auto cells = split(line, '\t');
        if (cells.size() != 7) {
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format("expected seven cells: '{}'", line)};
        }
        KB_TRY(const StubSymbol symbol, parse_row(cells));
        if (out.empty() || out.back().soname != cells[0]) {
            out.push_back({.soname = std::string{cells[0]}});
        }
        out.back().symbols.push_back(symbol);
    }
    return out;
}

std::string stub_assembly(const StubLibrary& library) {
    std::string out = ".text\n";
    std::size_t number = 0;
    for (const StubSymbol& symbol : library.symbols) {
        write_symbol(out, symbol, ++number);
    }
    return out + ".section .note.GNU-stack,\"\",%progbits\n";
}

std::string stub_version_script(const StubLibrary& library) {
    std::vector<std::string_view> versions;
    for (const StubSymbol& symbol : library.symbols) {
        if (!symbol.version.empty()) {
            versions.push_back(symbol.version);
        }
    }
    std::ranges::sort(versions, version_before);
    versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
    std::string out;
    for (const std::string_view version : versions) {
        // The labels of the assembler text are nobody's business.
        out += fmt::format("{} {{ {}}};\n", version, out.empty() ? "local: __kb_*; " : "");
    }
    return out;
}

std::vector<FileImage> baseline_stub_sources(std::span<const StubLibrary> libraries,
                                             std::string_view compat_source,
                                             std::string_view tools) {
    std::vector<FileImage> out;
    std::string make = "set -e\nmkdir -p out\n";
    std::string loader;
    bool vector_math = false;
    for (const StubLibrary& library : libraries) {
        make += add_library(library, tools, out);
        vector_math = vector_math || library.soname == "libmvec.so.1";
        if (library.soname.starts_with("ld-linux")) {
            loader = library.soname;
        }
    }
    out.push_back(file("compat.c", std::string{compat_source}));
    // New parts of libstdc++ come from the archive, old ones from the shared library.
    // libc_nonshared.a holds atexit and the like, which every shared library needs a copy of.
    make += fmt::format("{0}gcc -O2 -fPIC -ffunction-sections -fno-builtin -w -c compat.c -o "
                        "compat.o\n"
                        "ar rcsD out/libkbcompat.a compat.o\n"
                        "cp \"$({0}gcc -print-file-name=libstdc++.a)\" out/libstdc++_nonshared.a\n"
                        "cp \"$({0}gcc -print-file-name=libc_nonshared.a)\" out/\n"
                        "cp scripts/* out/\n"
                        "chmod 644 out/*\n",
                        tools);
    const auto script = [&](std::string_view name, std::string text) {
        out.push_back(file(fmt::format("scripts/{}", name), std::move(text) + "\n"));
    };
    script("libstdc++.so", "INPUT(libstdc++.so.6 libstdc++_nonshared.a)");
    script("libgcc_s.so", "GROUP(libgcc_s.so.1 -lgcc)");
    script("libm.so",
           vector_math ? "GROUP(libm.so.6 AS_NEEDED(libmvec.so.1))" : "GROUP(libm.so.6)");
    for (const auto& [name, target] : {std::pair{"libpthread.so", "libpthread.so.0"},
                                       std::pair{"libdl.so", "libdl.so.2"},
                                       std::pair{"librt.so", "librt.so.1"},
                                       std::pair{"libutil.so", "libutil.so.1"}}) {
        script(name, fmt::format("INPUT({})", target));
    }
    script("libc.so",
           fmt::format("GROUP(libc.so.6 libkbcompat.a libc_nonshared.a AS_NEEDED({} "
                       "libpthread.so.0 libdl.so.2 librt.so.1 libutil.so.1))",
                       loader));
    out.push_back(file("make.sh", std::move(make)));
    return out;
}

std::vector<FileImage> framework_stub_sources(std::span<const StubLibrary> libraries,
                                              std::string_view tools) {
    std::vector<FileImage> out;
    std::string make = "set -e\nmkdir -p out\n";
    for (const StubLibrary& library : libraries) {
        make += add_library(library, tools, out);
    }
    out.push_back(file("make.sh", make + "chmod 644 out/*\n"));
    return out;
}

} // namespace kb::toolchain
