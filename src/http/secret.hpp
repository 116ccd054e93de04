// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kb::http {

/// A token or password. Nothing formats, compares or streams it; the text is wiped when it goes.
/// `reveal()` is for the one place that writes it on the wire.
class Secret {
public:
    Secret() = default;

    explicit Secret(std::string text) : text_{std::move(text)} {}

    ~Secret();
    Secret(const Secret&) = default;
    Secret(Secret&& other) noexcept;
    Secret& operator=(const Secret& other);
    Secret& operator=(Secret&& other) noexcept;

    [[nodiscard]] const std::string& reveal() const { return text_; }

    [[nodiscard]] bool empty() const { return text_.empty(); }

private:
    void wipe() noexcept;

    std::string text_;
};

/// `text` with every occurrence of the secret replaced by "***": for foreign text (an answer, a
/// log) that may echo it.
[[nodiscard]] std::string without_secret(std::string_view text, const Secret& secret);

} // namespace kb::http
