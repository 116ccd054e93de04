// SPDX-License-Identifier: Apache-2.0
#include "toolchain/provider.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::toolchain {

using backend::Requirement;

Result<plan::Lock> resolve(std::span<const Requirement> requirements,
                           const backend::Platform& platform,
                           const plan::Lock& previous,
                           Update update,
                           const Machine& machine,
                           const FetchOptions& options) {
    plan::Lock lock;
    for (const Requirement& requirement : requirements) {
        KB_TRY(const Provider* provider, provider_of(requirement));
        const auto kept = plan::entries_for(previous, requirement, platform);
        // The exact version of a wheel is in its name: what is pinned cannot become newer.
        const bool keep = update == Update::keep || provider->name == "wheel";
        if (keep && !kept.empty()) {
            for (const plan::LockEntry* entry : kept) {
                lock.entries.push_back(*entry);
            }
            continue;
        }
        if (options.on_progress) {
            options.on_progress(fmt::format("looking up '{}'", requirement.id()));
        }
        KB_TRY(auto found,
               provider->resolve(requirement, platform, machine, options)
                   .context(fmt::format("pinning '{}'", requirement.id())));
        lock.entries.insert(lock.entries.end(), found.begin(), found.end());
    }
    std::ranges::sort(lock.entries);
    lock.entries.erase(std::unique(lock.entries.begin(), lock.entries.end()), lock.entries.end());
    return lock;
}

} // namespace kb::toolchain
