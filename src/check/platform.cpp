// SPDX-License-Identifier: Apache-2.0
#include "check/checks.hpp"

#include <fmt/format.h>

namespace kb::check {

namespace {

bool applies(const Promise& promise, const binfmt::SharedObject& object) {
    return promise.variant && promise.variant->framework != backend::FrameworkId::torch_noarch &&
           !object.architecture.empty();
}

std::string_view system_of(binfmt::Format format) {
    switch (format) {
    case binfmt::Format::macho:
        return "darwin";
    case binfmt::Format::pe:
        return "windows";
    case binfmt::Format::elf:
        break;
    }
    return "linux";
}

/// A client picks a variant by the machine in its name alone.
Looked look(const CheckInput& input, const Library& library) {
    const std::string promised = backend::to_text(input.promise.variant->platform);
    const std::string found =
        fmt::format("{}-{}", library.object->architecture, system_of(library.object->format));
    if (found == promised) {
        return {};
    }
    return {
        .findings = {{.subject = found,
                      .policy = "name of the variant",
                      .found = found,
                      .allowed = promised,
                      .message = fmt::format("is for {}, the variant is for {}", found, promised),
                      .next_step = "build the variant for its own machine; its name is no label to "
                                   "change"}}};
}

} // namespace

Check platform_check() {
    return {.id = "platform",
            .title = "libraries are for the machine in the name of the variant",
            .applies = applies,
            .library = look};
}

} // namespace kb::check
