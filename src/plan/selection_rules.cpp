// SPDX-License-Identifier: Apache-2.0
#include "plan/selection.hpp"

#include <array>

namespace kb::plan {

std::span<const SelectionRule> selection_rules() {
    static constexpr std::array<SelectionRule, 15> kRules{{
        {"backend-bounds", "its toolkit is outside general.cuda.minver and maxver"},
        {"torch-bounds", "its torch version is outside torch.minver and maxver"},
        {"stable-abi", "its torch version is older than the stable ABI that the kernel wants"},
        {"same-variant", "a row with a newer torch version makes the same stable-ABI variant"},
        {"tvm-ffi", "tvm-ffi kernels are not built from it"},
        {"no-section", "build.toml lists the backend but has no section for it"},
        {"no-host", "nothing is pinned that builds for its platform"},
        {"cross-platform", "its platform is not the machine's and was not asked for"},
        {"no-toolkit", "its toolkit cannot be fetched"},
        {"stable-abi-only", "with its toolkit only kernels of the stable ABI can be built"},
        {"no-headers", "the headers of its torch version cannot be fetched"},
        {"host-compiler", "its toolkit does not accept the pinned g++"},
        {"no-name", "no name of the format can hold its version"},
        {"not-in-bundle", "it is known but not part of the bundle"},
        {"not-selected", "a selection flag leaves it out"},
    }};
    return kRules;
}

} // namespace kb::plan
