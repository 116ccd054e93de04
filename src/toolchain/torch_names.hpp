// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "base/result.hpp"
#include "base/version.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace kb::toolchain {

/// The C++ names that a torch exports.
struct TorchNames {
    /// Sorted, mangled, each with one of torch's namespaces in it. They live as long as the
    /// program.
    std::vector<std::string_view> names{};
    /// Minor versions for which there is a list.
    std::vector<Version> known{};
};

/// What libc10, libtorch_cpu, libtorch_python and, for CUDA, libtorch_cuda of a minor version of
/// torch export. No names when there is no list for this version or machine: then `known` says for
/// which there is.
/// Source: the dynamic symbol tables of torch's own wheels (data/update-torch-names.py).
[[nodiscard]] Result<TorchNames>
torch_names(const Version& torch, backend::BackendId backend, const backend::Platform& platform);

/// The same out of a table in the format of update-torch-names.py. Names point into `table`.
[[nodiscard]] Result<TorchNames>
select_torch_names(std::string_view table, const Version& torch, backend::BackendId backend);

} // namespace kb::toolchain
