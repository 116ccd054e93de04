// SPDX-License-Identifier: Apache-2.0
#include "hub/content_decoder.hpp"

#include <fmt/format.h>

namespace kb::hub {

namespace {

/// Longest text that may still turn out to be plain after looking like base64 to its end.
constexpr std::size_t kMaxKept = 1UL << 20U;
constexpr std::int8_t kNone = -1;

constexpr std::array<std::int8_t, 256> base64_values() {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::array<std::int8_t, 256> values{};
    values.fill(kNone);
    for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
        values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
    }
    return values;
}

constexpr std::array<std::int8_t, 256> kBase64 = base64_values();

Error bad_content(std::string why) {
    return {.code = ErrorCode::corrupt, .message = "file content " + std::move(why)};
}

void append_utf8(std::uint32_t code, std::string& out) {
    const auto put = [&](std::uint32_t byte) {
        out += static_cast<char>(byte);
    };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0U | (code >> 6U));
        put(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
        put(0xE0U | (code >> 12U));
        put(0x80U | ((code >> 6U) & 0x3FU));
        put(0x80U | (code & 0x3FU));
    } else {
        put(0xF0U | (code >> 18U));
        put(0x80U | ((code >> 12U) & 0x3FU));
        put(0x80U | ((code >> 6U) & 0x3FU));
        put(0x80U | (code & 0x3FU));
    }
}

char simple_escape(char c) {
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case '"':
    case '\\':
    case '/':
        return c;
    default:
        return '\0';
    }
}

} // namespace

Result<void> Unescaper::take_unit(std::uint32_t unit, std::string& out) {
    const bool is_low = unit >= 0xDC00 && unit < 0xE000;
    if (is_low != (high_ != 0)) {
        return bad_content("holds half of a surrogate pair");
    }
    if (is_low) {
        append_utf8(0x10000U + ((high_ - 0xD800U) << 10U) + (unit - 0xDC00U), out);
        high_ = 0;
    } else if (unit >= 0xD800 && unit < 0xDC00) {
        high_ = unit;
    } else {
        append_utf8(unit, out);
    }
    return {};
}

