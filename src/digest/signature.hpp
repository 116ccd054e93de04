// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace kb::digest {

/// An Ed25519 key pair in PEM: PKCS #8 and SubjectPublicKeyInfo, as OpenSSL and cosign write them.
struct SigningKey {
    std::string private_pem{};
    std::string public_pem{};
};

/// A new key from the system's secure generator.
Result<SigningKey> make_signing_key();

/// 64 bytes over the message. `corrupt` when the text is no unencrypted Ed25519 key.
Result<std::string> sign(std::string_view private_pem, std::string_view message);

/// The public half of a private key, in PEM.
Result<std::string> public_key_of(std::string_view private_pem);

/// Success when the signature is that of the message by this key; `denied` when it is not,
/// `corrupt` when the text is no Ed25519 key.
Result<void>
verify(std::string_view public_pem, std::string_view message, std::string_view signature);

/// Name of a key: SHA-256 of its DER form, 64 hex digits.
Result<std::string> key_id(std::string_view public_pem);

} // namespace kb::digest
