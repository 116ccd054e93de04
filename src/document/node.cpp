// SPDX-License-Identifier: Apache-2.0
#include "document/node.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <limits>

namespace kb::document {

namespace {

constexpr auto kSignedMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

} // namespace

Node::Node() = default;

Node::Node(bool value) : value_{value} {}

Node::Node(std::int64_t value) : value_{value} {}

Node::Node(int value) : value_{static_cast<std::int64_t>(value)} {}

Node::Node(unsigned value) : value_{static_cast<std::int64_t>(value)} {}

// One number has one representation, so that equal numbers are equal nodes.
Node::Node(std::uint64_t value) {
    if (value <= kSignedMax) {
        value_ = static_cast<std::int64_t>(value);
    } else {
        value_ = value;
    }
}

Node::Node(double value) : value_{value} {}

Node::Node(std::string value) : value_{std::move(value)} {}

Node::Node(std::string_view value) : value_{std::string{value}} {}

Node::Node(const char* value) : value_{std::string{value}} {}

Node::Node(Array value) : value_{std::move(value)} {}

Node Node::table(std::initializer_list<std::pair<std::string_view, Node>> entries) {
    Node out;
    out.value_ = Table{};
    for (const auto& [key, value] : entries) {
        out.set(key, value);
    }
    return out;
}

Node Node::array() {
    return Node{Array{}};
}

Node Node::strings(const std::vector<std::string>& values) {
    Array items;
    items.reserve(values.size());
    for (const std::string& value : values) {
        items.emplace_back(value);
    }
    return Node{std::move(items)};
}

Node Node::datetime(std::string text) {
    Node out;
    out.value_ = Datetime{std::move(text)};
    return out;
}

Node::Kind Node::kind() const {
    // By alternative; both integer types are one kind.
    static constexpr Kind kKinds[] = {Kind::null,
                                      Kind::boolean,
                                      Kind::integer,
                                      Kind::integer,
                                      Kind::floating,
                                      Kind::string,
                                      Kind::datetime,
                                      Kind::array,
                                      Kind::table};
    static_assert(std::variant_size_v<decltype(value_)> == std::size(kKinds));
    return kKinds[value_.index()];
}

std::string_view Node::kind_text() const {
    switch (kind()) {
    case Kind::null:
        return "null";
    case Kind::boolean:
        return "a boolean";
    case Kind::integer:
        return "an integer";
    case Kind::floating:
        return "a floating-point number";
    case Kind::string:
        return "a string";
    case Kind::datetime:
        return "a date or time";
    case Kind::array:
        return "an array";
    case Kind::table:
        return "a table";
    }
    return "a value";
}

bool Node::as_bool() const {
    const auto* value = std::get_if<bool>(&value_);
    KB_ASSERT(value != nullptr, "as_bool() is asked of a boolean");
    return *value;
}

std::int64_t Node::as_int() const {
    const auto* value = std::get_if<std::int64_t>(&value_);
    KB_ASSERT(value != nullptr, "as_int() is asked of an integer that fits");
    return *value;
}

bool Node::is_unsigned() const {
    const auto* value = std::get_if<std::int64_t>(&value_);
    return std::holds_alternative<std::uint64_t>(value_) || (value != nullptr && *value >= 0);
}

std::uint64_t Node::as_unsigned() const {
    KB_ASSERT(is_unsigned(), "as_unsigned() is asked of an integer >= 0");
    const auto* big = std::get_if<std::uint64_t>(&value_);
    return big != nullptr ? *big : static_cast<std::uint64_t>(as_int());
}

double Node::as_double() const {
    const auto* value = std::get_if<double>(&value_);
    KB_ASSERT(value != nullptr, "as_double() is asked of a floating-point number");
    return *value;
}

const std::string& Node::as_string() const {
    if (const auto* date = std::get_if<Datetime>(&value_)) {
        return date->text;
    }
    const auto* value = std::get_if<std::string>(&value_);
    KB_ASSERT(value != nullptr, "as_string() is asked of a string, a date or a time");
    return *value;
}

const Node::Array& Node::as_array() const {
    const auto* value = std::get_if<Array>(&value_);
    KB_ASSERT(value != nullptr, "as_array() is asked of an array");
    return *value;
}

Node::Array& Node::as_array() {
    auto* value = std::get_if<Array>(&value_);
    KB_ASSERT(value != nullptr, "as_array() is asked of an array");
    return *value;
}

const Node::Table& Node::entries() const {
    const auto* value = std::get_if<Table>(&value_);
    KB_ASSERT(value != nullptr, "entries() is asked of a table");
    return *value;
}

Node::Table& Node::entries() {
    auto* value = std::get_if<Table>(&value_);
    KB_ASSERT(value != nullptr, "entries() is asked of a table");
    return *value;
}

const Node* Node::find(std::string_view key) const {
    const auto* table = std::get_if<Table>(&value_);
    if (table == nullptr) {
        return nullptr;
    }
    const auto found = std::ranges::find(*table, key, &Entry::key);
    return found == table->end() ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) {
    return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

Node& Node::set(std::string_view key, Node value) {
    if (is(Kind::null)) {
        value_ = Table{};
    }
    if (Node* existing = find(key)) {
        *existing = std::move(value);
        return *existing;
    }
    Table& table = entries();
    table.push_back(Entry{.key = std::string{key}, .value = std::move(value)});
    return table.back().value;
}

Node& Node::push(Node value) {
    if (is(Kind::null)) {
        value_ = Array{};
    }
    Array& items = as_array();
    items.push_back(std::move(value));
    return items.back();
}

std::string Node::text_or(std::string_view key, std::string_view otherwise) const {
    const Node* found = find(key);
    return std::string{found != nullptr && found->is_string() ? std::string_view{found->as_string()}
                                                              : otherwise};
}

bool Node::operator==(const Node& other) const {
    return value_ == other.value_;
}

} // namespace kb::document
