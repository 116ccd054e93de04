// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kb::sys {

/// Catches SIGINT, SIGTERM and SIGHUP for the life of the object (made once, by main): they set a
/// flag and wake the poll loops; a second SIGINT ends the process at once. SIGPIPE is ignored.
class InterruptGuard {
public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// True since the first interrupt. Signal-safe; any thread.
[[nodiscard]] bool interrupted();
/// Readable when interrupted; for poll(). -1 without a guard.
[[nodiscard]] int interrupt_descriptor();

} // namespace kb::sys
