// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "check/check.hpp"
#include "support/catch.hpp"
#include "support/elf_builder.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kb::test {

/// One library made of a spec, read as a real one would be.
inline check::Library library_of(const ElfSpec& spec, std::string path = "_k.abi3.so") {
    const std::string bytes = build_elf(spec);
    const binfmt::MemorySource source{as_bytes(bytes)};
    auto object = binfmt::read_shared_object(source);
    REQUIRE(object);
    object->remove_gap(binfmt::Fact::path_texts); // these bytes hold no paths
    return {.path = std::move(path), .object = std::move(*object)};
}

inline check::CheckInput input_of(const ElfSpec& spec, check::Promise promise) {
    check::CheckInput input{.variant = "v", .promise = std::move(promise)};
    input.libraries.push_back(library_of(spec));
    return input;
}

inline backend::Variant variant_of(std::string_view name) {
    const auto parsed = backend::VariantName::parse(name);
    REQUIRE(parsed);
    return parsed->variant();
}

/// One check alone: "outcome [reason]" of each verdict, then a line "subject: message" for each
/// finding.
inline std::string run_one(const check::CheckInput& input, const check::Check& check) {
    const check::Report report = check::run(input, {&check, 1});
    std::string out;
    for (const check::Verdict& verdict : report.verdicts) {
        out += std::string{check::to_text(verdict.outcome)};
        out += verdict.reason.empty() ? "\n" : " [" + verdict.reason + "]\n";
    }
    for (const check::Finding& finding : report.findings) {
        out += finding.subject + ": " + finding.message + "\n";
    }
    return out;
}

} // namespace kb::test
