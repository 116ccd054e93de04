// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http/client.hpp"

#include <functional>
#include <memory>
#include <string>

namespace kb::http {

struct CurlOptions {
    std::string user_agent = "kernel-builder";
    /// PEM file of trusted authorities; "" trusts what the system does.
    std::string ca_bundle{};
    /// Asked about once a second and at each piece; true ends every request as `cancelled`.
    std::function<bool()> cancelled{};
    unsigned max_redirects = 8;
};

/// The real client, over libcurl: HTTP/1.1, connections kept and used again, bodies streamed from
/// files in large reads, no waiting for "100 Continue". Proxies come from the usual variables
/// (https_proxy, no_proxy ...), credentials of other hosts from ~/.netrc unless the request has a
/// bearer. Usable from several threads; a cancelled request leaves no connection behind.
[[nodiscard]] std::unique_ptr<HttpClient> make_curl_client(CurlOptions options = {});

} // namespace kb::http
