// SPDX-License-Identifier: Apache-2.0
#pragma once
// The packaged Catch2: 2.13 on Debian 12, 3 on Debian 13.
#ifdef KB_CATCH3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
#include <string>
#include <vector>
