// SPDX-License-Identifier: Apache-2.0
#include "toolchain/torch_names.hpp"

#include "base/text.hpp"
#include "store/decompress.hpp"
#include "toolchain/embedded_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kb::toolchain {

namespace {

constexpr std::uint64_t kMaxTable = 64UL << 20U;

Error malformed(std::string_view line) {
    return {.code = ErrorCode::corrupt,
            .message =
                fmt::format("'{}' is not a row of a table of torch's names", escape_control(line))};
}

/// Decompressed once a process, when the first library asks: it is twelve megabytes of text.
const Result<std::string>& table_text() {
    static const Result<std::string> text = [] {
        const auto packed = embedded_data("torch-names_x86_64.xz");
        KB_ASSERT(packed.has_value(), "the table is compiled in");
        return store::decompress(*packed, kMaxTable);
    }();
    return text;
}

/// The next line, which it takes off the front.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

} // namespace

Result<TorchNames>
select_torch_names(std::string_view table, const Version& torch, backend::BackendId backend) {
    TorchNames out;
    std::uint64_t mask = 0;
    const std::string_view head = take_line(table);
    for (const std::string_view word : split(head, ' ')) {
        const auto version = Version::parse(word);
        if (!version || out.known.size() == 64) {
            return malformed(head);
        }
        if (*version == torch.major_minor()) {
            mask = 1UL << out.known.size();
        }
        out.known.push_back(*version);
    }
    while (!table.empty() && mask != 0) {
        const std::string_view line = take_line(table);
        const std::size_t tab = line.find('\t');
        std::uint64_t versions = 0;
        if (tab == std::string_view::npos || tab < 2 ||
            std::from_chars(line.data() + 1, line.data() + tab, versions, 16).ptr !=
                line.data() + tab) {
            return malformed(line);
        }
        if ((versions & mask) != 0 &&
            (line.front() != 'g' || backend == backend::BackendId::cuda)) {
            out.names.push_back(line.substr(tab + 1));
        }
    }
    return out;
}

Result<TorchNames>
torch_names(const Version& torch, backend::BackendId backend, const backend::Platform& platform) {
    const Result<std::string>& text = table_text();
    if (!text) {
        return text.error();
    }
    const bool listed = platform == backend::Platform{} &&
                        (backend == backend::BackendId::cpu || backend == backend::BackendId::cuda);
    return select_torch_names(*text, listed ? torch : Version{}, backend);
}

} // namespace kb::toolchain
