// SPDX-License-Identifier: Apache-2.0
#include "cli/settings.hpp"

#include "base/text.hpp"
#include "document/reader.hpp"
#include "document/toml.hpp"
#include "sys/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::cli {

namespace {

constexpr std::array<std::string_view, 4> kLevels{"namespaces", "chroot", "landlock", "plain"};

std::optional<sys::Path> config_file(const sys::EnvironmentMap& environment) {
    if (const auto xdg = sys::lookup(environment, "XDG_CONFIG_HOME")) {
        return sys::Path{*xdg} / "kernel-builder" / "config.toml";
    }
    if (const auto home = sys::lookup(environment, "HOME")) {
        return sys::Path{*home} / ".config" / "kernel-builder" / "config.toml";
    }
    return std::nullopt;
}

/// [sources]: "archive", "git/NVIDIA/cutlass", "conda" = address or path.
void read_sources(Settings& settings, document::Reader& reader, Diagnostics& diagnostics) {
    constexpr std::array<std::string_view, 3> kProviders{"archive", "conda", "git"};
    const document::Node* table = reader.table("sources");
    if (table == nullptr) {
        return;
    }
    for (const document::Entry& entry : table->entries()) {
        const std::string provider = entry.key.substr(0, entry.key.find('/'));
        if (std::ranges::find(kProviders, provider) == kProviders.end()) {
            diagnostics.error("unknown-source",
                              entry.value.key_span,
                              fmt::format("'{}' is no source, expected archive, conda or git, or "
                                          "one of their requirements (\"git/NVIDIA/cutlass\")",
                                          escape_control(entry.key)),
                              suggestion_note(provider, kProviders));
        } else if (!entry.value.is_string() || entry.value.as_string().empty()) {
            diagnostics.error("bad-source",
                              entry.value.span,
                              fmt::format("the source '{}' is {}, expected an address or a path",
                                          escape_control(entry.key),
                                          entry.value.kind_text()));
        } else {
            settings.sources.emplace(entry.key, entry.value.as_string());
        }
    }
}

void read_file(Settings& settings, const Services& services, Diagnostics& diagnostics) {
    const auto path = config_file(services.environment);
    if (!path) {
        return;
    }
    Result<std::string> text = services.fs.read_file(*path, 1UL << 20U);
    if (!text) {
        if (text.error().code != ErrorCode::not_found) {
            diagnostics.error(
                "unreadable-settings", {.file = path->string()}, text.error().to_text());
        }
        return;
    }
    const auto root = document::parse_toml(*text, {.name = path->string()}, diagnostics);
    if (!root) {
        return;
    }
    document::Reader reader{*root, "the settings", diagnostics};
    if (const auto store = reader.string("store")) {
        settings.store = store->value;
    }
    if (const auto jobs = reader.unsigned_integer("jobs")) {
        settings.jobs = jobs->value;
    }
    if (const auto memory = reader.string("memory")) {
        settings.memory_bytes = parse_memory(memory->value);
        if (!settings.memory_bytes) {
            diagnostics.error("bad-memory",
                              memory->span,
                              fmt::format("'{}' is not an amount of memory, write '8G' or '512M'",
                                          memory->value));
        }
    }
    if (const auto sandbox = reader.string("sandbox")) {
        settings.sandbox = sandbox->value;
    }
    if (const auto executor = reader.string("executor")) {
        settings.executor = executor->value;
    }
    if (const auto endpoint = reader.string("endpoint")) {
        settings.endpoint = endpoint->value;
    }
    if (const auto indexes = reader.strings("extra-indexes")) {
        for (const auto& index : *indexes) {
            settings.extra_indexes.push_back(index.value);
        }
    }
    read_sources(settings, reader, diagnostics);
    reader.finish(
        {"store", "jobs", "memory", "sandbox", "executor", "endpoint", "extra-indexes", "sources"});
}

void apply_environment(Settings& settings,
                       const sys::EnvironmentMap& environment,
                       Diagnostics& diagnostics) {
    if (const auto store = sys::lookup(environment, "KERNEL_BUILDER_STORE")) {
        settings.store = *store;
    }
    if (const auto jobs = sys::lookup(environment, "KERNEL_BUILDER_JOBS")) {
        settings.jobs = parse_unsigned(*jobs);
        if (!settings.jobs || *settings.jobs == 0) {
            diagnostics.error("bad-jobs",
                              {.file = "KERNEL_BUILDER_JOBS"},
                              fmt::format("'{}' is not a number of jobs", escape_control(*jobs)));
        }
    }
    if (const auto memory = sys::lookup(environment, "KERNEL_BUILDER_MEMORY")) {
        settings.memory_bytes = parse_memory(*memory);
        if (!settings.memory_bytes) {
            diagnostics.error("bad-memory",
                              {.file = "KERNEL_BUILDER_MEMORY"},
                              fmt::format("'{}' is not an amount of memory, write '8G' or '512M'",
                                          escape_control(*memory)));
        }
    }
    if (const auto sandbox = sys::lookup(environment, "KERNEL_BUILDER_SANDBOX")) {
        settings.sandbox = *sandbox;
    }
    if (const auto offline = sys::lookup(environment, "KERNEL_BUILDER_OFFLINE")) {
        settings.offline = *offline != "0";
    }
    if (const auto endpoint = sys::lookup(environment, "HF_ENDPOINT")) {
        settings.endpoint = *endpoint;
    }
}

sys::Path default_store(const sys::EnvironmentMap& environment) {
    if (const auto xdg = sys::lookup(environment, "XDG_CACHE_HOME")) {
        return sys::Path{*xdg} / "kernel-builder" / "store";
    }
    if (const auto home = sys::lookup(environment, "HOME")) {
        return sys::Path{*home} / ".cache" / "kernel-builder" / "store";
    }
    return {};
}

} // namespace

