// SPDX-License-Identifier: Apache-2.0
#include "generate/card.hpp"

#include "base/text.hpp"
#include "generate/template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace kb::generate {

namespace {

enum class TokenKind : std::uint8_t { word, text, symbol, newline };

struct Token {
    TokenKind kind = TokenKind::symbol;
    std::string value{};
    /// First of its line, at column 1 and outside brackets.
    bool opens_statement = false;
};

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (static_cast<unsigned char>(c) & 0x80U) != 0;
}

/// As much of Python's lexical grammar as is needed to tell statements, names and strings apart.
class Lexer {
public:
    explicit Lexer(std::string_view text) : text_{text} {}

    std::vector<Token> run() {
        while (at_ < text_.size()) {
            step();
        }
        return std::move(tokens_);
    }

private:
    void step() {
        const char c = text_[at_];
        const bool opens = line_start_ && depth_ == 0;
        line_start_ = false;
        if (c == '\n') {
            line_start_ = true;
            ++at_;
        } else if (c == '#') {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (c == '\\' && at_ + 1 < text_.size()) {
            at_ += 2; // a continued line
        } else if (c == '"' || c == '\'') {
            tokens_.push_back({TokenKind::text, take_string(), opens});
        } else if (is_word(c)) {
            take_word(opens);
        } else if (c == ' ' || c == '\t' || c == '\r') {
            ++at_;
        } else {
            take_symbol(c, opens);
        }
    }

    void take_word(bool opens) {
        const std::size_t start = at_;
        while (at_ < text_.size() && is_word(text_[at_])) {
            ++at_;
        }
        std::string word{text_.substr(start, at_ - start)};
        const bool prefix = word.size() <= 2 && at_ < text_.size() &&
                            (text_[at_] == '"' || text_[at_] == '\'') &&
                            word.find_first_not_of("rRbBuUfF") == std::string::npos;
        if (prefix) {
            tokens_.push_back({TokenKind::text, take_string(), opens});
        } else {
            tokens_.push_back({TokenKind::word, std::move(word), opens});
        }
    }

    void take_symbol(char c, bool opens) {
        if (c == '(' || c == '[' || c == '{') {
            ++depth_;
        } else if ((c == ')' || c == ']' || c == '}') && depth_ > 0) {
            --depth_;
        }
        tokens_.push_back({TokenKind::symbol, std::string(1, c), opens});
        ++at_;
    }

    /// The content of the literal at the cursor; escapes stay as they are written.
    std::string take_string() {
        const char quote = text_[at_];
        const std::string triple(3, quote);
        const std::string_view close =
            text_.substr(at_).starts_with(triple) ? std::string_view{triple} : text_.substr(at_, 1);
        at_ += close.size();
        std::string value;
        while (at_ < text_.size() && !text_.substr(at_).starts_with(close)) {
            if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
                value += text_[at_++];
            }
            value += text_[at_++];
        }
        at_ = std::min(at_ + close.size(), text_.size());
        return value;
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    std::size_t depth_ = 0;
    bool line_start_ = true;
};

bool is_symbol(const std::vector<Token>& tokens, std::size_t i, std::string_view value) {
    return i < tokens.size() && tokens[i].kind == TokenKind::symbol && tokens[i].value == value;
}

} // namespace

std::vector<std::string> exported_names(std::string_view python) {
    const std::vector<Token> tokens = Lexer{python}.run();
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
        const bool assigns = tokens[i].opens_statement && tokens[i].value == "__all__" &&
                             is_symbol(tokens, i + 1, "=") && is_symbol(tokens, i + 2, "[");
        if (!assigns) {
            continue;
        }
        std::vector<std::string> names;
        for (std::size_t j = i + 3; j < tokens.size() && !is_symbol(tokens, j, "]"); ++j) {
            if (tokens[j].kind == TokenKind::text) {
                names.push_back(tokens[j].value);
            }
        }
        return names;
    }
    return {};
}

std::vector<std::string> top_level_classes(std::string_view python) {
    const std::vector<Token> tokens = Lexer{python}.run();
    std::vector<std::string> names;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i].opens_statement && tokens[i].kind == TokenKind::word &&
            tokens[i].value == "class" && tokens[i + 1].kind == TokenKind::word) {
            names.push_back(tokens[i + 1].value);
        }
    }
    return names;
}

std::optional<std::string> render_card(const CardInput& input, Diagnostics& diagnostics) {
    const config::Config& config = input.config;
    if (!config.hub.repo_id) {
        diagnostics.error("missing-repo-id",
                          config.span,
                          "the card needs the repository's name",
                          {"add 'repo-id = \"OWNER/NAME\"' to [general.hub]"});
        return std::nullopt;
    }
    std::vector<std::string> functions = exported_names(input.package_init);
    const auto layers_at = std::ranges::find(functions, "layers");
    const bool exports_layers = layers_at != functions.end();
    if (exports_layers) {
        functions.erase(layers_at);
    }
    Values values{{"repo_id", config.hub.repo_id->value},
                  {"version", fmt::format("{}", config.version.value)},
                  {"has_benchmark", input.has_benchmark},
                  {"license", to_lower(config.license.value)}};
    if (!functions.empty()) {
        values.insert_or_assign("functions", std::move(functions));
    }
    if (exports_layers) {
        values.insert_or_assign("layers", top_level_classes(input.layers));
    }
    if (config.upstream) {
        values.insert_or_assign("upstream", config.upstream->value.normalised());
    }
    if (config.source) {
        values.insert_or_assign("source", config.source->value.normalised());
    }
    return render(input.card, values, {input.card_name}, diagnostics);
}

} // namespace kb::generate
