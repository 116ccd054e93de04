// SPDX-License-Identifier: Apache-2.0
#include "build/loading.hpp"

#include "base/text.hpp"
#include "check/cxx_names.hpp"
#include "check/policy.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::build {

namespace {

using backend::BackendId;
using backend::FrameworkId;

using Obstacles = std::vector<Obstacle>;

std::string minor_of(const Version& version) {
    return fmt::format("{}.{}", version.major(), version.minor());
}

bool same_minor(const Version& a, const Version& b) {
    return a.major() == b.major() && a.minor() == b.minor();
}

void check_platform(const LoadQuestion& question, const HostFacts& facts, Obstacles& out) {
    const binfmt::SharedObject& object = *question.library->object;
    const std::string_view wanted =
        facts.platform.cpu == backend::Cpu::x86_64 ? "x86_64" : "aarch64";
    if (object.format != binfmt::Format::elf) {
        out.push_back({.cause = "platform",
                       .text = fmt::format("it is a {} file, this machine loads ELF",
                                           binfmt::to_text(object.format)),
                       .next = "choose the variant for this platform"});
    } else if (object.architecture != wanted) {
        out.push_back({.cause = "platform",
                       .text = fmt::format(
                           "it is built for {}, this machine is {}", object.architecture, wanted),
                       .next = "choose the variant for this platform"});
    }
}

/// "312" of "x.cpython-312-x86_64-linux-gnu.so".
std::string_view cpython_tag(std::string_view file) {
    constexpr std::string_view kMark = ".cpython-";
    const std::size_t at = file.find(kMark);
    if (at == std::string_view::npos) {
        return {};
    }
    const std::string_view rest = file.substr(at + kMark.size());
    return rest.substr(0, rest.find_first_not_of("0123456789"));
}

void check_python(const LoadQuestion& question, const HostFacts& facts, Obstacles& out) {
    if (!facts.python) {
        out.push_back({.cause = "python",
                       .text = facts.python_problem,
                       .next = "name the Python that is to load it with --python"});
        return;
    }
    const std::string here = minor_of(*facts.python);
    const std::string_view tag = cpython_tag(question.library->path);
    if (!tag.empty() && tag != fmt::format("{}{}", facts.python->major(), facts.python->minor())) {
        out.push_back({.cause = "python",
                       .text = fmt::format("it is built for CPython {}.{} alone, this is {}",
                                           tag.substr(0, 1),
                                           tag.substr(1),
                                           here),
                       .next = "use that Python, or a build for the limited API (abi3)"});
    }
    for (const binfmt::Symbol& symbol : question.library->object->imports) {
        const auto added = check::python_symbol_added(symbol.name);
        if (added && *added > Version{{facts.python->major(), facts.python->minor()}}) {
            out.push_back(
                {.cause = "python",
                 .text = fmt::format("it uses '{}', which came with Python {}; this is {}",
                                     symbol.name,
                                     added->to_text(),
                                     here),
                 .next = fmt::format("use Python {} or newer", added->to_text())});
            return; // one is enough to know which Python it takes
        }
    }
}

void check_torch(const LoadQuestion& question, const HostFacts& facts, Obstacles& out) {
    if (!question.variant || question.variant->framework == FrameworkId::tvm_ffi) {
        return;
    }
    const backend::Variant& variant = *question.variant;
    if (!facts.torch) {
        out.push_back({.cause = "torch",
                       .text = facts.python_problem.empty() ? "this Python has no torch"
                                                            : facts.python_problem,
                       .next = "install torch, or name the Python that has it with --python"});
        return;
    }
    const Version& promised = variant.framework_version;
    if (variant.framework == FrameworkId::torch && !same_minor(promised, *facts.torch)) {
        out.push_back({.cause = "torch",
                       .text = fmt::format("it is built for torch {} alone, this is {}",
                                           promised.to_text(),
                                           facts.torch->to_text()),
                       .next = fmt::format("use the variant for torch {}, or a stable one",
                                           minor_of(*facts.torch))});
    }
    if (variant.framework == FrameworkId::torch_stable_abi && promised > *facts.torch) {
        out.push_back({.cause = "torch",
                       .text = fmt::format("it needs torch {} or newer, this is {}",
                                           promised.to_text(),
                                           facts.torch->to_text()),
                       .next = fmt::format("install torch {} or newer", promised.to_text())});
    }
}

void check_cuda(const LoadQuestion& question, const HostFacts& facts, Obstacles& out) {
    if (!question.variant || question.variant->backend != BackendId::cuda) {
        return;
    }
    const Version& wanted = question.variant->backend_version;
    if (facts.torch && !facts.torch_cuda) {
        out.push_back({.cause = "cuda",
                       .text = "it is built for CUDA, this torch is built without",
                       .next = "install a torch for CUDA, or use the cpu variant"});
    } else if (facts.torch_cuda && wanted.major() != facts.torch_cuda->major()) {
        out.push_back(
            {.cause = "cuda",
             .text = fmt::format("it is built for CUDA {}, this torch for {}",
                                 wanted.to_text(),
                                 facts.torch_cuda->to_text()),
             .next = fmt::format("use the variant for CUDA {}", facts.torch_cuda->to_text())});
    }
    if (!facts.nvidia_driver) {
        out.push_back({.cause = "driver",
                       .text = "this machine has no NVIDIA driver (/dev/nvidiactl is missing)",
                       .next = "install the driver, or use the cpu variant"});
    }
}

struct Arch {
    unsigned major = 0;
    unsigned minor = 0;
    /// 'a' runs on exactly this device, 'f' on its family.
    char suffix = ' ';
    bool ptx = false;
};

std::optional<Arch> parse_arch(std::string_view text) {
    Arch out;
    if (text.ends_with("+PTX")) {
        out.ptx = true;
        text.remove_suffix(4);
    }
    if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
        out.suffix = text.back();
        text.remove_suffix(1);
    }
    const auto version = Version::parse(text);
    if (!version || version->size() != 2) {
        return std::nullopt;
    }
    out.major = static_cast<unsigned>(version->major());
    out.minor = static_cast<unsigned>(version->minor());
    return out;
}

