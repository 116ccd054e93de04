// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/diagnostics.hpp"
#include "base/result.hpp"
#include "cli/services.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::cli {

/// What a user may set once for all projects. Order: flag, environment (KERNEL_BUILDER_*),
/// config.toml, default.
struct Settings {
    sys::Path store{};                           ///< store directory; ccache lies beside it
    std::optional<std::uint64_t> jobs{};         ///< parallel compilers
    std::optional<std::uint64_t> memory_bytes{}; ///< memory that builds may use together
    std::string sandbox = "namespaces";          ///< wanted and minimum level
    std::string executor = "local";
    std::optional<std::string> endpoint{};    ///< registry, without a token
    std::vector<std::string> extra_indexes{}; ///< more package indexes for torch flavours
    /// Where archives, git repositories and conda channels are read ([sources]).
    std::map<std::string, std::string> sources{};
    bool offline = false;
};

/// Flags that stand above everything; empty members mean "not given".
struct SettingFlags {
    std::optional<std::string> store{};
    std::optional<std::uint64_t> jobs{};
    std::optional<std::string> memory{};
    std::optional<std::string> sandbox{};
    bool offline = false;
};

/// Reads the configuration file and the environment. Mistakes in the file or in a variable are
/// diagnostics that name it. Without --store, KERNEL_BUILDER_STORE, a configured store,
/// XDG_CACHE_HOME and HOME there is no store: the error lists these.
std::optional<Settings>
read_settings(const SettingFlags& flags, const Services& services, Diagnostics& diagnostics);

/// "8G", "512M", "1024" (bytes): binary units K M G T.
[[nodiscard]] std::optional<std::uint64_t> parse_memory(std::string_view text);

} // namespace kb::cli
