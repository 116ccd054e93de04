// SPDX-License-Identifier: Apache-2.0
#include "sys/unique_fd.hpp"

#include <unistd.h>

namespace kb::sys {

void UniqueFd::reset() {
    if (fd_ >= 0) {
        ::close(fd_); // the descriptor is gone whatever close() says; EINTR must not be retried
        fd_ = -1;
    }
}

} // namespace kb::sys
