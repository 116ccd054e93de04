// SPDX-License-Identifier: Apache-2.0
#include "config/schema_table.hpp"

#include <algorithm>
#include <array>

namespace kb::config {

namespace {

using enum TableId;
constexpr auto v1 = Edition::v1;
constexpr auto v2 = Edition::v2;
constexpr auto v3 = Edition::v3;
constexpr auto v4 = Edition::v4;
constexpr auto v5 = Edition::v5;
constexpr auto required = Need::required;
constexpr auto optional = Need::optional;

// Order within a table is the order in which messages list the keys.
constexpr KeyRow kRows[] = {
    {root, "general", v1, v5, required},
    {root, "torch", v1, v5},
    {root, "torch-noarch", v4, v5},
    {root, "tvm-ffi", v3, v5},
    {root, "kernel", v1, v5},

    {general, "name", v1, v5, required},
    {general, "version", v3, v3},
    {general, "version", v4, v5, required},
    {general, "edition", v5, v5, required},
    {general, "license", v3, v3},
    {general, "license", v4, v5, required},
    {general, "upstream", v3, v5},
    {general, "source", v4, v5},
    {general, "backends", v3, v5, required},
    {general, "universal", v2, v2},
    {general, "cuda-minver", v2, v2},
    {general, "cuda-maxver", v2, v2},
    {general, "kernel-depends", v5, v5},
    {general, "python-depends", v2, v5},
    {general, "cuda", v3, v5},
    {general, "neuron", v3, v5},
    {general, "tpu", v5, v5},
    {general, "xpu", v3, v5},
    {general, "hub", v2, v5},

    {general_cuda, "minver", v3, v5},
    {general_cuda, "maxver", v3, v5},
    {general_cuda, "kernel-depends", v5, v5},
    {general_cuda, "python-depends", v3, v5},
    {general_neuron, "kernel-depends", v5, v5},
    {general_neuron, "python-depends", v3, v5},
    {general_tpu, "python-depends", v5, v5},
    {general_xpu, "kernel-depends", v5, v5},
    {general_xpu, "python-depends", v3, v5},
    {general_hub, "repo-id", v2, v5},
    {general_hub, "branch", v2, v5},

    {kernel_dependency, "repo-id", v5, v5, required},
    {kernel_dependency, "version", v5, v5},
    {kernel_dependency, "revision", v5, v5},

    {torch, "include", v1, v5},
    {torch, "minver", v2, v5},
    {torch, "maxver", v2, v5},
    {torch, "pyext", v1, v5},
    {torch, "src", v1, v5},
    {torch, "stable-abi", v4, v5},
    {torch, "cxx-flags", v4, v5},
    {torch, "universal", v1, v1},

    // Underscores: the one exception to the dashes of the format.
    {torch_noarch, "pyext", v4, v5},
    {torch_noarch, "cuda_capabilities", v4, v5},
    {torch_noarch, "rocm_archs", v4, v5},

    {tvm_ffi, "include", v3, v5},
    {tvm_ffi, "pyext", v3, v5},
    {tvm_ffi, "src", v3, v5, required},
    {tvm_ffi, "cxx-flags", v4, v5},

    {kernel, "backend", v2, v5, required},
    {kernel, "language", v1, v1},
    {kernel, "depends", v1, v5, required},
    {kernel, "src", v1, v5, required},
    {kernel, "include", v1, v5},
    {kernel, "cxx-flags", v2, v5},
    {kernel, "cuda-capabilities", v1, v1},
    {kernel, "cuda-capabilities", v2, v5, optional, BackendId::cuda},
    {kernel, "cuda-flags", v2, v5, optional, BackendId::cuda},
    {kernel, "cuda-minver", v2, v5, optional, BackendId::cuda},
    {kernel, "rocm-archs", v1, v1},
    {kernel, "rocm-archs", v2, v5, optional, BackendId::rocm},
    {kernel, "hip-flags", v2, v5, optional, BackendId::rocm},
    {kernel, "sycl-flags", v2, v5, optional, BackendId::xpu},
};

bool applies(const KeyRow& row, TableId table, Edition edition) {
    return row.table == table && row.since <= edition && edition <= row.until;
}

} // namespace

std::span<const KeyRow> key_rows() {
    return kRows;
}

std::vector<std::string_view>
keys_of(TableId table, Edition edition, std::optional<BackendId> backend) {
    std::vector<std::string_view> out;
    for (const KeyRow& row : kRows) {
        if (applies(row, table, edition) && (!row.only || !backend || row.only == backend)) {
            out.push_back(row.key);
        }
    }
    return out;
}

std::vector<std::string_view> required_keys_of(TableId table, Edition edition) {
    std::vector<std::string_view> out;
    for (const KeyRow& row : kRows) {
        if (applies(row, table, edition) && row.need == Need::required) {
            out.push_back(row.key);
        }
    }
    return out;
}

} // namespace kb::config
