// SPDX-License-Identifier: Apache-2.0
#include "backend/arch.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace kb::backend {

namespace {

// Compute capabilities of NVIDIA's published tables up to CUDA 13.5, with the 'a' and 'f' targets
// of its compilers (2026-11).
constexpr std::array<std::string_view, 44> kKnown{
    "1.0",   "1.1",   "1.2",  "1.3",   "2.0",   "2.1",  "3.0",   "3.2",   "3.5",
    "3.7",   "5.0",   "5.2",  "5.3",   "6.0",   "6.1",  "6.2",   "7.0",   "7.2",
    "7.5",   "8.0",   "8.6",  "8.7",   "8.8",   "8.9",  "9.0",   "9.0a",  "10.0",
    "10.0a", "10.0f", "10.1", "10.1a", "10.1f", "10.3", "10.3a", "10.3f", "11.0",
    "11.0a", "11.0f", "12.0", "12.0a", "12.0f", "12.1", "12.1a", "12.1f"};

struct Base {
    std::uint32_t major = 0;
    std::uint32_t minor = 0;

    auto operator<=>(const Base&) const = default;
};

Base base_of(const CudaArch& arch) {
    return Base{.major = arch.major, .minor = arch.minor};
}

CudaArch without_ptx(CudaArch arch) {
    arch.ptx = false;
    return arch;
}

/// The requested list after the first look: what the compiler knows, in the order of the request.
struct Request {
    std::vector<CudaArch> archs{};
    std::set<CudaArch> ptx{};
    std::vector<RefusedArch> refused{};
};

Request read_request(std::span<const std::string> requested, const ToolkitArchs& toolkit) {
    const std::vector<std::string>& list =
        toolkit.compiles.empty() ? toolkit.builds : toolkit.compiles;
    std::set<CudaArch> compiles;
    for (const std::string& text : list) {
        if (const auto arch = parse_cuda_arch(text)) {
            compiles.insert(without_ptx(*arch));
        }
    }
    Request request;
    for (const std::string& text : requested) {
        const auto arch = parse_cuda_arch(text);
        if (!arch) {
            request.refused.push_back({text, "it is not a CUDA capability"});
            continue;
        }
        const CudaArch plain = without_ptx(*arch);
        if (!compiles.contains(plain)) {
            request.refused.push_back({text, fmt::format("{} cannot compile it", toolkit.name)});
            continue;
        }
        if (arch->ptx) {
            request.ptx.insert(plain);
        }
        request.archs.push_back(plain);
    }
    return request;
}

/// The loose intersection: an entry with a suffix takes the place of its base in the toolkit's
/// list; for each architecture left there the best entry that serves it is taken: the highest one
/// not above it that has its major version, or of which PTX is asked for.
std::set<CudaArch> intersect(const Request& request, const ToolkitArchs& toolkit) {
    std::set<Base> targets;
    for (const std::string& text : toolkit.builds) {
        if (const auto arch = parse_cuda_arch(text)) {
            targets.insert(base_of(*arch));
        }
    }
    std::set<CudaArch> kept;
    std::set<CudaArch> plain;
    for (const CudaArch& arch : request.archs) {
        if (arch.suffix == '\0') {
            plain.insert(arch);
        } else if (targets.erase(base_of(arch)) > 0) {
            kept.insert(arch);
        }
    }
    for (const Base& target : targets) {
        const CudaArch* best = nullptr;
        for (const CudaArch& arch : plain) {
            const bool serves = base_of(arch) <= target &&
                                (arch.major == target.major || request.ptx.contains(arch));
            if (serves) {
                best = &arch; // ascending: the last one is the highest
            }
        }
        if (best != nullptr) {
            kept.insert(*best);
        }
    }
    return kept;
}

std::string
reason_left_out(const CudaArch& arch, const std::set<CudaArch>& kept, const ToolkitArchs& toolkit) {
    for (const CudaArch& other : kept) {
        if (base_of(other) == base_of(arch) && other.suffix != arch.suffix) {
            return fmt::format("'{}' takes its place", other.to_text());
        }
    }
    return fmt::format("{} builds for no device that it would serve", toolkit.name);
}

} // namespace

std::string CudaArch::number() const {
    std::string text = fmt::format("{}{}", major, minor);
    if (suffix != '\0') {
        text += suffix;
    }
    return text;
}

std::string CudaArch::to_text() const {
    std::string text = fmt::format("{}.{}", major, minor);
    if (suffix != '\0') {
        text += suffix;
    }
    return ptx ? text + "+PTX" : text;
}

std::optional<CudaArch> parse_cuda_arch(std::string_view text) {
    CudaArch arch;
    constexpr std::string_view kPtx = "+PTX";
    if (text.ends_with(kPtx)) {
        arch.ptx = true;
        text.remove_suffix(kPtx.size());
    }
    if (text.ends_with('a') || text.ends_with('f')) {
        arch.suffix = text.back();
        text.remove_suffix(1);
    }
    const std::vector<std::string_view> parts = split(text, '.');
    if (parts.size() != 2 || parts[0].size() > 4 || parts[1].size() != 1 ||
        (parts[0].size() > 1 && parts[0].front() == '0')) {
        return std::nullopt;
    }
    const auto major = parse_unsigned(parts[0]);
    const auto minor = parse_unsigned(parts[1]);
    if (!major || !minor) {
        return std::nullopt;
    }
    arch.major = static_cast<std::uint32_t>(*major);
    arch.minor = static_cast<std::uint32_t>(*minor);
    return arch;
}

ArchChoice choose_cuda_archs(std::span<const std::string> requested, const ToolkitArchs& toolkit) {
    if (requested.empty()) {
        return ArchChoice{.kept = toolkit.builds, .refused = {}};
    }
    Request request = read_request(requested, toolkit);
    const std::set<CudaArch> kept = intersect(request, toolkit);
    ArchChoice choice{.kept = {}, .refused = std::move(request.refused)};
    for (const CudaArch& arch : kept) {
        CudaArch whole = arch;
        whole.ptx = request.ptx.contains(arch);
        choice.kept.push_back(whole.to_text());
    }
    std::set<CudaArch> seen;
    for (const CudaArch& arch : request.archs) {
        if (!kept.contains(arch) && seen.insert(arch).second) {
            CudaArch whole = arch;
            whole.ptx = request.ptx.contains(arch);
            choice.refused.push_back({whole.to_text(), reason_left_out(arch, kept, toolkit)});
        }
    }
    std::ranges::sort(choice.refused, [](const RefusedArch& a, const RefusedArch& b) {
        return natural_less(a.arch, b.arch);
    });
    return choice;
}

std::span<const std::string_view> known_cuda_archs() {
    return kKnown;
}

} // namespace kb::backend
