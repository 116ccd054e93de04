// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kb::hub {

/// Takes what LineScanner finds.
class LineEvents {
public:
    virtual ~LineEvents() = default;
    /// Raw JSON text of the long string, escapes still in it.
    virtual Result<void> on_long_string(std::string_view raw) = 0;
    /// A whole line, in which the long string was replaced by "".
    virtual Result<void> on_line(std::string_view text) = 0;
};

/// Cuts a byte stream into JSON lines and lifts the string member value.content out of each, so
/// that no line has to be in memory. It follows only as much of JSON as that needs (strings,
/// escapes and nesting); whether a line is JSON at all is judged by whoever parses the text of
/// on_line().
class LineScanner {
public:
    LineScanner(LineEvents& events, std::uint64_t max_line)
        : events_{&events}, max_line_{max_line} {}

    /// `corrupt` when a line without its long string exceeds the limit; or an error of the events.
    [[nodiscard]] Result<void> feed(std::string_view bytes);
    /// Delivers an unfinished last line.
    [[nodiscard]] Result<void> finish();

private:
    enum class State : std::uint8_t { between, in_string, in_long_string };

    Result<std::size_t> take_long_string(std::string_view bytes);
    Result<void> take(char c);
    void take_in_string(char c);
    void open_string();
    [[nodiscard]] bool is_long_string_next() const;
    Result<void> end_line();

    LineEvents* events_;
    std::uint64_t max_line_;
    std::string line_{};
    State state_ = State::between;
    bool escaped_ = false;
    bool after_colon_ = false;
    std::uint64_t depth_ = 0;
    std::string string_{};    ///< The string being read, cut at 16 bytes: enough for a key.
    std::string top_key_{};   ///< Last string at depth 1 before a ':'.
    std::string inner_key_{}; ///< The same at depth 2.
};

} // namespace kb::hub
