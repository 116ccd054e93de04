// SPDX-License-Identifier: Apache-2.0
#include "base/rel_path.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb {

namespace {

constexpr std::size_t kMaxPath = 4096;
constexpr std::size_t kMaxSegment = 255;

Error bad_path(std::string_view text, std::string_view why) {
    return {.code = ErrorCode::corrupt,
            .message = fmt::format("'{}' is not a relative path inside the directory: {}",
                                   escape_control(text.substr(0, 200)),
                                   why)};
}

} // namespace

Result<RelPath> RelPath::parse(std::string_view text) {
    if (text.empty()) {
        return bad_path(text, "it is empty");
    }
    if (text.size() > kMaxPath) {
        return bad_path(text, "it is longer than 4096 bytes");
    }
    if (!is_valid_utf8(text)) {
        return bad_path("(bytes)", "it is not valid UTF-8");
    }
    if (std::ranges::any_of(
            text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; })) {
        return bad_path(text, "it holds a control character");
    }
    if (text.find('\\') != std::string_view::npos) {
        return bad_path(text, "it holds a backslash, write '/'");
    }
    for (const std::string_view segment : split(text, '/')) {
        if (segment.empty()) {
            return bad_path(text,
                            text.starts_with('/') ? "it is absolute" : "it has an empty segment");
        }
        if (segment == "." || segment == "..") {
            return bad_path(text, fmt::format("it has a '{}' segment", segment));
        }
        if (segment.size() > kMaxSegment) {
            return bad_path(text, "a segment is longer than 255 bytes");
        }
    }
    return RelPath{std::string{text}};
}

RelPath RelPath::literal(std::string_view text) {
    Result<RelPath> parsed = parse(text);
    KB_ASSERT(parsed.has_value(), "a path spelt by the program is well-formed");
    return std::move(parsed).value();
}

std::string_view RelPath::name() const {
    const std::size_t slash = text_.rfind('/');
    return slash == std::string::npos ? std::string_view{text_}
                                      : std::string_view{text_}.substr(slash + 1);
}

std::string_view RelPath::parent() const {
    const std::size_t slash = text_.rfind('/');
    return slash == std::string::npos ? std::string_view{}
                                      : std::string_view{text_}.substr(0, slash);
}

std::string_view RelPath::extension() const {
    const std::string_view last = name();
    const std::size_t dot = last.rfind('.');
    return dot == std::string_view::npos || dot == 0 ? std::string_view{} : last.substr(dot);
}

RelPath RelPath::operator/(const RelPath& tail) const {
    return RelPath{text_ + "/" + tail.text_};
}

} // namespace kb
