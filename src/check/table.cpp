// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"

#include <array>

namespace kb::check {

std::span<const Check> all_checks() {
    static const std::array kTable{libraries_check(),
                                   platform_check(),
                                   manylinux_check(),
                                   python_abi_check(),
                                   torch_abi_check(),
                                   torch_names_check(),
                                   needed_check(),
                                   imports_check(),
                                   hygiene_check(),
                                   host_paths_check(),
                                   minimum_os_check(),
                                   device_code_check()};
    return kTable;
}

} // namespace kb::check
