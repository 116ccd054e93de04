// SPDX-License-Identifier: Apache-2.0
#include "toolchain/toolchain.hpp"

#include "support/catch.hpp"
