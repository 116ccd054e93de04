// SPDX-License-Identifier: Apache-2.0
#include "toolchain/embedded_data.hpp"
#include "toolchain/toolchain.hpp"
#include "toolchain_data_files.hpp"

namespace kb::toolchain {

std::optional<std::string_view> embedded_data(std::string_view name) {
    for (const EmbeddedFile& file : toolchain_data::embedded_files()) {
        if (file.path == name) {
            return file.content;
        }
    }
    return std::nullopt;
}

const plan::Lock& default_lock() {
    static const plan::Lock kLock = [] {
        const auto text = embedded_data("default.lock.json");
        KB_ASSERT(text.has_value(), "the default lock is compiled in");
        auto lock = plan::parse_lock(*text);
        KB_ASSERT(lock.has_value(), "the default lock is tested");
        return *std::move(lock);
    }();
    return kLock;
}

} // namespace kb::toolchain
