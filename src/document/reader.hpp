// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "document/node.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::document {

/// A value with the place it was read from.
template <typename T>
struct Located {
    T value{};
    Span span{};

    bool operator==(const Located& other) const { return value == other.value; }
};

/// Walks one table and its children; records each problem with place and path and goes on. `path`
/// is what messages call the table: "[general]", "[kernel.main]".
class Reader {
public:
    Reader(const Node& table, std::string path, Diagnostics& diagnostics);

    /// Every getter reports a wrong type ("wrong-type") and returns nothing then; a missing key is
    /// silent in these ...
    [[nodiscard]] std::optional<Located<std::string>> string(std::string_view key);
    [[nodiscard]] std::optional<Located<std::uint64_t>> unsigned_integer(std::string_view key);
    [[nodiscard]] std::optional<Located<bool>> boolean(std::string_view key);
    /// Items of a wrong type are reported and left out.
    [[nodiscard]] std::optional<std::vector<Located<std::string>>> strings(std::string_view key);
    [[nodiscard]] const Node* table(std::string_view key);
    [[nodiscard]] const Node* array(std::string_view key);
    [[nodiscard]] const Node* any(std::string_view key) const;
    /// ... and reported ("missing-key") when listed here, at the place of the table.
    void require(std::span<const std::string_view> keys);
    void require(std::initializer_list<std::string_view> keys);
    /// Reports every key that is not in `known`, which is all keys that the table may have, with a
    /// suggestion ("unknown-key").
    void finish(std::span<const std::string_view> known);
    void finish(std::initializer_list<std::string_view> known);

    [[nodiscard]] const Node& node() const { return *node_; }

    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] Diagnostics& diagnostics() { return *diagnostics_; }

private:
    void wrong_type(const Node& found, std::string_view key, std::string_view expected);

    const Node* node_;
    std::string path_;
    Diagnostics* diagnostics_;
};

} // namespace kb::document
