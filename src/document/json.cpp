// SPDX-License-Identifier: Apache-2.0
#include "document/json.hpp"

#include "base/assert.hpp"
#include "base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unordered_set>
#include <vector>

namespace kb::document {

namespace {

using Foreign = nlohmann::json;

/// Walks behind the library's parser, token by token, because its events carry no places. The
/// library has accepted a token before it reports it, so the walk only has to find its end.
class TokenCursor {
public:
    TokenCursor(std::string_view text, const Origin& origin) : text_{text}, file_{origin.name} {
        if (text.starts_with("\xEF\xBB\xBF")) {
            at_ = 3;
        }
    }

    /// The place of the next token; moves behind it.
    Span next() {
        skip_filling();
        Span span{.file = file_, .line = line_, .column = column_};
        step_over_token();
        span.end_line = line_;
        span.end_column = column_;
        return span;
    }

private:
    void skip_filling() {
        while (at_ < text_.size() &&
               std::string_view{" \t\r\n,:"}.find(text_[at_]) != std::string_view::npos) {
            advance();
        }
    }

    void step_over_token() {
        if (at_ >= text_.size()) {
            return;
        }
        const char first = text_[at_];
        advance();
        if (first == '"') {
            step_over_string();
        } else if (std::string_view{"{}[]"}.find(first) == std::string_view::npos) {
            while (at_ < text_.size() &&
                   std::string_view{" \t\r\n,:{}[]\""}.find(text_[at_]) == std::string_view::npos) {
                advance();
            }
        }
    }

    void step_over_string() {
        while (at_ < text_.size() && text_[at_] != '"') {
            if (text_[at_] == '\\') {
                advance();
            }
            advance();
        }
        advance();
    }

    void advance() {
        if (at_ >= text_.size()) {
            return;
        }
        const auto c = static_cast<unsigned char>(text_[at_]);
        ++at_;
        if (c == '\n') {
            ++line_;
            column_ = 1;
        } else if (at_ >= text_.size() ||
                   (static_cast<unsigned char>(text_[at_]) & 0xC0U) != 0x80U) {
            ++column_;
        }
    }

    std::string_view text_;
    std::string file_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
    std::uint32_t column_ = 1;
};

std::string place_text(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const std::size_t start = before.rfind('\n') + 1; // npos + 1 is 0
    return fmt::format("{}:{}",
                       std::count(before.begin(), before.end(), '\n') + 1,
                       count_code_points(before.substr(start)) + 1);
}

/// Receives the events of the library's parser and builds the tree.
class Builder {
public:
    Builder(std::string_view text, const Origin& origin, const JsonLimits& limits)
        : text_{text}, name_{origin.name}, limits_{limits}, cursor_{text, origin} {}

    bool null() { return add(Node{}, cursor_.next()); }

    bool boolean(bool value) { return add(Node{value}, cursor_.next()); }

    bool number_integer(std::int64_t value) { return add(Node{value}, cursor_.next()); }

    bool number_unsigned(std::uint64_t value) { return add(Node{value}, cursor_.next()); }

    bool number_float(Foreign::number_float_t value, const std::string& /*text*/) {
        return add(Node{value}, cursor_.next());
    }

    bool string(std::string& value) {
        const Span span = cursor_.next();
        if (value.find('\0') != std::string::npos) {
            return fail(span, "a string holds a NUL");
        }
        return add(Node{std::move(value)}, span);
    }

    bool binary(Foreign::binary_t& /*value*/) { return fail({}, "binary value"); }

    bool start_object(std::size_t /*size*/) { return open(Node::table()); }

    bool start_array(std::size_t /*size*/) { return open(Node::array()); }

    bool key(std::string& name) {
        key_span_ = cursor_.next();
        if (name.find('\0') != std::string::npos) {
            return fail(key_span_, "a key holds a NUL");
        }
        if (!open_.back().keys.insert(name).second) {
            return fail(key_span_, fmt::format("key '{}' is given twice", escape_control(name)));
        }
        key_ = std::move(name);
        return true;
    }

    bool end_object() { return close(); }

    bool end_array() { return close(); }

    bool parse_error(std::size_t position,
                     const std::string& /*last_token*/,
                     const nlohmann::detail::exception& error) {
        // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
        std::string_view what = error.what();
        if (const std::size_t cut = what.find(": "); cut != std::string_view::npos) {
            what.remove_prefix(cut + 2);
        }
        message_ = fmt::format("{}:{}: this is not valid JSON: {}",
                               name_,
                               place_text(text_, position == 0 ? 0 : position - 1),
                               escape_control(what));
        return false;
    }

    [[nodiscard]] const std::string& message() const { return message_; }

    [[nodiscard]] Node take() { return std::move(root_); }

private:
    struct Level {
        Node node{};
        Span key_span{};
        std::string key{};
        std::unordered_set<std::string> keys{};
    };

    bool open(Node container) {
        const Span span = cursor_.next();
        if (open_.size() >= limits_.max_depth) {
            return fail(span, fmt::format("nested deeper than {} levels", limits_.max_depth));
        }
        container.span = span;
        open_.push_back(Level{.node = std::move(container),
                              .key_span = std::move(key_span_),
                              .key = std::move(key_)});
        key_.clear();
        key_span_ = {};
        return true;
    }

    bool close() {
        const Span end = cursor_.next();
        Level level = std::move(open_.back());
        open_.pop_back();
        Span span = level.node.span;
        span.end_line = end.end_line;
        span.end_column = end.end_column;
        key_ = std::move(level.key);
        key_span_ = std::move(level.key_span);
        return add(std::move(level.node), span);
    }

    bool add(Node node, const Span& span) {
        node.span = span;
        node.key_span = span;
        if (open_.empty()) {
            root_ = std::move(node);
            return true;
        }
        Node& parent = open_.back().node;
        if (parent.is_array()) {
            parent.push(std::move(node));
            return true;
        }
        node.key_span = std::move(key_span_);
        // Not set(): that the key is new is known already, and a search here would be quadratic.
        parent.entries().push_back(Entry{.key = std::move(key_), .value = std::move(node)});
        key_.clear();
        return true;
    }

    bool fail(const Span& span, std::string_view what) {
        message_ = fmt::format("{}:{}:{}: {}", name_, span.line, span.column, what);
        return false;
    }

    std::string_view text_;
    std::string name_;
    JsonLimits limits_;
    TokenCursor cursor_;
    Node root_{};
    std::vector<Level> open_{};
    std::string key_{};
    Span key_span_{};
    std::string message_{};
};

} // namespace

Result<Node> parse_json(std::string_view text, const Origin& origin, const JsonLimits& limits) {
    const auto corrupt = [](std::string message) {
        return Error{.code = ErrorCode::corrupt, .message = std::move(message)};
    };
    if (text.size() > limits.max_bytes) {
        return corrupt(fmt::format("{}: the document has {}, the limit is {}",
                                   origin.name,
                                   human_bytes(text.size()),
                                   human_bytes(limits.max_bytes)));
    }
    // The library takes a NUL for the end of the text and would ignore what follows.
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
        return corrupt(
            fmt::format("{}:{}: the document holds a NUL", origin.name, place_text(text, nul)));
    }
    Builder builder{text, origin, limits};
    if (!Foreign::sax_parse(text.begin(), text.end(), &builder)) {
        return corrupt(builder.message());
    }
    return builder.take();
}

} // namespace kb::document