std::optional<std::uint64_t> parse_memory(std::string_view text) {
    std::uint64_t unit = 1;
    if (!text.empty()) {
        constexpr std::string_view kUnits = "KMGT";
        const std::size_t at = kUnits.find(text.back());
        if (at != std::string_view::npos) {
            unit = 1ULL << (10 * (at + 1));
            text.remove_suffix(1);
        }
    }
    const auto number = parse_unsigned(text);
    if (!number || *number == 0 || *number > UINT64_MAX / unit) {
        return std::nullopt;
    }
    return *number * unit;
}

std::optional<Settings>
read_settings(const SettingFlags& flags, const Services& services, Diagnostics& diagnostics) {
    Settings settings;
    Diagnostics problems;
    read_file(settings, services, problems);
    apply_environment(settings, services.environment, problems);
    if (flags.store) {
        settings.store = *flags.store;
    }
    if (flags.jobs) {
        settings.jobs = flags.jobs;
        if (*flags.jobs == 0) {
            problems.error("bad-jobs", {.file = "--jobs"}, "'0' is not a number of jobs");
        }
    }
    if (flags.memory) {
        settings.memory_bytes = parse_memory(*flags.memory);
        if (!settings.memory_bytes) {
            problems.error("bad-memory",
                           {.file = "--memory"},
                           fmt::format("'{}' is not an amount of memory, write '8G' or '512M'",
                                       *flags.memory));
        }
    }
    if (flags.sandbox) {
        settings.sandbox = *flags.sandbox;
    }
    settings.offline = settings.offline || flags.offline;
    if (settings.store.empty()) {
        settings.store = default_store(services.environment);
    }
    if (settings.store.empty()) {
        problems.error("no-store",
                       {.file = "the store"},
                       "no place is known for the store",
                       {"give --store DIR, or set KERNEL_BUILDER_STORE, 'store' in config.toml, "
                        "XDG_CACHE_HOME or HOME"});
    } else if (settings.store.is_relative()) {
        settings.store = services.current_directory / settings.store;
    }
    if (std::ranges::find(kLevels, settings.sandbox) == kLevels.end()) {
        problems.error(
            "unknown-sandbox",
            {.file = "the sandbox"},
            fmt::format(
                "'{}' is not a sandbox level, expected namespaces, chroot, landlock or plain",
                escape_control(settings.sandbox)),
            suggestion_note(settings.sandbox, kLevels));
    }
    const bool failed = problems.has_errors();
    diagnostics.append(std::move(problems));
    return failed ? std::nullopt : std::optional{std::move(settings)};
}

} // namespace kb::cli