/// Machine code runs on devices of the same major version from its minor version on; PTX on every
/// newer one.
bool runs_on(const Arch& code, const Arch& device) {
    if (code.suffix == 'a') {
        return code.major == device.major && code.minor == device.minor;
    }
    const bool same = code.major == device.major && code.minor <= device.minor;
    const bool newer = code.major < device.major || same;
    return same || (code.ptx && newer);
}

void check_devices(const LoadQuestion& question, const HostFacts& facts, Obstacles& out) {
    if (!question.archs || !question.variant || question.variant->backend != BackendId::cuda) {
        return;
    }
    for (const std::string& text : facts.devices) {
        const auto device = parse_arch(text);
        const bool served =
            device && std::ranges::any_of(*question.archs, [&](const std::string& arch) {
                const auto code = parse_arch(arch);
                return code && runs_on(*code, *device);
            });
        if (!served) {
            out.push_back({.cause = "arch",
                           .text = fmt::format("it has device code for {}, none of which runs on "
                                               "this device ({})",
                                               join(*question.archs, ", "),
                                               text),
                           .next = fmt::format("build it with '{}' in the architectures", text)});
        }
    }
}

const HostLibrary* find(const std::vector<HostLibrary>& libraries, std::string_view name) {
    const auto found = std::ranges::find(libraries, name, &HostLibrary::name);
    return found == libraries.end() ? nullptr : &*found;
}

bool is_loader(std::string_view name) {
    return name.starts_with("ld-linux");
}

/// The highest version of the family of `wanted` that the library has: GLIBC_2.36 for GLIBC_2.38.
std::string highest_of_family(const HostLibrary& library, std::string_view wanted) {
    const std::string_view family = wanted.substr(0, wanted.rfind('_') + 1);
    std::string best;
    for (const std::string& version : library.versions) {
        const bool numeric = version.starts_with(family) && version.size() > family.size() &&
                             version[family.size()] >= '0' && version[family.size()] <= '9';
        if (numeric && (best.empty() || natural_less(best, version))) {
            best = version;
        }
    }
    return best;
}

bool has_version(const HostLibrary& library, std::string_view wanted) {
    // A mark of glibc that no symbol carries; it came with 2.36.
    const std::string_view asked = wanted == "GLIBC_ABI_DT_RELR" ? "GLIBC_2.36" : wanted;
    if (library.versions.contains(std::string{asked})) {
        return true;
    }
    const std::string best = highest_of_family(library, asked);
    const bool numeric = !asked.empty() && asked.back() >= '0' && asked.back() <= '9';
    // Versions between two that have symbols are there without any.
    return numeric ? !best.empty() && natural_less(asked, best) : true;
}

