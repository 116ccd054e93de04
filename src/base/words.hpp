// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb {

/// A list of words in one buffer, since a plan holds tens of thousands of command lines. A word is
/// any text, a list holds less than 4 GiB. Views of words live until the list changes.
class Words {
public:
    class Iterator {
    public:
        using iterator_concept = std::forward_iterator_tag;
        using iterator_category = std::input_iterator_tag;
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = std::string_view;

        Iterator() = default;

        Iterator(const Words* words, std::size_t at) : words_{words}, at_{at} {}

        std::string_view operator*() const { return (*words_)[at_]; }

        Iterator& operator++() {
            ++at_;
            return *this;
        }

        Iterator operator++(int) {
            Iterator before = *this;
            ++at_;
            return before;
        }

        bool operator==(const Iterator&) const = default;

    private:
        const Words* words_ = nullptr;
        std::size_t at_ = 0;
    };

    Words() = default;
    Words(std::initializer_list<std::string_view> words);
    explicit Words(const std::vector<std::string>& words);

    void reserve(std::size_t bytes, std::size_t words);

    void add(std::string_view word) { add("", word); }

    /// One word: both parts together, "-I" and a folder.
    void add(std::string_view begin, std::string_view rest);
    void add_all(std::span<const std::string> words);

    [[nodiscard]] std::size_t size() const { return ends_.size(); }

    [[nodiscard]] bool empty() const { return ends_.empty(); }

    /// `i` is less than size().
    [[nodiscard]] std::string_view operator[](std::size_t i) const {
        const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
        return std::string_view{text_}.substr(begin, ends_[i] - begin);
    }

    [[nodiscard]] Iterator begin() const { return {this, 0}; }

    [[nodiscard]] Iterator end() const { return {this, size()}; }

    /// The words one after another with `separator` between.
    [[nodiscard]] std::string joined(std::string_view separator) const;

    bool operator==(const Words&) const = default;

private:
    std::string text_;
    std::vector<std::uint32_t> ends_;
};

} // namespace kb
