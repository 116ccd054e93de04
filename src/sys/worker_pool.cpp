// SPDX-License-Identifier: Apache-2.0
#include "sys/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace kb::sys {

void parallel_for(std::size_t n, unsigned threads, const std::function<void(std::size_t)>& job) {
    const std::size_t workers = std::min<std::size_t>(n, std::max(1U, threads));
    if (workers <= 1) {
        for (std::size_t i = 0; i < n; ++i) {
            job(i);
        }
        return;
    }
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) {
            job(i);
        }
    };
    std::vector<std::jthread> pool;
    pool.reserve(workers - 1);
    for (std::size_t i = 1; i < workers; ++i) {
        pool.emplace_back(work);
    }
    work(); // the caller works too; the jthreads join at the end of the scope
}

} // namespace kb::sys
