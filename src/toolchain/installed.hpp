// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/support_matrix.hpp"
#include "toolchain/toolchain.hpp"

namespace kb::toolchain {

/// A CUDA toolkit that is installed on this machine, as the store holds it.
struct InstalledToolkit {
    Version version{};       ///< Two components, of its own headers.
    plan::LockEntry entry{}; ///< "host/cuda@12.8"; its sha256 is that of all files that are used.
};

/// Takes what a build uses of the toolkit in `directory` (compiler, headers, runtime) into the
/// store and pins it by content. Unchanged files (by size, times and inode) are not read again.
/// `not_found` when there is no toolkit, `unsupported` for layouts that cannot be taken.
Result<InstalledToolkit>
take_cuda_root(const sys::Path& directory, store::Store& store, const Machine& machine);

/// The matrix with the toolkit in place of what its row would fetch; `unsupported` when there is
/// no row for its version.
Result<plan::SupportMatrix> with_installed(plan::SupportMatrix matrix,
                                           const InstalledToolkit& toolkit);

} // namespace kb::toolchain
