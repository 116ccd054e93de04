// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace kb::document {

namespace {

/// Length of the well-formed UTF-8 sequence at the start of `text`, 0 where there is none.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return static_cast<unsigned char>(text[i]);
    };
    const auto continues = [&](std::size_t i) {
        return i < text.size() && (byte(i) & 0xC0U) == 0x80U;
    };
    const unsigned lead = byte(0);
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return continues(1) ? 2 : 0;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        const bool legal = continues(1) && continues(2) && !(lead == 0xE0 && byte(1) < 0xA0) &&
                           !(lead == 0xED && byte(1) > 0x9F);
        return legal ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        const bool legal = continues(1) && continues(2) && continues(3) &&
                           !(lead == 0xF0 && byte(1) < 0x90) && !(lead == 0xF4 && byte(1) > 0x8F);
        return legal ? 4 : 0;
    }
    return 0;
}

/// How many bytes at the start of `text` stand for themselves between quotation marks.
std::size_t plain_length(std::string_view text) {
    const auto special = std::ranges::find_if(text, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte >= 0x80 || c == '"' || c == '\\';
    });
    return static_cast<std::size_t>(special - text.begin());
}

class Writer {
public:
    Writer(const JsonStyle& style, std::string& out) : style_{style}, out_{out} {}

    void write(const Node& node, std::size_t level) {
        switch (node.kind()) {
        case Node::Kind::null:
            out_ += "null";
            break;
        case Node::Kind::boolean:
            out_ += node.as_bool() ? "true" : "false";
            break;
        case Node::Kind::integer:
            append_integer(node);
            break;
        case Node::Kind::floating:
            append_double(node.as_double());
            break;
        case Node::Kind::string:
        case Node::Kind::datetime:
            append_string(node.as_string());
            break;
        case Node::Kind::array:
            write_array(node.as_array(), level);
            break;
        case Node::Kind::table:
            write_table(node.entries(), level);
            break;
        }
    }

private:
    void write_array(const Node::Array& items, std::size_t level) {
        if (items.empty()) {
            out_ += "[]";
            return;
        }
        out_ += '[';
        bool first = true;
        for (const Node& item : items) {
            separate(first, level + 1);
            write(item, level + 1);
        }
        break_line(level);
        out_ += ']';
    }

    void write_table(const Node::Table& entries, std::size_t level) {
        if (entries.empty()) {
            out_ += "{}";
            return;
        }
        std::vector<const Entry*> order;
        order.reserve(entries.size());
        std::ranges::transform(
            entries, std::back_inserter(order), [](const Entry& entry) { return &entry; });
        if (style_.sort_keys) {
            std::ranges::sort(
                order, {}, [](const Entry* entry) -> const std::string& { return entry->key; });
        }
        out_ += '{';
        bool first = true;
        for (const Entry* entry : order) {
            separate(first, level + 1);
            append_string(entry->key);
            out_ += style_.indent == 0 ? ":" : ": ";
            write(entry->value, level + 1);
        }
        break_line(level);
        out_ += '}';
    }

    void separate(bool& first, std::size_t level) {
        if (!first) {
            out_ += ',';
        }
        first = false;
        break_line(level);
    }

    void break_line(std::size_t level) {
        if (style_.indent != 0) {
            out_ += '\n';
            out_.append(level * style_.indent, ' ');
        }
    }

    void append_integer(const Node& node) {
        if (node.is_unsigned()) {
            fmt::format_to(std::back_inserter(out_), "{}", node.as_unsigned());
        } else {
            fmt::format_to(std::back_inserter(out_), "{}", node.as_int());
        }
    }

    // Shortest text that reads back as the same double, and as a double.
    void append_double(double value) {
        if (!std::isfinite(value)) {
            out_ += "null";
            return;
        }
        const std::string text = fmt::format("{}", value);
        out_ += text;
        if (text.find_first_of(".e") == std::string::npos) {
            out_ += ".0";
        }
    }

    void append_string(std::string_view text) {
        out_ += '"';
        while (!text.empty()) {
            const std::size_t plain = plain_length(text);
            out_ += text.substr(0, plain);
            text.remove_prefix(plain);
            if (text.empty()) {
                break;
            }
            const std::size_t length = sequence_length(text);
            if (length == 0) {
                out_ += "\xEF\xBF\xBD";
                text.remove_prefix(1);
                continue;
            }
            if (length == 1) {
                append_ascii(text[0]);
            } else {
                out_ += text.substr(0, length);
            }
            text.remove_prefix(length);
        }
        out_ += '"';
    }

    void append_ascii(char c) {
        static constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
        static constexpr std::string_view kLetters = "\"\\bfnrt";
        if (const std::size_t i = kEscaped.find(c); i != std::string_view::npos) {
            out_ += '\\';
            out_ += kLetters[i];
        } else if (static_cast<unsigned char>(c) < 0x20) {
            fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out_ += c;
        }
    }

    JsonStyle style_;
    std::string& out_;
};

} // namespace

std::string write_json(const Node& node, const JsonStyle& style) {
    std::string out;
    Writer{style, out}.write(node, 0);
    if (style.final_newline) {
        out += '\n';
    }
    return out;
}

std::string write_canonical_json(const Node& node) {
    return write_json(node, {.indent = 2, .sort_keys = true, .final_newline = true});
}

} // namespace kb::document
