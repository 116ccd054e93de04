// SPDX-License-Identifier: Apache-2.0
#include "binfmt/op_schemas.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace kb::binfmt {

namespace {

constexpr std::uint64_t kBlock = 256UL << 10U;
/// Longest schema that is taken; torch's own have up to 1,500 bytes.
constexpr std::uint64_t kMaxSchema = 8UL << 10U;
constexpr std::size_t kMaxSchemas = 10'000;
constexpr std::string_view kArrow = ") -> ";

bool is_text(char c) {
    return c >= ' ' && c <= '~';
}

bool is_identifier(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_schema_name(std::string_view name) {
    // "ns::name.overload"
    return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
           std::ranges::all_of(name,
                               [](char c) { return is_identifier(c) || c == ':' || c == '.'; });
}

bool begins_with_type(std::string_view text) {
    constexpr std::array<std::string_view, 17> kTypes{"Tensor",
                                                      "int",
                                                      "float",
                                                      "bool",
                                                      "str",
                                                      "Scalar",
                                                      "SymInt",
                                                      "Device",
                                                      "ScalarType",
                                                      "Layout",
                                                      "Any",
                                                      "Generator",
                                                      "MemoryFormat",
                                                      "Dict",
                                                      "__torch__",
                                                      "Stream",
                                                      "complex"};
    while (!text.empty() && (text[0] == '(' || text[0] == ' ')) {
        text.remove_prefix(1);
    }
    return std::ranges::any_of(kTypes, [&](std::string_view type) {
        return text.starts_with(type) &&
               (text.size() == type.size() || !is_identifier(text[type.size()]));
    });
}

bool is_schema(std::string_view text) {
    const std::size_t open = text.find('(');
    const std::size_t arrow = text.rfind(kArrow);
    if (open == std::string_view::npos || arrow == std::string_view::npos || arrow < open ||
        !is_schema_name(text.substr(0, open))) {
        return false;
    }
    std::string_view arguments = text.substr(open + 1, arrow - open - 1);
    if (arguments.starts_with("*, ")) {
        arguments.remove_prefix(3);
    }
    const std::string_view result = text.substr(arrow + kArrow.size());
    return (arguments.empty() || begins_with_type(arguments)) &&
           (result == "()" || begins_with_type(result));
}

/// `text` is part of the file; texts whose first arrow in [begin, end) is there are taken. Each run
/// of printable bytes is looked at once, however many arrows are in it.
void scan(std::string_view text, std::size_t begin, std::size_t end, std::set<std::string>& out) {
    std::size_t behind = 0; // the run before
    std::size_t at = text.find(kArrow, begin);
    while (at < end && out.size() < kMaxSchemas) {
        std::size_t from = at;
        while (from > behind && is_text(text[from - 1])) {
            --from;
        }
        std::size_t to = at;
        while (to < text.size() && is_text(text[to])) {
            ++to;
        }
        const bool whole =
            (from == 0 || text[from - 1] == '\0') && (to < text.size() && text[to] == '\0');
        const std::string_view found = text.substr(from, to - from);
        if (whole && found.size() <= kMaxSchema && is_schema(found)) {
            out.emplace(found);
        }
        behind = to;
        at = text.find(kArrow, to);
    }
}

} // namespace

Result<std::vector<std::string>> find_op_schemas(const ByteSource& source) {
    std::set<std::string> out;
    std::vector<std::byte> buffer(std::min(source.size(), kBlock + 2 * kMaxSchema));
    for (std::uint64_t at = 0; at < source.size(); at += kBlock) {
        const std::uint64_t from = at - std::min(at, kMaxSchema);
        const std::uint64_t block_end = std::min(source.size(), at + kBlock);
        const std::uint64_t to = std::min(source.size(), block_end + kMaxSchema);
        const std::span<std::byte> window = std::span{buffer}.first(to - from);
        KB_TRY(source.read(from, window));
        scan(as_text(window), at - from, block_end - from, out);
    }
    return std::vector<std::string>{out.begin(), out.end()};
}

} // namespace kb::binfmt
