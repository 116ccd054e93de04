// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kb::hub {

/// JSON string escapes to bytes, piece by piece. `corrupt` for a bad escape, a lone surrogate or a
/// control character.
class Unescaper {
public:
    /// Appends to `out`.
    [[nodiscard]] Result<void> feed(std::string_view raw, std::string& out);
    /// An error when an escape or a surrogate pair is unfinished.
    [[nodiscard]] Result<void> finish() const;

private:
    Result<void> take_escape(std::string& out);
    Result<void> take_unit(std::uint32_t unit, std::string& out);

    std::string pending_{}; ///< "", or "\", "\u", "\u1" ...
    std::uint32_t high_ = 0;
};

/// Strict base64 (RFC 4648 section 4) piece by piece.
class Base64Decoder {
public:
    /// False at the first character that is none; `out` then holds nothing of use.
    [[nodiscard]] bool feed(std::string_view text, std::string& out);

    /// False when a group of four is unfinished.
    [[nodiscard]] bool finish() const { return filled_ == 0; }

private:
    std::uint32_t bits_ = 0;
    unsigned filled_ = 0;
    unsigned padding_ = 0;
    bool over_ = false;
};

/// The content of one file operation, whose encoding may become known only after it. Takes it for
/// base64 while that is possible; keeps the text as long as it is short, so that it can be given
/// again when it turns out to be plain.
class ContentDecoder {
public:
    struct Output {
        std::function<Result<void>(std::string_view)> bytes{};
        std::function<Result<void>()> restart{};
    };

    explicit ContentDecoder(Output output) : output_{std::move(output)} {}

    [[nodiscard]] Result<void> feed(std::string_view raw_json);
    /// Ends the content; `encoding` is "base64" or "utf-8". Ready for the next content after it.
    [[nodiscard]] Result<void> finish(std::string_view encoding);
    /// Forgets content that belongs to nothing.
    [[nodiscard]] Result<void> drop();

    [[nodiscard]] bool has_content() const { return begun_; }

private:
    enum class Mode : std::uint8_t { maybe_base64, base64, plain };

    Result<void> take_text();
    Result<void> replay_as_plain();
    void reset();

    Output output_;
    Unescaper unescaper_{};
    Base64Decoder base64_{};
    Mode mode_ = Mode::maybe_base64;
    bool begun_ = false;
    std::string text_{}; ///< Unescaped piece at hand.
    std::string kept_{}; ///< All text so far, in mode maybe_base64.
    std::string decoded_{};
};

} // namespace kb::hub
