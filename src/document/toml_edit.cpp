// SPDX-License-Identifier: Apache-2.0
#include "document/toml_edit.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <tuple>

namespace kb::document {

namespace {

class LineIndex {
public:
    explicit LineIndex(std::string_view text) : text_{text} {
        // A byte order mark is no column.
        starts_.push_back(text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '\n') {
                starts_.push_back(i + 1);
            }
        }
    }

    [[nodiscard]] std::size_t offset(std::uint32_t line, std::uint32_t column) const {
        KB_ASSERT(line >= 1 && line <= starts_.size() && column >= 1, "an edit lies in the text");
        std::size_t at = starts_[line - 1];
        for (std::uint32_t i = 1; i < column; ++i) {
            KB_ASSERT(at < text_.size() && text_[at] != '\n', "an edit lies in the text");
            ++at;
            while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0U) == 0x80U) {
                ++at;
            }
        }
        return at;
    }

private:
    std::string_view text_;
    std::vector<std::size_t> starts_{};
};

struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string text{};
};

} // namespace

std::string apply_edits(std::string_view text, std::vector<TomlEdit> edits) {
    const LineIndex index{text};
    std::vector<Piece> pieces;
    pieces.reserve(edits.size());
    for (TomlEdit& edit : edits) {
        pieces.push_back({.begin = index.offset(edit.span.line, edit.span.column),
                          .end = index.offset(edit.span.end_line, edit.span.end_column),
                          .text = std::move(edit.text)});
    }
    // Insertions at one place keep their order and come before a replacement that starts there.
    std::ranges::stable_sort(pieces, {}, [](const Piece& piece) {
        return std::tuple{piece.begin, piece.end};
    });
    std::string out;
    std::size_t done = 0;
    for (const Piece& piece : pieces) {
        KB_ASSERT(piece.begin >= done && piece.end >= piece.begin, "edits do not overlap");
        out += text.substr(done, piece.begin - done);
        out += piece.text;
        done = piece.end;
    }
    out += text.substr(done);
    return out;
}

} // namespace kb::document
