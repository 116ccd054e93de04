// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace kb {

void assertion_failed(const char* condition, const char* why, const char* file, int line) noexcept {
    std::fprintf(
        stderr, "kernel-builder: bug: %s:%d: '%s' does not hold: %s\n", file, line, condition, why);
    std::abort();
}

} // namespace kb
