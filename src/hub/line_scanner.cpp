// SPDX-License-Identifier: Apache-2.0
#include "hub/line_scanner.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace kb::hub {

namespace {

constexpr std::size_t kMaxKey = 16;

} // namespace

bool LineScanner::is_long_string_next() const {
    return after_colon_ && depth_ == 2 && top_key_ == "value" && inner_key_ == "content";
}

void LineScanner::open_string() {
    string_.clear();
    escaped_ = false;
    state_ = is_long_string_next() ? State::in_long_string : State::in_string;
}

void LineScanner::take_in_string(char c) {
    if (escaped_) {
        // A key that we look for is never spelt with escapes by anybody: no match is the safe side.
        escaped_ = false;
        string_ = "\\";
        return;
    }
    if (c == '\\') {
        escaped_ = true;
    } else if (c == '"') {
        state_ = State::between;
    } else if (string_.size() < kMaxKey) {
        string_ += c;
    }
}

Result<void> LineScanner::take(char c) {
    if (c == '\n') {
        return end_line();
    }
    if (line_.size() >= max_line_) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("a line of the commit stream has over {} bytes besides "
                                            "its file content",
                                            max_line_)};
    }
    line_ += c;
    if (state_ == State::in_string) {
        take_in_string(c);
        return {};
    }
    switch (c) {
    case '"':
        open_string();
        break;
    case '{':
    case '[':
        ++depth_;
        after_colon_ = false;
        break;
    case '}':
    case ']':
        depth_ -= depth_ > 0 ? 1 : 0;
        after_colon_ = false;
        break;
    case ':':
        after_colon_ = true;
        if (depth_ == 1) {
            top_key_ = string_;
        } else if (depth_ == 2) {
            inner_key_ = string_;
        }
        break;
    case ',':
        after_colon_ = false;
        break;
    default:
        break;
    }
    return {};
}

/// Number of bytes used: up to the closing quote, or a line feed, which no JSON string holds.
Result<std::size_t> LineScanner::take_long_string(std::string_view bytes) {
    // Content is base64 as a rule: up to the quotation mark nothing else has a meaning.
    const std::string_view plain = bytes.substr(0, bytes.find('"'));
    const bool is_plain = !escaped_ && plain.find('\\') == std::string_view::npos &&
                          plain.find('\n') == std::string_view::npos;
    std::size_t end = is_plain ? plain.size() : 0;
    while (end < bytes.size()) {
        const char c = bytes[end];
        if (escaped_) {
            escaped_ = false;
        } else if (c == '\\') {
            escaped_ = true;
        } else if (c == '"' || c == '\n') {
            break;
        }
        ++end;
    }
    if (end > 0) {
        KB_TRY(events_->on_long_string(bytes.substr(0, end)));
    }
    if (end < bytes.size() && bytes[end] == '"') {
        state_ = State::between;
        line_ += '"';
        ++end;
    } else if (end < bytes.size()) {
        state_ = State::between; // the line feed ends a line that is no JSON
    }
    return end;
}

Result<void> LineScanner::end_line() {
    const std::string text = std::move(line_);
    line_.clear();
    state_ = State::between;
    escaped_ = false;
    after_colon_ = false;
    depth_ = 0;
    top_key_.clear();
    inner_key_.clear();
    if (trim(text).empty()) {
        return {};
    }
    return events_->on_line(text);
}

Result<void> LineScanner::feed(std::string_view bytes) {
    while (!bytes.empty()) {
        if (state_ == State::in_long_string) {
            KB_TRY(const std::size_t used, take_long_string(bytes));
            bytes.remove_prefix(used);
        } else {
            KB_TRY(take(bytes.front()));
            bytes.remove_prefix(1);
        }
    }
    return {};
}

Result<void> LineScanner::finish() {
    return end_line();
}

} // namespace kb::hub
