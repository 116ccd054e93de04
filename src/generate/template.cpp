// SPDX-License-Identifier: Apache-2.0
#include "generate/template.hpp"

#include "base/assert.hpp"
#include "base/file_image.hpp"
#include "base/text.hpp"
#include "generate_templates_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace kb::generate {

namespace {

enum class TokenKind : std::uint8_t { text, expression, block };

struct Token {
    TokenKind kind = TokenKind::text;
    std::string_view body{};
    std::size_t offset = 0;
};

/// A card comes from a stranger's repository: what it asks for is bounded. The largest template of
/// ours has 4 levels and 160 tags.
constexpr std::size_t kMaxTag = 4096;         // bytes
constexpr std::size_t kMaxDepth = 32;         // blocks in blocks
constexpr std::size_t kMaxSteps = 1UL << 18U; // tags and texts, each turn of a loop counted
constexpr std::size_t kMaxOutput = 1UL << 24U;

class Renderer {
public:
    Renderer(std::string_view text, const Values& values, const Origin& origin, Diagnostics& diag)
        : text_{text}, values_{values}, origin_{origin}, diagnostics_{&diag} {}

    /// With `strict`, a name without a value is a mistake too.
    std::optional<std::string> run(bool strict) {
        strict_ = strict;
        tokenise();
        std::string out;
        std::size_t i = 0;
        if (!failed_) {
            render_until(i, out, {}, true);
        }
        if (failed_) {
            return std::nullopt;
        }
        return out;
    }

private:
    void fail(std::size_t offset, std::string message, std::vector<std::string> notes = {}) {
        if (failed_) {
            return; // what follows the first mistake is mostly its consequence
        }
        failed_ = true;
        Span span{.file = origin_.name, .line = 1, .column = 1, .end_line = 0, .end_column = 0};
        const std::string_view before = text_.substr(0, offset);
        span.line += static_cast<std::uint32_t>(std::ranges::count(before, '\n'));
        const std::size_t line_start = before.rfind('\n') + 1; // npos + 1 is 0
        span.column += static_cast<std::uint32_t>(count_code_points(before.substr(line_start)));
        span.end_line = span.line;
        span.end_column = span.column + 1;
        diagnostics_->error(
            "template-syntax", std::move(span), std::move(message), std::move(notes));
    }

    void tokenise() {
        std::size_t at = 0;
        while (at < text_.size() && !failed_) {
            const std::size_t open = next_open(at);
            if (open == std::string_view::npos) {
                tokens_.push_back({TokenKind::text, text_.substr(at), at});
                return;
            }
            if (open > at) {
                tokens_.push_back({TokenKind::text, text_.substr(at, open - at), at});
            }
            at = take_tag(open);
        }
    }

