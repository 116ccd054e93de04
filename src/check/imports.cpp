// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"
#include "check/cxx_names.hpp"
#include "check/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::check {

namespace {

// What stands in for the linker's '-z defs': Python loads torch's libraries without giving their
// symbols to everybody, so an import that no needed library defines fails when the module is loaded
// and not before. The symbol lists of those libraries are not at hand; names are told by whose they
// look.

using Prefixes = std::span<const std::string_view>;

constexpr std::array<std::string_view, 12> kSystem{"libc.so.",
                                                   "libm.so.",
                                                   "libdl.so.",
                                                   "librt.so.",
                                                   "libpthread.so.",
                                                   "libutil.so.",
                                                   "libgcc_s.so.",
                                                   "libstdc++.so.",
                                                   "libatomic.so.",
                                                   "libmvec.so.",
                                                   "ld-linux",
                                                   "libpython"};

struct Family {
    /// Sonames begin so ...
    Prefixes libraries{};
    /// ... and the symbols that they define so.
    Prefixes symbols{};
};

constexpr std::array<std::string_view, 2> kTorchLibraries{"libtorch", "libc10"};
constexpr std::array<std::string_view, 4> kTorchSymbols{"aoti_torch_", "torch_", "AOTI", "THP"};
constexpr std::array<std::string_view, 3> kCudaLibraries{"libcu", "libnv", "libnccl"};
constexpr std::array<std::string_view, 6> kCudaSymbols{
    "cu", "__cuda", "nv", "__nv", "nccl", "__fatDeviceText"};
constexpr std::array<std::string_view, 5> kRocmLibraries{
    "libamdhip", "libhip", "libroc", "libMIOpen", "librccl"};
constexpr std::array<std::string_view, 6> kRocmSymbols{
    "hip", "__hip", "roc", "miopen", "nccl", "rccl"};
constexpr std::array<std::string_view, 1> kTvmLibraries{"libtvm_ffi"};
constexpr std::array<std::string_view, 2> kTvmSymbols{"TVMFFI", "_ZN3tvm"};

constexpr std::array<Family, 4> kFamilies{{{.libraries = kTorchLibraries, .symbols = kTorchSymbols},
                                           {.libraries = kCudaLibraries, .symbols = kCudaSymbols},
                                           {.libraries = kRocmLibraries, .symbols = kRocmSymbols},
                                           {.libraries = kTvmLibraries, .symbols = kTvmSymbols}}};

bool begins(std::string_view text, Prefixes prefixes) {
    return std::ranges::any_of(prefixes,
                               [&](std::string_view prefix) { return text.starts_with(prefix); });
}

/// The C++ runtime. Its symbols carry versions, but for those that torch's libraries export as
/// well: the linker may have bound to these.
bool is_runtime_symbol(std::string_view name) {
    constexpr std::array<std::string_view, 9> kPrefixes{"_ZS",
                                                        "_ZTVN10__cxxabiv1",
                                                        "_Znw",
                                                        "_Zna",
                                                        "_Zdl",
                                                        "_Zda",
                                                        "__cxa_",
                                                        "_Unwind_",
                                                        "__gxx_personality"};
    if (begins(name, kPrefixes)) {
        return true;
    }
    // "_ZNKRSt...": members of namespace std, whatever they are qualified with; "_ZTISt...".
    std::string_view rest = name;
    if (name.starts_with("_ZN")) {
        const std::size_t at = name.find_first_not_of("rVKRO", 3);
        rest = name.substr(std::min(at, name.size()));
    } else if (name.starts_with("_ZT") && name.size() > 4) {
        rest = name.substr(4);
    }
    return rest.size() >= 2 && rest[0] == 'S' && rest[1] >= 'a' && rest[1] <= 'z';
}

/// What the needed libraries of one library may define.
struct Providers {
    std::vector<const Family*> families{};
    /// A library that is neither of the system nor of a family: anything.
    bool anything = false;

    explicit Providers(const binfmt::SharedObject& object) {
        for (const std::string_view needed : object.needed) {
            if (begins(needed, kSystem)) {
                continue;
            }
            const auto family = std::ranges::find_if(
                kFamilies, [&](const Family& row) { return begins(needed, row.libraries); });
            if (family == kFamilies.end()) {
                anything = true;
            } else {
                families.push_back(&*family);
            }
        }
    }

    [[nodiscard]] bool may_define(std::string_view name) const {
        return anything || std::ranges::any_of(families, [&](const Family* family) {
                   return begins(name, family->symbols) ||
                          (family->libraries.front() == kTorchLibraries.front() &&
                           torch_use(name) != TorchUse::none);
               });
    }
};

/// Symbols that other libraries of the variant define.
Names defined_beside(const CheckInput& input, const Library& library) {
    Names out;
    for (const Library& other : input.libraries) {
        if (&other != &library && other.object) {
            for (const binfmt::Symbol& symbol : other.object->exports) {
                out.insert(symbol.name);
            }
        }
    }
    return out;
}

bool applies(const Promise&, const binfmt::SharedObject& object) {
    return object.format == binfmt::Format::elf;
}

Looked look(const CheckInput& input, const Library& library) {
    const Providers providers{*library.object};
    const Names beside = defined_beside(input, library);
    Looked out;
    for (const binfmt::Symbol& symbol : library.object->imports) {
        const std::string_view name = symbol.name;
        if (!symbol.version.empty() || symbol.binding == binfmt::Binding::weak ||
            name.starts_with("Py") || name.starts_with("_Py") || is_runtime_symbol(name) ||
            beside.contains(name) || providers.may_define(name)) {
            continue;
        }
        out.findings.push_back(
            {.subject = std::string{name},
             .policy = "every import is defined",
             .found = readable(name),
             .allowed = "symbols of the needed libraries",
             .message = fmt::format("'{}' is defined by no library that it needs", readable(name)),
             .next_step = "a source may be missing in 'src' of the section, or a library in the "
                          "link"});
    }
    return out;
}

constexpr std::array kNeeds{binfmt::Fact::symbols, binfmt::Fact::versions, binfmt::Fact::needed};

} // namespace

Check imports_check() {
    return {.id = "imports",
            .title = "every symbol that it wants is defined by a library that it needs",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
