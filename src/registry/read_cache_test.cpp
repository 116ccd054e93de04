// SPDX-License-Identifier: Apache-2.0
#include "registry/read_cache.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

using kb::registry::ReadCache;

TEST_CASE("a cache keeps what is asked for and stays within its budget", "[registry][cache]") {
    ReadCache<int> cache{1000};
    cache.put("kept", std::make_shared<const int>(7), 96);
    for (int i = 0; i < 100; ++i) {
        cache.put(fmt::format("{:04}", i), std::make_shared<const int>(i), 96);
        REQUIRE(cache.find("kept") != nullptr);
        CHECK(*cache.find("kept") == 7);
    }
    int alive = 0;
    for (int i = 0; i < 100; ++i) {
        alive += cache.find(fmt::format("{:04}", i)) != nullptr ? 1 : 0;
    }
    CHECK(alive >= 4);
    CHECK(alive <= 10);
    CHECK(cache.find("absent") == nullptr);
}

TEST_CASE("what is larger than half a cache is not kept", "[registry][cache]") {
    ReadCache<int> cache{1000};
    cache.put("large", std::make_shared<const int>(1), 600);
    CHECK(cache.find("large") == nullptr);
}
