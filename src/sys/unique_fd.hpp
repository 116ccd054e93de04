// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace kb::sys {

/// Owns a descriptor; closes it once.
class UniqueFd {
public:
    UniqueFd() = default;

    explicit UniqueFd(int fd) : fd_{fd} {}

    ~UniqueFd() { reset(); }

    UniqueFd(UniqueFd&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}

    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }

    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;

    [[nodiscard]] int get() const { return fd_; }

    [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

    void reset();

private:
    int fd_ = -1;
};

} // namespace kb::sys
