// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/requirement.hpp"
#include "backend/variant.hpp"
#include "base/result.hpp"
#include "plan/lock.hpp"
#include "sandbox/confine.hpp"
#include "store/store.hpp"
#include "sys/clock.hpp"
#include "sys/file_system.hpp"
#include "sys/process.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::http {
class HttpClient;
}

namespace kb::toolchain {

/// The machine, borrowed.
struct Machine {
    sys::FileSystem& fs;
    sys::ProcessRunner& processes;
    const sys::EnvironmentMap& environment; ///< Of this process: PATH, and what pip and apt read.
    sys::Clock& clock;                      ///< For the pause before a download is tried again.
};

enum class Network : std::uint8_t { allowed, offline };

/// Where the user lets archives, git repositories and conda channels be read. A key is a provider
/// ("archive") or one requirement of it ("git/NVIDIA/cutlass"), a value an http(s) address or a
/// local path, in which {name}, {version} and {file} are replaced. Never part of a lock.
using Sources = std::map<std::string, std::string>;

/// Where files come from, and what is told on the way.
struct FetchOptions {
    Network network = Network::allowed;
    Sources sources{};
    /// Given to pip beside the indexes of its own configuration.
    std::vector<std::string> extra_indexes{};
    /// For addresses of `sources`; nullptr: the real one, made when it is needed.
    http::HttpClient* http = nullptr;
    /// A directory of files under their own names; looked at before the network.
    std::optional<sys::Path> from{};
    /// Every file that the entries name is put there too (with `from`, the other half of a bundle).
    std::optional<sys::Path> export_to{};
    unsigned jobs = 2;
    /// "downloading 'torch-...whl' (530.7 MB)": one line a step; may come from any thread.
    std::function<void(std::string_view)> on_progress{};
};

struct FetchReport {
    std::vector<std::string> present{}; ///< Ids that the store had.
    std::vector<std::string> fetched{};
    std::uint64_t bytes = 0; ///< Of the files that were fetched.
};

/// One toolchain as it is mounted.
struct Root {
    sys::Path host{};        ///< A read-only tree of the store.
    std::string mount{};     ///< Place in the sandbox: "/usr", "/toolchain/cuda-13.0".
    digest::Digest digest{}; ///< Of the recipe: equal on every machine for equal inputs.

    bool operator==(const Root&) const = default;
};

/// How generated parts (link stubs) are made: by the pinned compiler, confined.
struct Confinement {
    sandbox::Level level = sandbox::Level::namespaces;
    sandbox::ConfineTools tools{};
};

/// The lock compiled into the program.
[[nodiscard]] const plan::Lock& default_lock();

/// Entries of the lock that satisfy the requirements on this platform, sorted, each once.
/// `not_found` names every requirement that has none and the command that pins it.
[[nodiscard]] Result<std::vector<plan::LockEntry>>
select_entries(std::span<const backend::Requirement> requirements,
               const plan::Lock& lock,
               const backend::Platform& platform);

/// Those of the entries that a fetch() would have to fetch.
Result<std::vector<plan::LockEntry>> missing_entries(std::span<const plan::LockEntry> entries,
                                                     store::Store& store);

/// Puts the files of the entries into the store. Each is verified before it is unpacked; what is
/// there is not fetched again; two processes fetch an entry once. Errors: `not_found` (no longer
/// served, or offline), `corrupt` (expected and found sha256), `transient` (network), each with
/// the next step.
Result<FetchReport> fetch(std::span<const plan::LockEntry> entries,
                          store::Store& store,
                          const Machine& machine,
                          const FetchOptions& options);

/// fetch(), then the roots of the requirements, sorted by mount.
Result<std::vector<Root>> provide(std::span<const backend::Requirement> requirements,
                                  const plan::Lock& lock,
                                  const backend::Platform& platform,
                                  store::Store& store,
                                  const Machine& machine,
                                  const FetchOptions& options,
                                  const Confinement& confinement);

/// How far an older lock binds a new one.
enum class Update : std::uint8_t { keep, newest };

/// Pins the requirements: what `previous` pins already is kept unless asked for the newest; the
/// rest is looked up by the providers. Wheels are downloaded once to learn their sha256.
/// `not_found` names what nobody serves.
Result<plan::Lock> resolve(std::span<const backend::Requirement> requirements,
                           const backend::Platform& platform,
                           const plan::Lock& previous,
                           Update update,
                           const Machine& machine,
                           const FetchOptions& options);

/// Place of a requirement in the sandbox; `unsupported` when no root is made of it.
[[nodiscard]] Result<std::string> mount_of(const backend::Requirement& requirement);

} // namespace kb::toolchain
