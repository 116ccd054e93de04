// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http/server.hpp"
#include "registry/root.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace kb::registry {

enum class InsecureListen : std::uint8_t { refused, allowed };

struct ServeOptions {
    sys::Path root{};
    Settings settings{};
    /// Whether tokens may cross a network in clear text.
    InsecureListen insecure = InsecureListen::refused;
    /// Readable when the server is to stop; -1: never.
    int stop_descriptor = -1;
    /// Told once the socket listens: where to connect.
    std::function<void(const std::string& endpoint)> on_ready{};
    std::function<void(const http::AccessRecord&)> on_access{};
    std::function<void(const std::string&)> on_failure{};
};

/// Serves until told to stop. `denied` for an address that is not loopback, unless allowed, and for
/// a root that another process serves.
[[nodiscard]] Result<void>
serve(const ServeOptions& options, sys::FileSystem& fs, sys::Clock& clock);

} // namespace kb::registry
