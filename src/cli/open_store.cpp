// SPDX-License-Identifier: Apache-2.0
#include "cli/open_store.hpp"

#include "cli/render.hpp"

namespace kb::cli {

std::optional<Settings> settings_for(const SettingFlags& flags, const Services& services) {
    Diagnostics diagnostics;
    auto settings = read_settings(flags, services, diagnostics);
    render_diagnostics(diagnostics, {}, services.terminal);
    return settings;
}

std::optional<store::Store> open_store(const Settings& settings, const Services& services) {
    auto store = store::Store::open(services.fs, services.clock, settings.store);
    if (!store) {
        render_error(store.error(), services.terminal);
        return std::nullopt;
    }
    return *std::move(store);
}

toolchain::FetchOptions fetch_options(const Settings& settings) {
    return {.network = settings.offline ? toolchain::Network::offline : toolchain::Network::allowed,
            .sources = settings.sources,
            .extra_indexes = settings.extra_indexes};
}

toolchain::Machine machine_of(const Services& services) {
    return {.fs = services.fs,
            .processes = services.processes,
            .environment = services.environment,
            .clock = services.clock};
}

} // namespace kb::cli
