// SPDX-License-Identifier: Apache-2.0
#include "build/torch_version.hpp"

namespace kb::build {

std::optional<Version> leading_version(std::string_view text) {
    text = text.substr(0, text.find_first_not_of("0123456789."));
    text = text.substr(0, text.find(".."));
    if (text.ends_with('.')) {
        text.remove_suffix(1);
    }
    return Version::parse(text);
}

} // namespace kb::build