void check_needed(const LoadQuestion& question,
                  const std::vector<HostLibrary>& libraries,
                  Obstacles& out) {
    for (const std::string_view needed : question.library->object->needed) {
        if (!is_loader(needed) && find(libraries, needed) == nullptr) {
            out.push_back(
                {.cause = "library",
                 .text = fmt::format("it needs '{}', which is not on this machine", needed),
                 .next = needed.starts_with("libtorch") || needed.starts_with("libc10")
                             ? "install torch, or name the Python that has it with "
                               "--python"
                             : "install the package that has it, or set LD_LIBRARY_PATH"});
        }
    }
    std::set<std::string> told;
    for (const binfmt::VersionNeed& need : question.library->object->version_needs) {
        const HostLibrary* library = find(libraries, need.library);
        if (library == nullptr || need.weak || has_version(*library, need.version)) {
            continue;
        }
        const std::string best = highest_of_family(*library, need.version);
        // The highest one names the system that it takes; lower ones follow from it.
        const std::string family{need.version.substr(0, need.version.rfind('_') + 1)};
        std::string_view highest = need.version;
        for (const binfmt::VersionNeed& other : question.library->object->version_needs) {
            if (other.library == need.library && other.version.starts_with(family) &&
                natural_less(highest, other.version)) {
                highest = other.version;
            }
        }
        if (!told.insert(std::string{need.library} + family).second) {
            continue;
        }
        out.push_back({.cause = "version",
                       .text = fmt::format("it needs {} of '{}', '{}' has {}",
                                           highest,
                                           need.library,
                                           library->path,
                                           best.empty() ? "none of these" : "up to " + best),
                       .next = "use a newer system, or a build for an older manylinux policy"});
    }
}

bool is_pythons(std::string_view name) {
    return name.starts_with("Py") || name.starts_with("_Py");
}

void check_symbols(const LoadQuestion& question,
                   const HostFacts& facts,
                   const std::vector<HostLibrary>& libraries,
                   Obstacles& out) {
    constexpr std::size_t kShown = 3;
    std::vector<std::string> missing;
    for (const binfmt::Symbol& symbol : question.library->object->imports) {
        const std::string name{symbol.name};
        if (symbol.binding == binfmt::Binding::weak || is_pythons(name) ||
            !symbol.version.empty() ||
            std::ranges::any_of(libraries, [&](const HostLibrary& library) {
                return library.exports.contains(name);
            })) {
            continue;
        }
        missing.push_back(check::readable(name));
    }
    if (missing.empty()) {
        return;
    }
    const std::size_t rest = missing.size() - std::min(missing.size(), kShown);
    missing.resize(std::min(missing.size(), kShown));
    const std::string whose = facts.torch ? fmt::format(" (torch {})", facts.torch->to_text()) : "";
    out.push_back(
        {.cause = "symbol",
         .text = fmt::format("no library here{} has {}{}",
                             whose,
                             quoted_list(missing),
                             rest == 0 ? std::string{} : fmt::format(" and {} more", rest)),
         .next = "use the variant for this torch, or build it against this torch"});
}

} // namespace

Obstacles find_obstacles(const LoadQuestion& question,
                         const HostFacts& facts,
                         const std::vector<HostLibrary>& libraries) {
    if (!question.library->object) {
        return {{.cause = "library",
                 .text = question.library->unread_reason,
                 .next = "build or download it again"}};
    }
    Obstacles out;
    check_platform(question, facts, out);
    if (!out.empty()) {
        return out; // nothing else that could be said would help
    }
    if (const auto gap = question.library->object->gap(binfmt::Fact::symbols)) {
        return {{.cause = "library", .text = std::string{*gap}, .next = ""}};
    }
    check_python(question, facts, out);
    check_torch(question, facts, out);
    check_cuda(question, facts, out);
    check_devices(question, facts, out);
    check_needed(question, libraries, out);
    // Without one of the libraries its symbols are missing as well.
    if (std::ranges::find(out, "library", &Obstacle::cause) == out.end()) {
        check_symbols(question, facts, libraries, out);
    }
    return out;
}

} // namespace kb::build
