// SPDX-License-Identifier: Apache-2.0
#include "backend/arch.hpp"
#include "plan/selection.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace kb::plan {

namespace {

using backend::FrameworkId;

bool cuda_serves(const backend::CudaArch& code, const backend::CudaArch& device) {
    const auto chip = std::pair{code.major, code.minor};
    const auto wanted = std::pair{device.major, device.minor};
    if (code.suffix == 'a') {
        return chip == wanted;
    }
    if (code.suffix == 'f') {
        return code.major == device.major && chip <= wanted;
    }
    return chip <= wanted && (code.major == device.major || code.ptx);
}

} // namespace

bool serves_device(std::span<const std::string> archs, std::string_view device) {
    const auto wanted = backend::parse_cuda_arch(device);
    return std::ranges::any_of(archs, [&](const std::string& text) {
        const auto code = backend::parse_cuda_arch(text);
        return wanted && code ? cuda_serves(*code, *wanted) : text == device;
    });
}

std::optional<std::size_t> best_for_host(const VariantChoice& choice, const HostFacts& host) {
    // Smaller is better: the accelerator's own variants, then the CPU's, then what is there.
    using Key = std::tuple<int, int, Version, Version>;
    std::optional<std::pair<Key, std::size_t>> best;
    const auto newest_first = [](const Version& version) {
        return Version{{1'000'000 - std::min<std::uint64_t>(version.major(), 1'000'000),
                        1'000'000 - std::min<std::uint64_t>(version.minor(), 1'000'000)}};
    };
    for (std::size_t i = 0; i < choice.chosen.size(); ++i) {
        const Variant& variant = choice.chosen[i].name.variant();
        const bool noarch = variant.framework == FrameworkId::torch_noarch;
        const bool runs = !host.backend_version || variant.backend != host.backend ||
                          variant.backend_version <= *host.backend_version;
        if ((!noarch && variant.platform != host.platform) || !runs) {
            continue;
        }
        int distance = 2;
        if (variant.backend == host.backend) {
            distance = 0;
        } else if (variant.backend == BackendId::cpu) {
            distance = 1;
        }
        const Key key{distance,
                      variant.framework == FrameworkId::torch_stable_abi ? 0 : 1,
                      newest_first(variant.framework_version),
                      newest_first(variant.backend_version)};
        if (!best || key < best->first) {
            best = std::pair{key, i};
        }
    }
    return best ? std::optional{best->second} : std::nullopt;
}

} // namespace kb::plan
