// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/shared_object.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kb::check {

/// What to look for with binfmt::find_path_texts, so that the check "host-paths" has its facts:
/// places where people and CI systems build, and `places` (absolute directories of this machine).
[[nodiscard]] std::vector<std::string> host_path_beginnings(binfmt::Format format,
                                                            const std::vector<std::string>& places);

/// Whether a path that begins so is one of a building machine, in words; empty when it may be a
/// place that the program uses at run time ("/tmp/cuda-dbg").
[[nodiscard]] std::string host_path_reason(std::string_view path,
                                           const std::vector<std::string>& places);

} // namespace kb::check
