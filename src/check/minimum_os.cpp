// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"

#include <fmt/format.h>

#include <array>

namespace kb::check {

namespace {

bool applies(const Promise& promise, const binfmt::SharedObject& object) {
    return promise.macos.has_value() && object.format == binfmt::Format::macho;
}

Looked look(const CheckInput& input, const Library& library) {
    const Version& promised = *input.promise.macos;
    const auto& wanted = library.object->minimum_os;
    if (wanted && *wanted <= promised) {
        return {};
    }
    const std::string found = wanted ? wanted->to_text() : "none";
    return {
        .findings = {
            {.subject = "minimum macOS",
             .policy = fmt::format("macOS {}", promised.to_text()),
             .found = found,
             .allowed = promised.to_text(),
             .message = wanted ? fmt::format(
                                     "wants macOS {}, the promise is {}", found, promised.to_text())
                               : std::string{"names no oldest macOS"},
             .next_step = fmt::format("set the deployment target to {}", promised.to_text())}}};
}

constexpr std::array kNeeds{binfmt::Fact::minimum_os};

} // namespace

Check minimum_os_check() {
    return {.id = "minimum-os",
            .title = "the oldest macOS is not newer than promised",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
