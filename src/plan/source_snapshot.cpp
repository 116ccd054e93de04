// SPDX-License-Identifier: Apache-2.0
#include "plan/source_snapshot.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace kb::plan {

namespace {

/// Walks C++ text far enough to know what is a directive: comments, string and character literals
/// and raw strings are stepped over, spliced lines are one line.
class DirectiveScanner {
public:
    explicit DirectiveScanner(std::string_view text) : text_{text} {}

    std::vector<Include> scan() {
        while (at_ < text_.size()) {
            step();
        }
        return std::move(includes_);
    }

private:
    [[nodiscard]] char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }

    void step() {
        const char c = peek();
        if (c == '\n') {
            line_start_ = true;
            ++at_;
        } else if (c == '\\' && (peek(1) == '\n' || peek(1) == '\r')) {
            at_ += peek(1) == '\r' && peek(2) == '\n' ? 3U : 2U;
        } else if (c == '/' && peek(1) == '/') {
            skip_line_comment();
        } else if (c == '/' && peek(1) == '*') {
            const std::size_t end = text_.find("*/", at_ + 2);
            at_ = end == std::string_view::npos ? text_.size() : end + 2;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            ++at_;
        } else if (c == '#' && line_start_) {
            ++at_;
            line_start_ = false;
            read_directive();
        } else {
            line_start_ = false;
            skip_token();
        }
    }

    void skip_line_comment() {
        while (at_ < text_.size() && peek() != '\n') {
            at_ += peek() == '\\' && peek(1) == '\n' ? 2U : 1U;
        }
    }

    void skip_token() {
        const char c = peek();
        if (c == '"') {
            const bool raw = at_ > 0 && text_[at_ - 1] == 'R';
            if (raw) {
                skip_raw_string();
            } else {
                skip_literal('"');
            }
        } else if (c == '\'' && !follows_digit()) {
            skip_literal('\'');
        } else {
            ++at_;
        }
    }

    /// 1'000: a separator, not a literal.
    [[nodiscard]] bool follows_digit() const {
        const char before = at_ > 0 ? text_[at_ - 1] : '\0';
        return (before >= '0' && before <= '9') || (before >= 'a' && before <= 'f') ||
               (before >= 'A' && before <= 'F');
    }

    /// Ends at the line's end in any case: a literal does not go over it.
    void skip_literal(char quote) {
        ++at_;
        while (at_ < text_.size() && peek() != quote && peek() != '\n') {
            at_ += peek() == '\\' ? 2U : 1U;
        }
        at_ = std::min(at_ + (peek() == quote ? 1U : 0U), text_.size());
    }

    void skip_raw_string() {
        const std::size_t open = text_.find('(', at_);
        if (open == std::string_view::npos) {
            at_ = text_.size();
            return;
        }
        std::string close = ")";
        close += text_.substr(at_ + 1, open - at_ - 1);
        close += '"';
        const std::size_t end = text_.find(close, open);
        at_ = end == std::string_view::npos ? text_.size() : end + close.size();
    }

    void skip_blanks() {
        while (peek() == ' ' || peek() == '\t' || (peek() == '\\' && peek(1) == '\n')) {
            at_ += peek() == '\\' ? 2U : 1U;
        }
    }

    std::string_view read_word() {
        const std::size_t begin = at_;
        const auto is_word = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '_';
        };
        while (is_word(peek())) {
            ++at_;
        }
        return text_.substr(begin, at_ - begin);
    }

    void read_directive() {
        skip_blanks();
        const std::string_view word = read_word();
        if (word != "include" && word != "include_next" && word != "import") {
            return;
        }
        skip_blanks();
        const char open = peek();
        const std::size_t line_end = std::min(text_.find('\n', at_), text_.size());
        if (open == '"' || open == '<') {
            const std::size_t end = text_.find(open == '<' ? '>' : '"', at_ + 1);
            if (end < line_end) {
                includes_.push_back(
                    {.path = std::string{text_.substr(at_ + 1, end - at_ - 1)},
                     .form = open == '<' ? IncludeForm::angled : IncludeForm::quoted});
                at_ = end + 1;
                return;
            }
        }
        if (const std::string_view macro = read_word(); !macro.empty()) {
            includes_.push_back({.path = std::string{macro}, .form = IncludeForm::computed});
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
    bool line_start_ = true;
    std::vector<Include> includes_;
};

} // namespace

SourceFile scan_source(const RelPath& path, std::string_view text) {
    SourceFile file{.path = path,
                    .sha256 = digest::sha256(text),
                    .includes = DirectiveScanner{text}.scan(),
                    .names_ops = text.find("_EXTENSION_NAME") != std::string_view::npos};
    std::ranges::sort(file.includes);
    file.includes.erase(std::unique(file.includes.begin(), file.includes.end()),
                        file.includes.end());
    return file;
}

} // namespace kb::plan