Result<void> Unescaper::take_escape(std::string& out) {
    const char kind = pending_.size() > 1 ? pending_[1] : '\0';
    if (kind == 'u' && pending_.size() < 6) {
        return {};
    }
    if (kind != 'u') {
        const char plain = simple_escape(kind);
        if (plain == '\0' || high_ != 0) {
            return bad_content("holds a bad escape");
        }
        out += plain;
        pending_.clear();
        return {};
    }
    std::uint32_t unit = 0;
    for (const char c : std::string_view{pending_}.substr(2)) {
        const char lower = static_cast<char>(c | 0x20);
        if (c >= '0' && c <= '9') {
            unit = unit * 16 + static_cast<std::uint32_t>(c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            unit = unit * 16 + static_cast<std::uint32_t>(lower - 'a' + 10);
        } else {
            return bad_content("holds a bad escape");
        }
    }
    pending_.clear();
    return take_unit(unit, out);
}

Result<void> Unescaper::feed(std::string_view raw, std::string& out) {
    std::size_t i = 0;
    while (i < raw.size()) {
        if (!pending_.empty()) {
            pending_ += raw[i++];
            KB_TRY(take_escape(out));
            continue;
        }
        std::size_t end = i;
        while (end < raw.size() && raw[end] != '\\' &&
               static_cast<unsigned char>(raw[end]) >= 0x20) {
            ++end;
        }
        if (end > i && high_ != 0) {
            return bad_content("holds half of a surrogate pair");
        }
        out.append(raw.substr(i, end - i));
        i = end;
        if (i < raw.size()) {
            if (raw[i] != '\\') {
                return bad_content("holds a control character");
            }
            pending_ = raw[i++];
        }
    }
    return {};
}

Result<void> Unescaper::finish() const {
    if (!pending_.empty() || high_ != 0) {
        return bad_content("ends inside an escape");
    }
    return {};
}

namespace {

/// Decodes groups of four letters without padding from the start of `text`; how many letters.
std::size_t decode_whole_groups(std::string_view text, std::string& out) {
    const std::size_t before = out.size();
    out.resize(before + text.size() / 4 * 3);
    char* to = out.data() + before;
    std::size_t at = 0;
    for (; at + 4 <= text.size(); at += 4) {
        std::array<std::int32_t, 4> value{};
        for (std::size_t k = 0; k < 4; ++k) {
            value[k] = kBase64[static_cast<unsigned char>(text[at + k])];
        }
        if ((value[0] | value[1] | value[2] | value[3]) < 0) { // kNone is the only negative one
            break;
        }
        const auto bits =
            static_cast<std::uint32_t>(value[0] << 18 | value[1] << 12 | value[2] << 6 | value[3]);
        *to++ = static_cast<char>(bits >> 16U & 0xFFU);
        *to++ = static_cast<char>(bits >> 8U & 0xFFU);
        *to++ = static_cast<char>(bits & 0xFFU);
    }
    out.resize(before + at / 4 * 3);
    return at;
}

} // namespace

bool Base64Decoder::feed(std::string_view text, std::string& out) {
    if (filled_ == 0 && padding_ == 0 && !over_) {
        text.remove_prefix(decode_whole_groups(text, out));
    }
    for (const char c : text) {
        const std::int8_t value = kBase64[static_cast<unsigned char>(c)];
        if (over_ || (value == kNone && (c != '=' || filled_ < 2)) ||
            (value != kNone && padding_ > 0)) {
            return false;
        }
        padding_ += c == '=' ? 1 : 0;
        bits_ = (bits_ << 6U) | static_cast<std::uint32_t>(value == kNone ? 0 : value);
        if (++filled_ < 4) {
            continue;
        }
        const unsigned spare = padding_ == 2 ? 0xFFFFU : (padding_ == 1 ? 0xFFU : 0U);
        if ((bits_ & spare) != 0) {
            return false; // bits that nobody sees: one content has one spelling
        }
        const std::array<char, 3> bytes{static_cast<char>((bits_ >> 16U) & 0xFFU),
                                        static_cast<char>((bits_ >> 8U) & 0xFFU),
                                        static_cast<char>(bits_ & 0xFFU)};
        out.append(bytes.data(), 3 - padding_);
        over_ = padding_ > 0;
        filled_ = 0;
        bits_ = 0;
    }
    return true;
}

Result<void> ContentDecoder::replay_as_plain() {
    mode_ = Mode::plain;
    KB_TRY(output_.restart());
    KB_TRY(output_.bytes(kept_));
    kept_.clear();
    return {};
}

/// Passes text_ on.
Result<void> ContentDecoder::take_text() {
    if (mode_ == Mode::plain) {
        return output_.bytes(text_);
    }
    decoded_.clear();
    const bool is_base64 = base64_.feed(text_, decoded_);
    if (mode_ == Mode::maybe_base64) {
        kept_ += text_;
        if (!is_base64) {
            return replay_as_plain();
        }
        if (kept_.size() > kMaxKept) {
            mode_ = Mode::base64;
            kept_.clear();
            kept_.shrink_to_fit();
        }
    } else if (!is_base64) {
        return bad_content("is not base64");
    }
    return output_.bytes(decoded_);
}

Result<void> ContentDecoder::feed(std::string_view raw_json) {
    constexpr std::size_t kPiece = 256UL << 10U;
    begun_ = true;
    while (!raw_json.empty()) {
        const std::string_view piece = raw_json.substr(0, kPiece);
        raw_json.remove_prefix(piece.size());
        text_.clear();
        KB_TRY(unescaper_.feed(piece, text_));
        KB_TRY(take_text());
    }
    return {};
}

Result<void> ContentDecoder::finish(std::string_view encoding) {
    KB_TRY(unescaper_.finish());
    if (encoding == "base64") {
        if (mode_ == Mode::plain || !base64_.finish()) {
            return bad_content("is not base64");
        }
    } else if (encoding == "utf-8" || encoding == "utf8") {
        if (mode_ == Mode::base64) {
            return bad_content(fmt::format("over {} bytes must be sent as base64", kMaxKept));
        }
        if (mode_ == Mode::maybe_base64) {
            KB_TRY(replay_as_plain());
        }
    } else {
        return bad_content("has an unknown encoding, expected 'base64' or 'utf-8'");
    }
    reset();
    return {};
}

Result<void> ContentDecoder::drop() {
    const bool begun = begun_;
    reset();
    return begun ? output_.restart() : Result<void>{};
}

void ContentDecoder::reset() {
    unescaper_ = {};
    base64_ = {};
    mode_ = Mode::maybe_base64;
    begun_ = false;
    kept_.clear();
}

} // namespace kb::hub
