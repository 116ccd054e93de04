// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/shared_object.hpp"

#include <vector>

namespace kb::binfmt {

/// Images of the NVIDIA fat binaries that follow each other in a section. Reads headers only.
/// `corrupt` names the offset that is not understood.
[[nodiscard]] Result<std::vector<DeviceImage>> read_cuda_fatbins(const ByteSource& source,
                                                                 Range section);

/// Images of the AMD offload bundles in a section (host entries left out). A compressed bundle is
/// `unsupported`: its list of targets is inside.
[[nodiscard]] Result<std::vector<DeviceImage>> read_offload_bundles(const ByteSource& source,
                                                                    Range section);

} // namespace kb::binfmt
