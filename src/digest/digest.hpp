// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kb::digest {

/// A SHA-256 value. Prints as 64 lower-case hex digits.
struct Digest {
    std::array<std::uint8_t, 32> bytes{};

    [[nodiscard]] std::string hex() const;
    /// Standard base64 with padding (44 characters), as metadata.json's `digest` writes it.
    [[nodiscard]] std::string base64() const;
    /// Exactly 64 hex digits; upper case is refused, so that one digest has one spelling.
    [[nodiscard]] static Result<Digest> from_hex(std::string_view hex);
    auto operator<=>(const Digest&) const = default;
};

/// A SHA-1 value, for git object ids only.
struct Sha1Digest {
    std::array<std::uint8_t, 20> bytes{};

    [[nodiscard]] std::string hex() const;
    [[nodiscard]] static Result<Sha1Digest> from_hex(std::string_view hex);
    auto operator<=>(const Sha1Digest&) const = default;
};

/// Streaming hash: update() any number of times, then finish() once. Movable, not copyable; one
/// thread.
template <typename Value>
class Hasher {
public:
    Hasher();
    ~Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;
    Hasher(const Hasher&) = delete;
    Hasher& operator=(const Hasher&) = delete;

    void update(Bytes bytes);

    void update(std::string_view text) { update(as_bytes(text)); }

    [[nodiscard]] Value finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

using Sha256 = Hasher<Digest>;
using Sha1 = Hasher<Sha1Digest>;
extern template class Hasher<Digest>;
extern template class Hasher<Sha1Digest>;

[[nodiscard]] Digest sha256(std::string_view bytes);
[[nodiscard]] Sha1Digest sha1(std::string_view bytes);

/// Standard base64 with padding (RFC 4648 section 4).
[[nodiscard]] std::string to_base64(Bytes bytes);
/// Strict: alphabet and padding are checked, white space is refused.
[[nodiscard]] Result<std::string> from_base64(std::string_view text);
/// HMAC-SHA-256 (RFC 2104).
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view message);
/// Compares without an early exit, for secrets.
[[nodiscard]] bool equal_constant_time(std::string_view a, std::string_view b);
/// `n` bytes of the system's secure generator: the one impure function here; secrets only.
[[nodiscard]] std::string random_bytes(std::size_t n);

} // namespace kb::digest
