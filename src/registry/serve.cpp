// SPDX-License-Identifier: Apache-2.0
#include "registry/serve.hpp"

#include "registry/app.hpp"

#include <fmt/format.h>

namespace kb::registry {

namespace {

/// How long the parts of an object wait for the others.
constexpr std::int64_t kUploadLifetime = 7 * 86'400;

} // namespace

Result<void> serve(const ServeOptions& options, sys::FileSystem& fs, sys::Clock& clock) {
    KB_TRY(const ListenAddress listen, parse_listen(options.settings.listen));
    std::shared_ptr<const http::TlsContext> tls;
    if (!options.settings.tls_certificate.empty()) {
        KB_TRY(tls,
               http::TlsContext::load(
                   {.certificate = (options.root / options.settings.tls_certificate).string(),
                    .key = (options.root / options.settings.tls_key).string()}));
    }
    if (!tls && !http::is_loopback(listen.address) && options.insecure == InsecureListen::refused) {
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format(
                         "'{}' is not a loopback address and there is no certificate: set "
                         "'tls-certificate' and 'tls-key' in registry.toml, listen on 127.0.0.1 "
                         "behind a proxy that speaks TLS, or say --insecure-listen",
                         listen.address)};
    }
    KB_TRY(OpenedRoot root, open_root(fs, options.root, RootUse::serve));
    KB_TRY(
        sweep_parts(fs, RootPaths{options.root}.parts(), clock.unix_seconds() - kUploadLifetime));
    KB_TRY(sweep_xorbs(fs, RootPaths{options.root}.xorbs(), clock.unix_seconds() - kXorbLifetime));
    KB_TRY(std::string key, root.meta->signing_key());
    KB_TRY(const auto server,
           http::HttpServer::listen({.address = listen.address,
                                     .port = listen.port,
                                     .workers = options.settings.workers,
                                     .tls = tls,
                                     .on_access = options.on_access}));
    Service service{{.meta = *root.meta,
                     .blobs = *root.blobs,
                     .fs = fs,
                     .clock = clock,
                     .settings = options.settings,
                     .temporary = RootPaths{options.root}.temporary(),
                     .parts = RootPaths{options.root}.parts(),
                     .xorbs = RootPaths{options.root}.xorbs(),
                     .signing_key = std::move(key)}};
    const std::string base =
        options.settings.public_url.empty() ? server->endpoint() : options.settings.public_url;
    App app{service, {.base_url = base, .on_failure = options.on_failure}};
    if (options.on_ready) {
        options.on_ready(server->endpoint());
    }
    return server->run(app, options.stop_descriptor);
}

} // namespace kb::registry
