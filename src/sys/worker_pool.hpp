// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace kb::sys {

/// Runs job(0) ... job(n-1) on up to `threads` threads and returns when all are done. A job takes
/// values and returns a value: it writes only to what belongs to its index.
void parallel_for(std::size_t n, unsigned threads, const std::function<void(std::size_t)>& job);

} // namespace kb::sys
