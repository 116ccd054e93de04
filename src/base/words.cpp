// SPDX-License-Identifier: Apache-2.0
#include "base/words.hpp"

namespace kb {

Words::Words(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
        add(word);
    }
}

Words::Words(const std::vector<std::string>& words) {
    add_all(words);
}

void Words::reserve(std::size_t bytes, std::size_t words) {
    text_.reserve(bytes);
    ends_.reserve(words);
}

void Words::add(std::string_view begin, std::string_view rest) {
    text_.append(begin).append(rest);
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
}

void Words::add_all(std::span<const std::string> words) {
    for (const std::string& word : words) {
        add(word);
    }
}

std::string Words::joined(std::string_view separator) const {
    std::string text;
    text.reserve(text_.size() + size() * separator.size());
    for (std::size_t i = 0; i < size(); ++i) {
        text.append(i == 0 ? "" : separator).append((*this)[i]);
    }
    return text;
}

} // namespace kb