    [[nodiscard]] std::size_t next_open(std::size_t at) const {
        for (std::size_t i = at; i + 1 < text_.size(); ++i) {
            if (text_[i] == '{' &&
                (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#')) {
                return i;
            }
        }
        return std::string_view::npos;
    }

    /// Returns where the text after the tag begins.
    std::size_t take_tag(std::size_t open) {
        const char kind = text_[open + 1];
        const std::string_view close = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
        const std::size_t end = text_.find(close, open + 2);
        if (end == std::string_view::npos) {
            fail(open, fmt::format("'{{{}' is not closed by '{}'", kind, close));
            return text_.size();
        }
        if (end - open > kMaxTag) {
            fail(open, fmt::format("'{{{}' is longer than {} bytes", kind, kMaxTag));
            return text_.size();
        }
        const std::string_view body = trim(text_.substr(open + 2, end - open - 2));
        std::size_t after = end + 2;
        if (kind == '{') {
            tokens_.push_back({TokenKind::expression, body, open});
            return after;
        }
        if (kind == '%') {
            tokens_.push_back({TokenKind::block, body, open});
        }
        if (text_.substr(after).starts_with("\r\n")) {
            after += 2;
        } else if (text_.substr(after).starts_with("\n")) {
            after += 1;
        }
        return after;
    }

    /// Counts the blocks that are open.
    class Level {
    public:
        explicit Level(std::size_t& depth) : depth_{&depth} { ++depth; }

        ~Level() { --*depth_; }

        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

    private:
        std::size_t* depth_;
    };

    static std::string_view word_of(std::string_view block) {
        return block.substr(0, block.find_first_of(" \t\n"));
    }

    static std::string_view rest_of(std::string_view block) {
        return trim(block.substr(word_of(block).size()));
    }

    /// Renders up to a block whose word is in `stops` (not consumed), or to the end.
    void render_until(std::size_t& i,
                      std::string& out,
                      std::initializer_list<std::string_view> stops,
                      bool live) {
        const Level level{depth_};
        while (i < tokens_.size() && !failed_) {
            const Token& token = tokens_[i];
            if (depth_ > kMaxDepth || ++steps_ > kMaxSteps || out.size() > kMaxOutput) {
                fail(token.offset,
                     fmt::format("the template is too large: more than {} blocks in each other, {} "
                                 "steps or {} bytes",
                                 kMaxDepth,
                                 kMaxSteps,
                                 kMaxOutput));
                return;
            }
            if (token.kind == TokenKind::text) {
                out += live ? token.body : std::string_view{};
                ++i;
            } else if (token.kind == TokenKind::expression) {
                if (live) {
                    out += to_output(evaluate(token.body, token.offset));
                }
                ++i;
            } else if (std::ranges::find(stops, word_of(token.body)) != stops.end()) {
                return;
            } else if (word_of(token.body) == "if") {
                render_if(i, out, live);
            } else if (word_of(token.body) == "for") {
                render_for(i, out, live);
            } else {
                fail(token.offset,
                     fmt::format("'{}' is not expected here", escape_control(word_of(token.body))),
                     {"known blocks are 'if', 'elif', 'else', 'endif', 'for' and 'endfor'"});
            }
        }
        if (stops.size() != 0) {
            fail(text_.size(),
                 fmt::format("a block is not closed, '{}' is missing", *(stops.end() - 1)));
        }
    }

    void render_if(std::size_t& i, std::string& out, bool live) {
        bool done = false; // a branch was taken
        bool last = false; // behind 'else'
        while (!failed_) {
            const Token& token = tokens_[i];
            const std::string_view word = word_of(token.body);
            ++i;
            if (word == "endif") {
                return;
            }
            if (last) {
                fail(token.offset, "only 'endif' may follow the branch of 'else'");
                return;
            }
            last = word == "else";
            const bool take =
                live && !done && (last || is_true(condition(rest_of(token.body), token.offset)));
            done = done || take;
            render_until(i, out, {"elif", "else", "endif"}, take);
        }
    }

    void render_for(std::size_t& i, std::string& out, bool live) {
        const Token& token = tokens_[i];
        const std::string_view head = rest_of(token.body);
        const std::size_t in = head.find(" in ");
        if (in == std::string_view::npos) {
            fail(token.offset, "a loop reads 'for NAME in LIST'");
            return;
        }
        const std::string name{trim(head.substr(0, in))};
        const Value list = evaluate(trim(head.substr(in + 4)), token.offset);
        const auto* items = std::get_if<std::vector<std::string>>(&list);
        const std::size_t body = i + 1;
        std::size_t end = body;
        std::string ignored;
        render_until(end, ignored, {"endfor"}, false);
        if (items != nullptr && live) {
            for (const std::string& item : *items) {
                std::size_t at = body;
                locals_.emplace_back(name, item);
                render_until(at, out, {"endfor"}, true);
                locals_.pop_back();
            }
        }
        i = end + 1;
    }

    static bool is_true(const Value& value) {
        if (const auto* text = std::get_if<std::string>(&value)) {
            return !text->empty();
        }
        if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
            return !list->empty();
        }
        return std::get<bool>(value);
    }

    static std::string to_output(const Value& value) {
        if (const auto* text = std::get_if<std::string>(&value)) {
            return *text;
        }
        if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
            return join(*list, ", ");
        }
        return std::get<bool>(value) ? "true" : "false";
    }

    /// Splits at a word that stands alone, outside string literals.
    static std::optional<std::pair<std::string_view, std::string_view>>
    split_word(std::string_view text, std::string_view word) {
        char quote = 0;
        for (std::size_t i = 0; i + word.size() <= text.size(); ++i) {
            if (quote != 0) {
                quote = text[i] == quote ? '\0' : quote;
            } else if (text[i] == '"' || text[i] == '\'') {
                quote = text[i];
            } else if (text.substr(i).starts_with(word) && i > 0) {
                return std::pair{trim(text.substr(0, i)), trim(text.substr(i + word.size()))};
            }
        }
        return std::nullopt;
    }

    /// or > and > not > ==, != > 'is defined'.
    Value condition(std::string_view text, std::size_t offset) {
        if (const auto pair = split_word(text, " or ")) {
            const bool left = is_true(condition(pair->first, offset));
            return is_true(condition(pair->second, offset)) || left;
        }
        if (const auto pair = split_word(text, " and ")) {
            const bool left = is_true(condition(pair->first, offset));
            return is_true(condition(pair->second, offset)) && left;
        }
        if (text.starts_with("not ")) {
            return !is_true(condition(trim(text.substr(4)), offset));
        }
        if (const auto pair = split_word(text, "==")) {
            return evaluate(pair->first, offset) == evaluate(pair->second, offset);
        }
        if (const auto pair = split_word(text, "!=")) {
            return evaluate(pair->first, offset) != evaluate(pair->second, offset);
        }
        if (text.ends_with(" is defined")) {
            return lookup(trim(text.substr(0, text.size() - 11))) != std::nullopt;
        }
        if (text.ends_with(" is not defined")) {
            return lookup(trim(text.substr(0, text.size() - 15))) == std::nullopt;
        }
        return evaluate(text, offset);
    }

