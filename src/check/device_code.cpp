// SPDX-License-Identifier: Apache-2.0
#include "backend/arch.hpp"
#include "base/text.hpp"
#include "check/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kb::check {

namespace {

using backend::BackendId;
using binfmt::DeviceImageKind;

/// What must be there for one promised architecture: "cubin 9.0a", "ptx 12.0", "code object
/// gfx942".
using Pieces = std::set<std::string>;

std::string piece(std::string_view kind, std::string_view arch) {
    return fmt::format("{} {}", kind, arch);
}

Pieces promised_pieces(BackendId backend, const std::vector<std::string>& archs) {
    Pieces out;
    for (const std::string& arch : archs) {
        if (backend == BackendId::rocm) {
            out.insert(piece("code-object", arch));
            continue;
        }
        const std::size_t plus = arch.find("+PTX");
        out.insert(piece("cubin", arch.substr(0, plus)));
        if (plus != std::string::npos) {
            out.insert(piece("ptx", arch.substr(0, plus)));
        }
    }
    return out;
}

Pieces found_pieces(const CheckInput& input) {
    Pieces out;
    for (const Library& library : input.libraries) {
        if (!library.object) {
            continue;
        }
        for (const binfmt::DeviceImage& image : library.object->device_images) {
            if (image.kind != DeviceImageKind::other) {
                out.insert(piece(binfmt::to_text(image.kind), image.arch));
            }
        }
    }
    return out;
}

/// A library whose device code could not be looked at, and why.
std::string unseen(const CheckInput& input) {
    for (const Library& library : input.libraries) {
        if (!library.object) {
            return fmt::format("'{}' could not be read", library.path);
        }
        if (const auto reason = library.object->gap(binfmt::Fact::device_code)) {
            return fmt::format("'{}': {}", library.path, *reason);
        }
    }
    return {};
}

std::string list(const Pieces& pieces) {
    std::vector<std::string> sorted{pieces.begin(), pieces.end()};
    std::ranges::sort(sorted, natural_less);
    return sorted.empty() ? "none" : join(sorted, ", ");
}

Finding finding(const std::string& subject, std::string message, std::string next_step) {
    return {.subject = subject,
            .policy = "promised architectures",
            .message = std::move(message),
            .next_step = std::move(next_step)};
}

bool applies(const Promise& promise) {
    return promise.variant && promise.variant->framework != backend::FrameworkId::torch_noarch &&
           (promise.variant->backend == BackendId::cuda ||
            promise.variant->backend == BackendId::rocm);
}

void compare(const Pieces& promised, const Pieces& found, std::vector<Finding>& out) {
    for (const std::string& wanted : promised) {
        if (!found.contains(wanted)) {
            out.push_back(finding(wanted,
                                  fmt::format("promises {} and does not hold it", wanted),
                                  "compile every device source for it, or take it out of the "
                                  "section's capabilities"));
        }
    }
    for (const std::string& extra : found) {
        if (!promised.contains(extra)) {
            out.push_back(finding(extra,
                                  fmt::format("holds {}, which was not asked for", extra),
                                  "take it out of the compiler flags, or promise it"));
        }
    }
    for (Finding& one : out) {
        one.found = list(found);
        one.allowed = list(promised);
    }
}

Looked look(const CheckInput& input) {
    if (std::string reason = unseen(input); !reason.empty()) {
        return {.not_checked = std::move(reason)};
    }
    const Pieces found = found_pieces(input);
    Looked out{.note = list(found)};
    if (input.promise.archs) {
        compare(promised_pieces(input.promise.variant->backend, *input.promise.archs),
                found,
                out.findings);
    } else if (found.empty()) {
        out.findings.push_back(
            finding("device code",
                    fmt::format("a {} variant holds no device code",
                                backend::to_text(input.promise.variant->backend)),
                    "build the device sources of the section"));
    }
    return out;
}

bool has_libraries(const Promise& promise) {
    return promise.variant && promise.variant->framework != backend::FrameworkId::torch_noarch;
}

Looked look_for_libraries(const CheckInput& input) {
    if (!input.libraries.empty()) {
        return {};
    }
    return {.findings = {finding(
                "libraries", "the variant holds no shared library", "rebuild the variant")}};
}

} // namespace

Check device_code_check() {
    return {.id = "device-code",
            .title = "device code is there for exactly the promised architectures",
            .applies_to_variant = applies,
            .variant = look};
}

Check libraries_check() {
    return {.id = "libraries",
            .title = "a variant for one machine holds a shared library",
            .applies_to_variant = has_libraries,
            .variant = look_for_libraries};
}

} // namespace kb::check
