// SPDX-License-Identifier: Apache-2.0
#include "digest/digest.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <type_traits>

namespace kb::digest {

namespace {

template <std::size_t N>
std::string to_hex(const std::array<std::uint8_t, N>& bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string hex;
    hex.reserve(2 * N);
    for (const std::uint8_t byte : bytes) {
        hex += kDigits[byte >> 4U];
        hex += kDigits[byte & 15U];
    }
    return hex;
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

template <std::size_t N>
Result<std::array<std::uint8_t, N>> from_hex_bytes(std::string_view hex) {
    std::array<std::uint8_t, N> out{};
    if (hex.size() != 2 * N) {
        return Error{
            .code = ErrorCode::corrupt,
            .message = fmt::format(
                "a digest of {} hex digits was expected, found {} characters", 2 * N, hex.size())};
    }
    for (std::size_t i = 0; i < N; ++i) {
        const int high = hex_value(hex[2 * i]);
        const int low = hex_value(hex[2 * i + 1]);
        if (high < 0 || low < 0) {
            return Error{
                .code = ErrorCode::corrupt,
                .message = fmt::format(
                    "a digest holds a character that is not a lower-case hex digit at position {}",
                    2 * i + 1)};
        }
        out.at(i) = static_cast<std::uint8_t>(high * 16 + low);
    }
    return out;
}

} // namespace

std::string Digest::hex() const {
    return to_hex(bytes);
}

std::string Digest::base64() const {
    return to_base64(std::as_bytes(std::span{bytes}));
}

Result<Digest> Digest::from_hex(std::string_view hex) {
    KB_TRY(const auto bytes, from_hex_bytes<32>(hex));
    return Digest{bytes};
}

std::string Sha1Digest::hex() const {
    return to_hex(bytes);
}

Result<Sha1Digest> Sha1Digest::from_hex(std::string_view hex) {
    KB_TRY(const auto bytes, from_hex_bytes<20>(hex));
    return Sha1Digest{bytes};
}

template <typename Value>
struct Hasher<Value>::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    ~State() { EVP_MD_CTX_free(context); }
};

/// Looked up once: for a short text the lookup costs as much as the hash.
template <typename Value>
const EVP_MD* algorithm_of() {
    static const EVP_MD* const algorithm =
        EVP_MD_fetch(nullptr, std::is_same_v<Value, Digest> ? "SHA256" : "SHA1", nullptr);
    return algorithm;
}

template <typename Value>
Hasher<Value>::Hasher() : state_{std::make_unique<State>()} {
    const EVP_MD* algorithm = algorithm_of<Value>();
    KB_ASSERT(algorithm != nullptr && state_->context != nullptr &&
                  EVP_DigestInit_ex(state_->context, algorithm, nullptr) == 1,
              "libcrypto has SHA-1 and SHA-256");
}

template <typename Value>
Hasher<Value>::~Hasher() = default;
template <typename Value>
Hasher<Value>::Hasher(Hasher&&) noexcept = default;
template <typename Value>
Hasher<Value>& Hasher<Value>::operator=(Hasher&&) noexcept = default;

template <typename Value>
void Hasher<Value>::update(Bytes bytes) {
    KB_ASSERT(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1,
              "hashing memory cannot fail");
}

template <typename Value>
Value Hasher<Value>::finish() {
    Value value;
    KB_ASSERT(EVP_DigestFinal_ex(state_->context, value.bytes.data(), nullptr) == 1,
              "a hash is finished once");
    return value;
}

template class Hasher<Digest>;
template class Hasher<Sha1Digest>;

Digest sha256(std::string_view bytes) {
    Sha256 hasher;
    hasher.update(bytes);
    return hasher.finish();
}

Sha1Digest sha1(std::string_view bytes) {
    Sha1 hasher;
    hasher.update(bytes);
    return hasher.finish();
}

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::array<std::int8_t, 256> make_reverse() {
    std::array<std::int8_t, 256> table{};
    table.fill(-1);
    for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
        table.at(static_cast<unsigned char>(kAlphabet[i])) = static_cast<std::int8_t>(i);
    }
    return table;
}

} // namespace

std::string to_base64(Bytes bytes) {
    // Filled in place: a commit of small files is base64 for the most part.
    std::string out((bytes.size() + 2) / 3 * 4, '=');
    const auto byte = [&bytes](std::size_t i) {
        return std::to_integer<std::uint32_t>(bytes[i]);
    };
    const std::size_t whole = bytes.size() / 3 * 3;
    std::size_t at = 0;
    for (std::size_t i = 0; i < whole; i += 3, at += 4) {
        const std::uint32_t group = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
        out[at] = kAlphabet[group >> 18U];
        out[at + 1] = kAlphabet[group >> 12U & 63U];
        out[at + 2] = kAlphabet[group >> 6U & 63U];
        out[at + 3] = kAlphabet[group & 63U];
    }
    const std::size_t rest = bytes.size() - whole;
    if (rest != 0) {
        const std::uint32_t group = byte(whole) << 16U | (rest == 2 ? byte(whole + 1) << 8U : 0U);
        out[at] = kAlphabet[group >> 18U];
        out[at + 1] = kAlphabet[group >> 12U & 63U];
        if (rest == 2) {
            out[at + 2] = kAlphabet[group >> 6U & 63U];
        }
    }
    return out;
}

Result<std::string> from_base64(std::string_view text) {
    static const std::array<std::int8_t, 256> kReverse = make_reverse();
    const Error bad{.code = ErrorCode::corrupt, .message = "the text is not base64"};
    if (text.size() % 4 != 0) {
        return bad;
    }
    const std::size_t padding = text.ends_with("==") ? 2 : (text.ends_with('=') ? 1 : 0);
    std::string out;
    out.reserve(text.size() / 4 * 3);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_padding = i + padding >= text.size();
        const int value = is_padding ? 0 : kReverse.at(static_cast<unsigned char>(text[i]));
        if (value < 0) {
            return bad;
        }
        group = group << 6U | static_cast<std::uint32_t>(value);
        if (i % 4 == 3) {
            out += static_cast<char>(group >> 16U & 255U);
            out += static_cast<char>(group >> 8U & 255U);
            out += static_cast<char>(group & 255U);
            group = 0;
        }
    }
    out.resize(out.size() - padding);
    if (to_base64(as_bytes(out)) !=
        text) { // non-zero bits under the padding: two spellings of one value
        return bad;
    }
    return out;
}

Digest hmac_sha256(std::string_view key, std::string_view message) {
    Digest out;
    unsigned int length = 0;
    const Bytes data = as_bytes(message);
    const unsigned char* done = HMAC(EVP_sha256(),
                                     key.data(),
                                     static_cast<int>(key.size()),
                                     reinterpret_cast<const unsigned char*>(data.data()),
                                     data.size(),
                                     out.bytes.data(),
                                     &length);
    KB_ASSERT(done != nullptr && length == out.bytes.size(), "HMAC over memory cannot fail");
    return out;
}

bool equal_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t n) {
    std::string out(n, '\0');
    KB_ASSERT(RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(n)) == 1,
              "the system has a secure generator");
    return out;
}

} // namespace kb::digest
