// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "sys/file_system.hpp"
#include "toolchain/toolchain.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kb::toolchain {

/// A directory of this machine that stands for a fixed place: {"/work", "/home/me/k/.kb/work"}.
using PlaceAt = std::pair<std::string, sys::Path>;

/// For sandbox levels without mounts: makes below `view` the fixed places as links to the roots and
/// to `places`, and `view`/bin with a script for each program of the root of "/usr". A script runs
/// its program by that root's own loader and libraries, whatever the machine's; compilers also get
/// the root as their system root and write the fixed places into what they make instead of this
/// machine's paths. `view` is absolute and without links; what is below it is replaced, but for
/// "src". `unsupported` when the root has no loader.
Result<void> write_host_view(sys::FileSystem& fs,
                             const sys::Path& view,
                             std::span<const Root> roots,
                             std::span<const PlaceAt> places);

} // namespace kb::toolchain
