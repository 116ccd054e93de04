// SPDX-License-Identifier: Apache-2.0
#include "http/secret.hpp"

#include "base/text.hpp"

#include <cstring>
#include <utility>

namespace kb::http {

Secret::~Secret() {
    wipe();
}

// A short text lives inside the string object, so that a plain move would leave it behind.
Secret::Secret(Secret&& other) noexcept : text_{std::move(other.text_)} {
    other.wipe();
}

Secret& Secret::operator=(const Secret& other) {
    if (this != &other) {
        wipe();
        text_ = other.text_;
    }
    return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
    if (this != &other) {
        wipe();
        text_ = std::move(other.text_);
        other.wipe();
    }
    return *this;
}

void Secret::wipe() noexcept {
    text_.resize(text_.capacity());
    ::explicit_bzero(text_.data(), text_.size());
    text_.clear();
}

std::string without_secret(std::string_view text, const Secret& secret) {
    return secret.empty() ? std::string{text} : replace_all(text, secret.reveal(), "***");
}

} // namespace kb::http
