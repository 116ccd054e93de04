// SPDX-License-Identifier: Apache-2.0
// The packaged library is built with exceptions; without them it has to be header-only.
#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// The parser asserts where it then reports an error ("[}x]"), and in release builds turns the same
// conditions into assumptions, which would be undefined behaviour on a user's typing mistake.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_ENABLE_FORMATTERS 0

#include "document/toml.hpp"

#include "base/text.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>

namespace kb::document {

namespace {

constexpr std::size_t kMaxBytes = 4UL << 20U;
constexpr std::size_t kMaxDepth = 100;

/// Where the text nests deeper than kMaxDepth: brackets and the parts of dotted keys together.
///
/// The library recurses over tables when it frees them, and dotted keys make tables without any
/// limit, so the depth is judged before it sees the text. Up to the first syntax error this reads
/// strings and comments as the library does; behind one it does not matter.
class DepthScan {
public:
    explicit DepthScan(std::string_view text) : text_{text} {}

    /// Offset of the first place that is too deep, or npos.
    [[nodiscard]] std::size_t first_too_deep() {
        while (at_ < text_.size()) {
            step();
            if (header_ + brackets_ + dots_ > kMaxDepth) {
                return at_;
            }
        }
        return std::string_view::npos;
    }

private:
    void step() {
        const char c = text_[at_];
        switch (c) {
        case '#':
            at_ = std::min(text_.find('\n', at_), text_.size());
            return;
        case '"':
        case '\'':
            skip_string(c);
            return;
        case '\n':
            end_line();
            break;
        case '[':
        case '{':
            open();
            break;
        case ']':
        case '}':
            close();
            break;
        case ',':
            dots_ = open_.empty() ? 0 : open_.back();
            break;
        case '.':
            ++dots_;
            break;
        default:
            if (c != ' ' && c != '\t' && c != '\r') {
                line_is_blank_ = false;
            }
            break;
        }
        ++at_;
    }

    // An open bracket keeps the depth of the key before it: `a.b = { c = ...`.
    void open() {
        in_header_ = in_header_ || (open_.empty() && line_is_blank_);
        if (in_header_ && line_is_blank_) {
            header_ = 0;
            dots_ = 0;
        }
        line_is_blank_ = false;
        open_.push_back(dots_);
        ++brackets_;
    }

    void close() {
        if (!open_.empty()) {
            if (in_header_) {
                header_ = std::max(header_, dots_ + 1);
            }
            dots_ = open_.back();
            open_.pop_back();
            --brackets_;
        }
    }

    void end_line() {
        if (open_.empty()) {
            dots_ = 0;
            line_is_blank_ = true;
            in_header_ = false;
        }
    }

