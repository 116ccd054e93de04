// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kb::generate {

/// One function per language: `text` as one literal of it, which reads back as exactly `text`. Text
/// holds no NUL; what a language cannot spell is our bug.

/// "a\"b\;c" as a CMake quoted argument; `$`, `\`, `"` and `;` lose their meaning.
[[nodiscard]] std::string quote_cmake(std::string_view text);
/// The same for a place where the value is a whole list item already: `;` is escaped once more, so
/// that it survives being a member of a list.
[[nodiscard]] std::string quote_cmake_item(std::string_view text);
/// A path in a Ninja build or default line: `$`, space and `:` escaped. No line feed.
[[nodiscard]] std::string quote_ninja_path(std::string_view text);
/// The value of a Ninja variable: only `$` is special. No line feed.
[[nodiscard]] std::string quote_ninja_value(std::string_view text);
/// A POSIX shell word: bare when every character is harmless, else in single quotes.
[[nodiscard]] std::string quote_shell(std::string_view text);
/// A Python string literal in double quotes.
[[nodiscard]] std::string quote_python(std::string_view text);
/// A JSON string in double quotes; non-ASCII stays UTF-8.
[[nodiscard]] std::string quote_json(std::string_view text);
/// A TOML basic string in double quotes.
[[nodiscard]] std::string quote_toml(std::string_view text);
/// A C or C++ string literal in double quotes.
[[nodiscard]] std::string quote_c(std::string_view text);

} // namespace kb::generate
