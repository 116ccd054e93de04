// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "store/blob_store.hpp"
#include "sys/worker_pool.hpp"
#include "toolchain/embedded_data.hpp"
#include "toolchain/package.hpp"
#include "toolchain/providers/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace kb::toolchain {
namespace {

using backend::Requirement;
using plan::LockEntry;

void tell(const FetchOptions& options, const std::string& text) {
    if (options.on_progress) {
        options.on_progress(text);
    }
}

/// What the stub provider pins is compiled in; there is nothing to fetch but something to compare.
Result<void> check_built_in(const LockEntry& entry) {
    const auto data = embedded_data(entry.file);
    if (data && digest::sha256(*data) == entry.sha256) {
        return {};
    }
    return Error{.code = ErrorCode::unsupported,
                 .message = fmt::format("the lock pins '{}' of another kernel-builder; run "
                                        "'kernel-builder lock --update'",
                                        entry.id)};
}

std::string_view page_hint(const Machine& machine, const sys::Path& path) {
    const auto head = read_head(machine.fs, path, 64);
    return head && looks_like_page(*head)
               ? " (an HTML page: a proxy or a log-in stands before the file)"
               : "";
}

Result<void> verify_file(const Machine& machine,
                         const sys::Path& path,
                         const LockEntry& entry,
                         std::string_view source) {
    KB_TRY(const store::StoredBlob found, store::hash_file(machine.fs, path));
    const auto checked = store::check_blob(found, {.digest = entry.sha256, .size = entry.size});
    if (checked) {
        return {};
    }
    // Digests alone: a size that differs makes a digest that differs.
    return Error{.code = ErrorCode::corrupt,
                 .message = fmt::format(
                     "'{}' from {} is not the file that the lock pins for '{}': sha256 {} is "
                     "pinned, {} was found{}; nothing was stored. If the source is to be trusted, "
                     "pin it with 'kernel-builder lock --update'; else use another mirror",
                     entry.file,
                     source,
                     entry.id,
                     entry.sha256.hex(),
                     found.digest.hex(),
                     page_hint(machine, path))};
}

/// At most three names: a set of debs has forty.
std::string short_list(const std::vector<LockEntry>& entries) {
    std::vector<std::string> ids;
    for (const LockEntry& entry : entries) {
        ids.push_back(entry.id);
    }
    constexpr std::size_t kShown = 3;
    if (ids.size() <= kShown + 1) {
        return quoted_list(ids);
    }
    const std::size_t more = ids.size() - kShown;
    ids.resize(kShown);
    std::string out;
    for (const std::string& id : ids) {
        out += fmt::format("'{}', ", id);
    }
    return out + fmt::format("and {} more", more);
}

class Fetcher {
public:
    Fetcher(store::Store& store, const Machine& machine, const FetchOptions& options)
        : store_{store}, machine_{machine}, options_{options} {}

    /// Entries of one provider that the store lacks.
    Result<void> run(const Provider& provider, std::vector<LockEntry> entries);

    FetchReport report{};

private:
    Result<void> lock_entries(std::vector<LockEntry>& entries);
    Result<void> collect(const Provider& provider,
                         const std::vector<LockEntry>& entries,
                         const sys::Path& directory);
    Result<void>
    unpack_one(const Provider& provider, const LockEntry& entry, const sys::Path& directory);
    Result<void> copy_out(const sys::Path& file, const LockEntry& entry);

    store::Store& store_;
    const Machine& machine_;
    const FetchOptions& options_;
    std::vector<sys::FileLock> held_{};
    std::map<std::string, std::string> source_{}; ///< File -> where it came from, for messages.
};

/// In the order of the ids, so that two processes cannot wait for each other. What somebody else
/// fetched meanwhile is dropped.
Result<void> Fetcher::lock_entries(std::vector<LockEntry>& entries) {
    std::vector<LockEntry> left;
    for (const LockEntry& entry : entries) {
        KB_TRY(auto lock, store_.lock("fetch-" + entry.id, [&] {
            tell(options_, fmt::format("waiting for another process that fetches '{}'", entry.id));
        }));
        KB_TRY(const auto there, find_tree(store_, entry));
        if (there) {
            report.present.push_back(entry.id);
            continue;
        }
        held_.push_back(std::move(lock));
        left.push_back(entry);
    }
    entries = std::move(left);
    return {};
}

/// Files from the bundle where it has them, the rest by the provider, all in `directory`.
Result<void> Fetcher::collect(const Provider& provider,
                              const std::vector<LockEntry>& entries,
                              const sys::Path& directory) {
    std::vector<LockEntry> missing;
    for (const LockEntry& entry : entries) {
        const sys::Path bundled = options_.from.value_or("") / entry.file;
        if (options_.from && sys::exists(machine_.fs, bundled)) {
            source_[entry.file] = fmt::format("'{}'", options_.from->string());
            KB_TRY(machine_.fs.symlink(std::filesystem::absolute(bundled).string(),
                                       directory / entry.file));
        } else {
            missing.push_back(entry);
        }
    }
    if (missing.empty()) {
        return {};
    }
    if (options_.network == Network::offline) {
        std::string damage;
        for (const store::StoreFinding& finding : store_.discarded()) {
            damage += fmt::format("'{}' was damaged ({}); ", finding.name, finding.message);
        }
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("{}the store has no {} and the network is switched "
                                            "off: run 'kernel-builder fetch' with a network, or "
                                            "give a directory of files with --from",
                                            damage,
                                            short_list(missing))};
    }
    std::uint64_t bytes = 0;
    for (const LockEntry& entry : missing) {
        bytes += entry.size;
        source_[entry.file] = std::string{provider.source};
    }
    tell(options_,
         missing.size() == 1
             ? fmt::format("fetching '{}' ({})", missing.front().file, human_bytes(bytes))
             : fmt::format("fetching {} ({})",
                           counted(missing.size(), std::string{provider.name}),
                           human_bytes(bytes)));
    return provider.download(missing, directory, machine_, options_);
}

