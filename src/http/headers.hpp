// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::http {

struct Header {
    std::string name{};
    std::string value{};

    bool operator==(const Header&) const = default;
};

/// Header fields in order. Names compare without case, values are kept as they came.
class Headers {
public:
    Headers() = default;

    Headers(std::initializer_list<Header> fields) : fields_{fields} {}

    void add(std::string name, std::string value) {
        fields_.push_back({.name = std::move(name), .value = std::move(value)});
    }

    /// Replaces all fields of that name by one.
    void set(std::string name, std::string value);
    void remove(std::string_view name);
    /// The first field of that name.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;

    [[nodiscard]] std::string text_or(std::string_view name,
                                      std::string_view otherwise = {}) const {
        return std::string{find(name).value_or(otherwise)};
    }

    [[nodiscard]] std::size_t count(std::string_view name) const;

    [[nodiscard]] const std::vector<Header>& fields() const { return fields_; }

    [[nodiscard]] bool empty() const { return fields_.empty(); }

    void clear() { fields_.clear(); }

private:
    std::vector<Header> fields_;
};

/// A name is a token of RFC 9110; a value holds no control character but tab, so that no text can
/// start a new field.
[[nodiscard]] bool is_header_name(std::string_view name);
[[nodiscard]] bool is_header_value(std::string_view value);

} // namespace kb::http
