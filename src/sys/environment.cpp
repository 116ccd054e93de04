// SPDX-License-Identifier: Apache-2.0
#include "sys/environment.hpp"

#include <unistd.h>

namespace kb::sys {

EnvironmentMap read_environment() {
    EnvironmentMap out;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text{*entry};
        const std::size_t equals = text.find('=');
        if (equals != std::string_view::npos && equals != 0) {
            out.emplace(text.substr(0, equals), text.substr(equals + 1)); // the first one counts
        }
    }
    return out;
}

std::optional<std::string> lookup(const EnvironmentMap& environment, std::string_view name) {
    const auto found = environment.find(std::string{name});
    if (found == environment.end() || found->second.empty()) {
        return std::nullopt;
    }
    return found->second;
}

} // namespace kb::sys
