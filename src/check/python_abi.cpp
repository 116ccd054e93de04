// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "check/checks.hpp"
#include "check/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::check {

namespace {

std::string limited_api(const Version& version) {
    return fmt::format(
        "compile with Py_LIMITED_API=0x{:02x}{:02x}0000", version.major(), version.minor());
}

/// "libpython3.11.so.1.0" and "python311.dll" tie a library to one Python; "libpython3.so" and
/// "python3.dll" do not.
bool is_one_python(std::string_view library) {
    const std::string name = to_lower(library);
    if (name.ends_with(".dll")) {
        return name.starts_with("python") && name != "python3.dll" &&
               parse_unsigned(std::string_view{name}.substr(6, name.size() - 10)).has_value();
    }
    return name.starts_with("libpython3.") && !name.starts_with("libpython3.so");
}

void check_symbol(const Version& promised, std::string_view name, std::vector<Finding>& out) {
    if (!name.starts_with("Py") && !name.starts_with("_Py")) {
        return; // no symbol of Python is called otherwise
    }
    const std::string policy = fmt::format("abi3 {}", promised.to_text());
    const auto added = python_symbol_added(name);
    if (added && *added > promised) {
        out.push_back({.subject = std::string{name},
                       .policy = policy,
                       .found = fmt::format("Python {}", added->to_text()),
                       .allowed = fmt::format("Python {} and older", promised.to_text()),
                       .message = fmt::format("'{}' came with Python {}, the promise is {}",
                                              name,
                                              added->to_text(),
                                              promised.to_text()),
                       .next_step = limited_api(promised)});
    } else if (!added) {
        out.push_back({.subject = std::string{name},
                       .policy = policy,
                       .found = "outside the stable ABI",
                       .allowed = "the stable ABI of Python",
                       .message = fmt::format("'{}' is not in Python's stable ABI", name),
                       .next_step = limited_api(promised)});
    }
}

bool applies(const Promise& promise, const binfmt::SharedObject&) {
    return promise.python_abi.has_value();
}

Looked look(const CheckInput& input, const Library& library) {
    Looked out;
    const Version& promised = *input.promise.python_abi;
    for (const binfmt::Symbol& symbol : library.object->imports) {
        check_symbol(promised, symbol.name, out.findings);
    }
    for (const std::string_view needed : library.object->needed) {
        if (is_one_python(needed)) {
            out.findings.push_back(
                {.subject = std::string{needed},
                 .policy = fmt::format("abi3 {}", promised.to_text()),
                 .found = std::string{needed},
                 .allowed = "no library of one Python version",
                 .message = fmt::format("needs '{}', which only one Python has", needed),
                 .next_step = "link without the Python library"});
        }
    }
    return out;
}

constexpr std::array kNeeds{binfmt::Fact::symbols, binfmt::Fact::needed};

} // namespace

Check python_abi_check() {
    return {.id = "python-abi",
            .title = "Python symbols are those of the promised limited API",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