Result<void> Fetcher::copy_out(const sys::Path& file, const LockEntry& entry) {
    if (!options_.export_to) {
        return {};
    }
    const sys::Path target = *options_.export_to / entry.file;
    return sys::exists(machine_.fs, target) ? Result<void>{} : machine_.fs.copy_file(file, target);
}

Result<void>
Fetcher::unpack_one(const Provider& provider, const LockEntry& entry, const sys::Path& directory) {
    const sys::Path file = directory / entry.file;
    KB_TRY(verify_file(machine_, file, entry, source_.at(entry.file)));
    KB_TRY(copy_out(file, entry));
    KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
    KB_TRY(add_package(store_, machine_, provider, requirement, entry, file));
    return {};
}

Result<void> Fetcher::run(const Provider& provider, std::vector<LockEntry> entries) {
    held_.clear();
    KB_TRY(lock_entries(entries));
    if (entries.empty()) {
        return {};
    }
    KB_TRY(const sys::Path directory, store_.make_temporary());
    auto result = collect(provider, entries, directory);
    if (result) {
        std::vector<Result<void>> results(entries.size());
        sys::parallel_for(entries.size(), options_.jobs, [&](std::size_t i) {
            results[i] = unpack_one(provider, entries[i], directory)
                             .context(fmt::format("fetching '{}'", entries[i].id));
        });
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (results[i]) {
                report.fetched.push_back(entries[i].id);
                report.bytes += entries[i].size;
            } else if (result) {
                result = results[i].error();
            }
        }
    }
    // What cannot be removed now is swept by collection.
    static_cast<void>(machine_.fs.remove_tree(directory).has_value());
    held_.clear();
    return result;
}

} // namespace

Result<FetchReport> fetch(std::span<const LockEntry> entries,
                          store::Store& store,
                          const Machine& machine,
                          const FetchOptions& options) {
    Fetcher fetcher{store, machine, options};
    std::map<std::string_view, std::vector<LockEntry>> missing; // by provider
    if (options.export_to) {
        KB_TRY(machine.fs.make_directories(*options.export_to));
    }
    for (const LockEntry& entry : entries) {
        KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
        KB_TRY(const Provider* provider, provider_of(requirement));
        if (!provider->has_files) {
            KB_TRY(check_built_in(entry));
            fetcher.report.present.push_back(entry.id);
            continue;
        }
        const std::size_t damaged = store.discarded().size();
        KB_TRY(const auto there, find_tree(store, entry));
        if (store.discarded().size() > damaged) {
            tell(options,
                 fmt::format("'{}' in the store was damaged: {}",
                             entry.id,
                             store.discarded().back().message));
        }
        // A bundle needs the file itself, which the store does not keep.
        const bool wanted_outside =
            options.export_to && !sys::exists(machine.fs, *options.export_to / entry.file);
        if (there && !wanted_outside) {
            fetcher.report.present.push_back(entry.id);
        } else if (there) {
            KB_TRY(export_file(*provider, entry, machine, options));
            fetcher.report.present.push_back(entry.id);
        } else {
            missing[provider->name].push_back(entry);
        }
    }
    for (auto& [name, group] : missing) {
        KB_TRY(const Requirement first, Requirement::parse(group.front().id));
        KB_TRY(const Provider* provider, provider_of(first));
        std::ranges::sort(group, {}, &LockEntry::id);
        // Wheels are large and come one by one; debs come in one go.
        if (provider->name == "deb") {
            KB_TRY(fetcher.run(*provider, std::move(group)));
            continue;
        }
        for (LockEntry& entry : group) {
            KB_TRY(fetcher.run(*provider, {std::move(entry)}));
        }
    }
    std::ranges::sort(fetcher.report.present);
    std::ranges::sort(fetcher.report.fetched);
    return std::move(fetcher.report);
}

Result<void> export_file(const Provider& provider,
                         const LockEntry& entry,
                         const Machine& machine,
                         const FetchOptions& options) {
    const sys::Path& directory = *options.export_to;
    const sys::Path bundled = options.from.value_or("") / entry.file;
    if (options.from && sys::exists(machine.fs, bundled)) {
        KB_TRY(machine.fs.copy_file(bundled, directory / entry.file));
    } else if (options.network == Network::offline) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' cannot be exported offline: the store keeps what "
                                            "was unpacked, not the file",
                                            entry.file)};
    } else {
        tell(options, fmt::format("fetching '{}' ({})", entry.file, human_bytes(entry.size)));
        KB_TRY(provider.download(std::span{&entry, 1}, directory, machine, options));
    }
    auto verified = verify_file(machine, directory / entry.file, entry, "its source");
    if (!verified) {
        static_cast<void>(machine.fs.remove_file(directory / entry.file).has_value());
    }
    return verified;
}

} // namespace kb::toolchain
