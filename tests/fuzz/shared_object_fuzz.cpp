// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"
#include "check/check.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace {

kb::check::Promise promise() {
    kb::check::Promise out{.manylinux = "manylinux_2_28",
                           .python_abi = kb::Version{{3, 9}},
                           .torch_stable_abi = kb::Version{{2, 11}},
                           .macos = kb::Version{{15, 0}},
                           .archs = std::vector<std::string>{"8.0", "9.0a"}};
    const auto name = kb::backend::VariantName::parse("torch-stable-abi211-cu130-x86_64-linux");
    KB_ASSERT(name.has_value(), "the name is one of ours");
    out.variant = name->variant();
    return out;
}

} // namespace

/// Any bytes: no crash; a file that is refused has a reason; whatever is read goes through all
/// checks, and what was not read is never called passed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const kb::binfmt::MemorySource source{std::as_bytes(std::span{data, size})};
    auto object = kb::binfmt::read_shared_object(source);
    kb::check::CheckInput input{.variant = "v", .promise = promise()};
    input.libraries.resize(1);
    input.libraries[0].path = "a.so";
    const bool readable = object.has_value();
    if (readable) {
        input.libraries[0].object = std::move(*object);
    } else {
        KB_ASSERT(!object.error().message.empty(), "a refusal has a reason");
        input.libraries[0].unread_reason = object.error().message;
    }
    const kb::check::Report report = kb::check::run(input, kb::check::all_checks());
    KB_ASSERT(readable || !report.passed(), "a refused look is not a pass");
    return 0;
}
