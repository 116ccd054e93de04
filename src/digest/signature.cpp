// SPDX-License-Identifier: Apache-2.0
#include "digest/signature.hpp"

#include "digest/digest.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <memory>

namespace kb::digest {

namespace {

struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

    void operator()(BIO* bio) const { BIO_free_all(bio); }
};

using Key = std::unique_ptr<EVP_PKEY, Free>;
using Context = std::unique_ptr<EVP_MD_CTX, Free>;
using Bio = std::unique_ptr<BIO, Free>;
constexpr std::size_t kSignatureBytes = 64;

Error not_a_key(std::string_view what) {
    ERR_clear_error();
    return {.code = ErrorCode::corrupt,
            .message = std::string{"it holds no "}.append(what).append(
                " of Ed25519 in PEM form; 'kernel-builder sign --new-key' makes one")};
}

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

Bio reader(std::string_view text) {
    return Bio{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

std::string text_of(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string{};
}

/// For encrypted keys OpenSSL would ask on the terminal; we say that there is no pass phrase.
int no_passphrase(char*, int, int, void*) {
    return -1;
}

Result<Key> read_private(std::string_view pem) {
    const Bio in = reader(pem);
    Key key{PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr)};
    if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) {
        return not_a_key("unencrypted private key");
    }
    return key;
}

Result<Key> read_public(std::string_view pem) {
    const Bio in = reader(pem);
    Key key{PEM_read_bio_PUBKEY(in.get(), nullptr, no_passphrase, nullptr)};
    if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) {
        return not_a_key("public key");
    }
    return key;
}

Result<std::string> write_public(EVP_PKEY* key) {
    const Bio out{BIO_new(BIO_s_mem())};
    if (PEM_write_bio_PUBKEY(out.get(), key) != 1) {
        return Error{.code = ErrorCode::internal, .message = "a public key could not be written"};
    }
    return text_of(out.get());
}

} // namespace

Result<SigningKey> make_signing_key() {
    const Key key{EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")};
    const Bio out{BIO_new(BIO_s_mem())};
    if (!key || PEM_write_bio_PKCS8PrivateKey(
                    out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
        ERR_clear_error();
        return Error{.code = ErrorCode::internal,
                     .message = "the system's OpenSSL makes no Ed25519 keys"};
    }
    KB_TRY(std::string public_pem, write_public(key.get()));
    return SigningKey{.private_pem = text_of(out.get()), .public_pem = std::move(public_pem)};
}

Result<std::string> sign(std::string_view private_pem, std::string_view message) {
    KB_TRY(const Key key, read_private(private_pem));
    const Context context{EVP_MD_CTX_new()};
    std::array<unsigned char, kSignatureBytes> out{};
    std::size_t size = out.size();
    if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
        EVP_DigestSign(context.get(), out.data(), &size, bytes_of(message), message.size()) != 1) {
        ERR_clear_error();
        return Error{.code = ErrorCode::internal, .message = "signing failed in OpenSSL"};
    }
    return std::string{reinterpret_cast<const char*>(out.data()), size};
}

Result<std::string> public_key_of(std::string_view private_pem) {
    KB_TRY(const Key key, read_private(private_pem));
    return write_public(key.get());
}

Result<void>
verify(std::string_view public_pem, std::string_view message, std::string_view signature) {
    KB_TRY(const Key key, read_public(public_pem));
    const Context context{EVP_MD_CTX_new()};
    if (EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
        EVP_DigestVerify(context.get(),
                         bytes_of(signature),
                         signature.size(),
                         bytes_of(message),
                         message.size()) == 1) {
        return {};
    }
    ERR_clear_error();
    return Error{.code = ErrorCode::denied, .message = "the signature is not of this key"};
}

Result<std::string> key_id(std::string_view public_pem) {
    KB_TRY(const Key key, read_public(public_pem));
    const Bio out{BIO_new(BIO_s_mem())};
    if (i2d_PUBKEY_bio(out.get(), key.get()) != 1) {
        return Error{.code = ErrorCode::internal, .message = "a public key could not be written"};
    }
    return sha256(text_of(out.get())).hex();
}

} // namespace kb::digest
