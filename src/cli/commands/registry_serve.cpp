// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"
#include "registry/serve.hpp"
#include "sys/signals.hpp"

#include <fmt/format.h>

#include <mutex>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Serves the registry at DIR until interrupted; requests under way are finished first. Prints the
endpoint, for clients in HF_ENDPOINT. Without --listen the address of registry.toml is used
(127.0.0.1:8910); port 0 takes a free port. With tls-certificate and tls-key in registry.toml it
speaks TLS. Other addresses than loopback are refused without, since tokens would cross the network
in clear text.

Exit codes: 0 stopped by a signal, 2 wrong options, 3 registry.toml is wrong, 5 the registry cannot
be opened or the address cannot be used.

Examples:
  kernel-builder registry serve --root /srv/kernels
  kernel-builder registry serve --root r --listen 127.0.0.1:0 --endpoint-file r.endpoint)";

struct RegistryServeOptions {
    std::optional<std::string> root{};
    std::optional<std::string> listen{};
    std::optional<std::string> endpoint_file{};
    bool access_log = false;
    bool insecure_listen = false;
};

document::Node to_json(const http::AccessRecord& record, std::int64_t time) {
    return document::Node::table({{"time", document::Node{sys::to_rfc3339(time)}},
                                  {"peer", document::Node{record.peer}},
                                  {"method", document::Node{record.method}},
                                  {"path", document::Node{record.path}},
                                  {"status", document::Node{record.status}},
                                  {"bytes", document::Node{record.bytes_sent}},
                                  {"seconds", document::Node{record.seconds}},
                                  {"user-agent", document::Node{record.user_agent}}});
}

class RegistryServe final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry serve"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Serve a registry that stock clients load from and upload to";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {
            {"--root", "DIR", "directory of the registry", &options_.root},
            {"--listen", "ADDR:PORT", "address and port, 0 for a free port", &options_.listen},
            {"--endpoint-file",
             "FILE",
             "write the endpoint there once it answers",
             &options_.endpoint_file},
            {"--access-log", "", "one JSON line a request on standard error", &options_.access_log},
            {"--insecure-listen",
             "",
             "allow an address that is not loopback, without TLS",
             &options_.insecure_listen}};
    }

    ExitCode run(const Services& services) override {
        if (!options_.root) {
            services.terminal.err("error: --root DIR must be given\n");
            return ExitCode::usage;
        }
        const sys::Path root = services.current_directory / *options_.root;
        if (const auto sound = registry::check_root(services.fs, root); !sound) {
            render_error(sound.error(), services.terminal);
            return ExitCode::remote;
        }
        std::optional<registry::Settings> settings = settings_of(root, services);
        if (!settings) {
            return ExitCode::configuration;
        }
        if (options_.listen) {
            if (const auto listen = registry::parse_listen(*options_.listen); !listen) {
                render_error(listen.error(), services.terminal);
                return ExitCode::usage;
            }
            settings->listen = *options_.listen;
        }
        return serve(root, *settings, services);
    }

private:
    static std::optional<registry::Settings> settings_of(const sys::Path& root,
                                                         const Services& services) {
        const std::string path = registry::RootPaths{root}.settings().string();
        const auto text = registry::read_settings(services.fs, root);
        if (!text) {
            render_error(text.error(), services.terminal);
            return std::nullopt;
        }
        Diagnostics diagnostics;
        auto settings = registry::parse_settings(*text, path, diagnostics);
        render_diagnostics(diagnostics, {{path, *text}}, services.terminal);
        return settings;
    }

    ExitCode
    serve(const sys::Path& root, const registry::Settings& settings, const Services& services) {
        std::mutex mutex; // answers end in several threads
        const auto say = [&](const std::string& line) {
            const std::scoped_lock lock{mutex};
            services.terminal.err(line + "\n");
        };
        Result<void> told;
        registry::ServeOptions options{
            .root = root,
            .settings = settings,
            .insecure = options_.insecure_listen ? registry::InsecureListen::allowed
                                                 : registry::InsecureListen::refused,
            .stop_descriptor = sys::interrupt_descriptor(),
            .on_ready =
                [&](const std::string& endpoint) {
                    services.terminal.out(endpoint + "\n");
                    if (options_.endpoint_file) {
                        told = services.fs.write_atomic(services.current_directory /
                                                            *options_.endpoint_file,
                                                        endpoint + "\n",
                                                        FileMode::regular);
                    }
                    say(fmt::format("serving '{}' at {}", *options_.root, endpoint));
                },
            .on_failure =
                [&](const std::string& text) {
                    say("error: " + text);
                }};
        if (options_.access_log) {
            options.on_access = [&](const http::AccessRecord& record) {
                say(document::write_json(to_json(record, services.clock.unix_seconds()),
                                         {.indent = 0, .final_newline = false}));
            };
        }
        const Result<void> served = registry::serve(options, services.fs, services.clock);
        for (const Result<void>* result :
             std::initializer_list<const Result<void>*>{&told, &served}) {
            if (!*result) {
                render_error(result->error(), services.terminal);
                return ExitCode::remote;
            }
        }
        return ExitCode::ok;
    }

    RegistryServeOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_registry_serve() {
    return std::make_unique<RegistryServe>();
}

} // namespace kb::cli
