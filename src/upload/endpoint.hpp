// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "http/secret.hpp"
#include "http/url.hpp"
#include "sys/environment.hpp"
#include "sys/file_system.hpp"

#include <optional>
#include <string>

namespace kb::upload {

/// Where to publish, and who says so ("--endpoint", "HF_ENDPOINT", "config.toml").
struct Endpoint {
    http::Url url;
    std::string source{};
};

struct EndpointWishes {
    std::optional<std::string> flag{};
    std::optional<std::string> config{};
};

/// Flag, HF_ENDPOINT, configuration file; there is no built-in host, so none of them is an error
/// that names all three.
[[nodiscard]] Result<Endpoint> find_endpoint(const EndpointWishes& wishes,
                                             const sys::EnvironmentMap& environment);

/// A token and where it was found ("HF_TOKEN", "file '/home/u/.cache/huggingface/token'").
struct Token {
    http::Secret secret{};
    std::string source{};
};

/// HF_TOKEN, HUGGING_FACE_HUB_TOKEN, then the file HF_TOKEN_PATH, else $HF_HOME/token, else
/// $XDG_CACHE_HOME/huggingface/token, else ~/.cache/huggingface/token; white space around it is
/// cut. Nothing: no token anywhere, or HF_HUB_DISABLE_IMPLICIT_TOKEN is set. A file that is there
/// but cannot be read is an error.
[[nodiscard]] Result<std::optional<Token>> find_token(const sys::EnvironmentMap& environment,
                                                      sys::FileSystem& fs);

/// A token over unencrypted http to another machine can be read on the way: one line to show, or
/// nothing.
[[nodiscard]] std::optional<std::string> cleartext_warning(const http::Url& endpoint);

} // namespace kb::upload
