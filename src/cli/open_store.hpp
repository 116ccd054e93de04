// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.hpp"
#include "cli/settings.hpp"
#include "store/store.hpp"
#include "toolchain/toolchain.hpp"

#include <optional>

namespace kb::cli {

/// The settings of a command that works on the store; what is wrong with them is printed, and the
/// command ends with ExitCode::usage.
std::optional<Settings> settings_for(const SettingFlags& flags, const Services& services);
/// The store of these settings; the reason why it cannot be opened is printed, and the command ends
/// with ExitCode::toolchain.
std::optional<store::Store> open_store(const Settings& settings, const Services& services);

/// How these settings let files be fetched; nothing is told on the way yet.
[[nodiscard]] toolchain::FetchOptions fetch_options(const Settings& settings);

[[nodiscard]] toolchain::Machine machine_of(const Services& services);

} // namespace kb::cli