    void skip_string(char quote) {
        line_is_blank_ = false;
        const std::string triple(3, quote);
        const bool multi = text_.substr(at_).starts_with(triple);
        const std::size_t width = multi ? 3 : 1;
        at_ += width;
        while (at_ < text_.size()) {
            if (multi ? text_.substr(at_).starts_with(triple) : text_[at_] == quote) {
                at_ += width;
                // Up to two quotes may stand before the closing three.
                for (int i = 0; multi && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) {
                    ++at_;
                }
                return;
            }
            if (!multi && text_[at_] == '\n') {
                return;
            }
            const bool escaped = text_[at_] == '\\' && quote == '"';
            at_ += escaped ? 2U : 1U;
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t header_ = 0;
    std::size_t brackets_ = 0;
    std::size_t dots_ = 0;
    std::vector<std::size_t> open_{};
    bool line_is_blank_ = true;
    bool in_header_ = false;
};

std::string date_text(const toml::date& d) {
    return fmt::format("{:04}-{:02}-{:02}", d.year, d.month, d.day);
}

std::string time_text(const toml::time& t) {
    std::string out = fmt::format("{:02}:{:02}:{:02}", t.hour, t.minute, t.second);
    if (t.nanosecond != 0) {
        std::string fraction = fmt::format("{:09}", t.nanosecond);
        fraction.erase(fraction.find_last_not_of('0') + 1);
        out += '.' + fraction;
    }
    return out;
}

std::string date_time_text(const toml::date_time& dt) {
    std::string out = date_text(dt.date) + 'T' + time_text(dt.time);
    if (dt.offset) {
        const int minutes = dt.offset->minutes;
        out += minutes == 0 ? std::string{"Z"}
                            : fmt::format("{}{:02}:{:02}",
                                          minutes < 0 ? '-' : '+',
                                          std::abs(minutes) / 60,
                                          std::abs(minutes) % 60);
    }
    return out;
}

class Converter {
public:
    explicit Converter(const Origin& origin) : file_{origin.name} {}

    [[nodiscard]] Node convert(const toml::node& in) const {
        Node out = value_of(in);
        out.span = span_of(in.source());
        out.key_span = out.span;
        return out;
    }

    [[nodiscard]] Span span_of(const toml::source_region& region) const {
        Span out{.file = file_,
                 .line = region.begin.line,
                 .column = region.begin.column,
                 .end_line = region.end.line,
                 .end_column = region.end.column};
        if (std::tie(out.end_line, out.end_column) < std::tie(out.line, out.column)) {
            out.end_line = out.line;
            out.end_column = out.column;
        }
        return out;
    }

private:
    [[nodiscard]] Node value_of(const toml::node& in) const {
        switch (in.type()) {
        case toml::node_type::none:
            return {};
        case toml::node_type::table:
            return table_of(*in.as_table());
        case toml::node_type::array:
            return array_of(*in.as_array());
        case toml::node_type::string:
            return Node{in.as_string()->get()};
        case toml::node_type::integer:
            return Node{static_cast<std::int64_t>(in.as_integer()->get())};
        case toml::node_type::floating_point:
            return Node{in.as_floating_point()->get()};
        case toml::node_type::boolean:
            return Node{in.as_boolean()->get()};
        case toml::node_type::date:
            return Node::datetime(date_text(in.as_date()->get()));
        case toml::node_type::time:
            return Node::datetime(time_text(in.as_time()->get()));
        case toml::node_type::date_time:
            return Node::datetime(date_time_text(in.as_date_time()->get()));
        }
        return {};
    }

    // The library sorts a table by key; the places of the keys give back the order of the file.
    [[nodiscard]] Node table_of(const toml::table& in) const {
        Node out = Node::table();
        Node::Table& entries = out.entries();
        entries.reserve(in.size());
        for (const auto& [key, value] : in) {
            Entry entry{.key = std::string{key.str()}, .value = convert(value)};
            entry.value.key_span = span_of(key.source());
            entries.push_back(std::move(entry));
        }
        std::ranges::stable_sort(entries, {}, [](const Entry& entry) {
            return std::tie(entry.value.key_span.line, entry.value.key_span.column);
        });
        return out;
    }

    [[nodiscard]] Node array_of(const toml::array& in) const {
        Node::Array items;
        items.reserve(in.size());
        for (const toml::node& item : in) {
            items.push_back(convert(item));
        }
        return Node{std::move(items)};
    }

    std::string file_;
};

Span place_of(std::string_view text, std::size_t offset, const Origin& origin) {
    const std::string_view before = text.substr(0, offset);
    const auto line = static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1);
    const std::size_t start = before.rfind('\n') + 1; // npos + 1 is 0
    const auto column = static_cast<std::uint32_t>(count_code_points(before.substr(start)) + 1);
    return {.file = origin.name,
            .line = line,
            .column = column,
            .end_line = line,
            .end_column = column + 1};
}

std::string message_of(const toml::parse_error& error) {
    std::string text{error.description()};
    if (!text.empty()) {
        text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    }
    return "this is not valid TOML: " + escape_control(text);
}

} // namespace

std::optional<Node>
parse_toml(std::string_view text, const Origin& origin, Diagnostics& diagnostics) {
    const auto fail = [&](Span span, std::string message) {
        diagnostics.error("toml-syntax", std::move(span), std::move(message));
        return std::nullopt;
    };
    if (text.size() > kMaxBytes) {
        return fail({.file = origin.name},
                    fmt::format("the file has {}, the limit is {}",
                                human_bytes(text.size()),
                                human_bytes(kMaxBytes)));
    }
    if (const std::size_t deep = DepthScan{text}.first_too_deep(); deep != std::string_view::npos) {
        return fail(place_of(text, deep, origin),
                    fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    const toml::parse_result result = toml::parse(text, std::string_view{origin.name});
    const Converter converter{origin};
    if (!result) {
        return fail(converter.span_of(result.error().source()), message_of(result.error()));
    }
    return converter.convert(result.table());
}

} // namespace kb::document
