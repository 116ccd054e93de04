// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/span.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kb::document {

class Node;

/// A key and its value, in file order.
struct Entry;

/// One value of a TOML or JSON document, with the place of its key and of its value. Also the tree
/// that we build and write as JSON (then without places). Tables keep the order of insertion or of
/// the file; keys are unique.
class Node {
public:
    enum class Kind : std::uint8_t {
        null,
        boolean,
        integer,
        floating,
        string,
        datetime,
        array,
        table
    };
    using Array = std::vector<Node>;
    using Table = std::vector<Entry>;

    Node();
    Node(bool value);
    Node(std::int64_t value);
    Node(int value);
    Node(unsigned value);
    Node(std::uint64_t value);
    Node(double value);
    Node(std::string value);
    Node(std::string_view value);
    Node(const char* value);
    Node(Array value);
    [[nodiscard]] static Node
    table(std::initializer_list<std::pair<std::string_view, Node>> entries = {});
    [[nodiscard]] static Node array();
    [[nodiscard]] static Node strings(const std::vector<std::string>& values);
    /// A TOML date or time, kept as its text.
    [[nodiscard]] static Node datetime(std::string text);

    [[nodiscard]] Kind kind() const;

    [[nodiscard]] bool is(Kind kind) const { return this->kind() == kind; }

    [[nodiscard]] bool is_table() const { return is(Kind::table); }

    [[nodiscard]] bool is_array() const { return is(Kind::array); }

    [[nodiscard]] bool is_string() const { return is(Kind::string); }

    /// "a string", "an integer", ... for messages.
    [[nodiscard]] std::string_view kind_text() const;

    // Each aborts unless the node has that kind: ask first, or use Reader.
    [[nodiscard]] bool as_bool() const;
    /// For an integer above 2^63-1 use as_unsigned().
    [[nodiscard]] std::int64_t as_int() const;
    [[nodiscard]] std::uint64_t as_unsigned() const;
    /// True for an integer that is >= 0.
    [[nodiscard]] bool is_unsigned() const;
    [[nodiscard]] double as_double() const;
    /// Also the text of a date or time.
    [[nodiscard]] const std::string& as_string() const;
    [[nodiscard]] const Array& as_array() const;
    [[nodiscard]] Array& as_array();
    [[nodiscard]] const Table& entries() const;
    [[nodiscard]] Table& entries();

    /// The value of `key`, or nullptr when this is no table or has no such key.
    [[nodiscard]] const Node* find(std::string_view key) const;
    [[nodiscard]] Node* find(std::string_view key);
    /// Adds or replaces; makes a table of a null node.
    Node& set(std::string_view key, Node value);
    /// Appends; makes an array of a null node.
    Node& push(Node value);
    /// Text of a string member, or "" when absent or no string. For tolerant readers of foreign
    /// JSON.
    [[nodiscard]] std::string text_or(std::string_view key, std::string_view otherwise = {}) const;

    /// Where the value stands, and where its key stands (equal to `span` for array items and the
    /// root).
    Span span{};
    Span key_span{};

    /// Values only; places are not compared.
    bool operator==(const Node& other) const;

private:
    struct Datetime {
        std::string text{};
        bool operator==(const Datetime&) const = default;
    };

    std::variant<std::monostate,
                 bool,
                 std::int64_t,
                 std::uint64_t,
                 double,
                 std::string,
                 Datetime,
                 Array,
                 Table>
        value_;
};

struct Entry {
    std::string key{};
    Node value{};

    bool operator==(const Entry& other) const { return key == other.key && value == other.value; }
};

} // namespace kb::document
