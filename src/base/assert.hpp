// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kb {

/// Prints file, line and reason, then aborts. On in release too: a broken invariant must not build
/// or publish anything.
[[noreturn]] void
assertion_failed(const char* condition, const char* why, const char* file, int line) noexcept;

} // namespace kb

/// "We are wrong": `why` says why the condition must hold.
#define KB_ASSERT(cond, why)                                                                       \
    ((cond) ? static_cast<void>(0) : ::kb::assertion_failed(#cond, why, __FILE__, __LINE__))