    [[nodiscard]] std::optional<Value> lookup(std::string_view name) const {
        for (auto it = locals_.rbegin(); it != locals_.rend(); ++it) {
            if (it->first == name) {
                return it->second;
            }
        }
        if (const auto it = values_.find(name); it != values_.end()) {
            return it->second;
        }
        return std::nullopt;
    }

    /// A literal or a name, then filters.
    Value evaluate(std::string_view text, std::size_t offset) {
        const auto pipe = split_word(text, "|");
        const std::string_view atom = pipe ? pipe->first : text;
        std::string_view filters = pipe ? pipe->second : std::string_view{};
        Value value = evaluate_atom(atom, offset, filters.starts_with("default"));
        while (!filters.empty() && !failed_) {
            const auto next = split_word(filters, "|");
            value = apply_filter(std::move(value), trim(next ? next->first : filters), offset);
            filters = next ? next->second : std::string_view{};
        }
        return value;
    }

    Value evaluate_atom(std::string_view atom, std::size_t offset, bool has_default) {
        if (atom.size() >= 2 && (atom[0] == '"' || atom[0] == '\'') && atom.back() == atom[0]) {
            return std::string{atom.substr(1, atom.size() - 2)};
        }
        if (atom == "true" || atom == "false") {
            return atom == "true";
        }
        const bool is_name = !atom.empty() && std::ranges::all_of(atom, [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '_';
        });
        if (!is_name) {
            fail(offset,
                 fmt::format("'{}' is neither a name nor a string", escape_control(atom)),
                 {"supported are names, strings and the filters 'lower', 'upper', 'length', "
                  "'join' and 'default'"});
            return std::string{};
        }
        std::optional<Value> value = lookup(atom);
        if (!value && strict_ && !has_default) {
            fail(offset, fmt::format("'{}' has no value", atom));
        }
        return value ? std::move(*value) : Value{std::string{}};
    }

    Value apply_filter(Value value, std::string_view filter, std::size_t offset) {
        const std::size_t paren = filter.find('(');
        const std::string_view name = trim(filter.substr(0, paren));
        Value argument{std::string{}};
        if (paren != std::string_view::npos) {
            if (!filter.ends_with(')')) {
                fail(offset, fmt::format("the argument of '{}' is not closed", name));
                return value;
            }
            argument = evaluate_atom(
                trim(filter.substr(paren + 1, filter.size() - paren - 2)), offset, false);
        }
        if (name == "lower") {
            return to_lower(to_output(value));
        }
        if (name == "upper") {
            std::string text = to_output(value);
            std::ranges::transform(text, text.begin(), [](char c) {
                return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
            });
            return text;
        }
        if (name == "length") {
            const auto* list = std::get_if<std::vector<std::string>>(&value);
            return fmt::format(
                "{}", list != nullptr ? list->size() : count_code_points(to_output(value)));
        }
        if (name == "join") {
            const auto* list = std::get_if<std::vector<std::string>>(&value);
            return list != nullptr ? join(*list, to_output(argument)) : to_output(value);
        }
        if (name == "default") {
            return is_true(value) ? value : argument;
        }
        constexpr std::string_view kFilters[] = {"lower", "upper", "length", "join", "default"};
        fail(offset,
             fmt::format("'{}' is not a filter", escape_control(name)),
             suggestion_note(name, kFilters));
        return value;
    }

    std::string_view text_;
    const Values& values_;
    const Origin& origin_;
    Diagnostics* diagnostics_;
    std::vector<Token> tokens_;
    std::vector<std::pair<std::string, Value>> locals_;
    std::size_t depth_ = 0;
    std::size_t steps_ = 0;
    bool strict_ = false;
    bool failed_ = false;
};

} // namespace

std::optional<std::string> render(std::string_view text,
                                  const Values& values,
                                  const Origin& origin,
                                  Diagnostics& diagnostics) {
    return Renderer{text, values, origin, diagnostics}.run(false);
}

std::string_view embedded_text(std::string_view path) {
    for (const EmbeddedFile& file : templates::embedded_files()) {
        if (file.path == path) {
            return file.content;
        }
    }
    KB_ASSERT(false, "every template that is asked for is embedded");
    std::unreachable();
}

std::string render_embedded(std::string_view path, const Values& values) {
    Diagnostics diagnostics;
    const Origin origin{std::string{path}};
    std::optional<std::string> out =
        Renderer{embedded_text(path), values, origin, diagnostics}.run(true);
    KB_ASSERT(out.has_value(),
              diagnostics.empty() ? "a template of ours renders"
                                  : to_text(diagnostics.items().front()).c_str());
    return std::move(*out);
}

} // namespace kb::generate
