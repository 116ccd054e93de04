// SPDX-License-Identifier: Apache-2.0
#include "digest/signature.hpp"

#include "digest/digest.hpp"
#include "support/catch.hpp"

namespace kb::digest {
namespace {

// RFC 8032, section 7.1, test 2: the secret key with the prefix of PKCS #8, the public key with
// that of SubjectPublicKeyInfo, the message 0x72 and its signature.
constexpr std::string_view kPrivate =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
    "-----END PRIVATE KEY-----\n";

TEST_CASE("a signature is that of the standard's test vector", "[digest][signature]") {
    const Result<std::string> signature = sign(kPrivate, "r");
    REQUIRE(signature);
    CHECK(
        to_base64(as_bytes(*signature)) ==
        "kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==");
    const Result<std::string> half = public_key_of(kPrivate);
    REQUIRE(half);
    CHECK(half->find("MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=") !=
          std::string::npos);
    CHECK(verify(*half, "r", *signature));
}

TEST_CASE("a signature holds for its key and message only", "[digest][signature]") {
    const SigningKey key = make_signing_key().value();
    const SigningKey other = make_signing_key().value();
    const std::string signature = sign(key.private_pem, "what was built").value();
    CHECK(signature.size() == 64);
    CHECK(public_key_of(key.private_pem).value() == key.public_pem);
    CHECK(verify(key.public_pem, "what was built", signature));
    CHECK(verify(key.public_pem, "what was Built", signature).error().code == ErrorCode::denied);
    CHECK(verify(other.public_pem, "what was built", signature).error().code == ErrorCode::denied);
    CHECK_FALSE(verify(key.public_pem, "what was built", signature.substr(1)));
    CHECK_FALSE(verify(key.public_pem, "what was built", ""));
    CHECK(key_id(key.public_pem).value().size() == 64);
    CHECK(key_id(key.public_pem).value() != key_id(other.public_pem).value());
}

TEST_CASE("what is no key is an error that says how to get one", "[digest][signature]") {
    const SigningKey key = make_signing_key().value();
    const std::string text = GENERATE_COPY(values<std::string>(
        {"",
         "no key",
         "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
         "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGb\n-----END ENCRYPTED PRIVATE KEY-----\n"}));
    CAPTURE(text);
    const Result<std::string> result = sign(text, "x");
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::corrupt);
    CHECK(result.error().message.find("--new-key") != std::string::npos);
    CHECK_FALSE(verify(text, "x", "y"));
    CHECK_FALSE(sign(key.public_pem, "x"));
    CHECK_FALSE(verify(key.private_pem, "x", "y"));
}

} // namespace
} // namespace kb::digest
