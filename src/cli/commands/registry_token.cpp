// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "registry/root.hpp"

#include <fmt/format.h>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Makes a token for a user and prints it, once and alone: only its hash is kept. A user owns the
namespace of his name; with --namespace the token acts in the named ones instead. Scope 'read' sees
private repositories, 'write' also creates and commits, and in the user's own namespace deletes and
sets visibility; 'admin' does that in all of its namespaces, which without --namespace are all there
are, and changes what is published. Works while the registry is being served.

Exit codes: 0 made, 2 wrong options, 5 the registry cannot be opened.

Example:
  HF_TOKEN=$(kernel-builder registry token create --root /srv/kernels --user alice))";

struct RegistryTokenOptions {
    std::optional<std::string> root{};
    std::optional<std::string> user{};
    std::string scope = "write";
    std::vector<std::string> namespaces{};
    std::optional<std::uint64_t> expires{};
};

class RegistryTokenCreate final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry token create"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Make a token for a user of a registry and print it";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "directory of the registry (must be given)", &options_.root},
                {"--user", "NAME", "whose token it is (must be given)", &options_.user},
                {"--scope", "SCOPE", "read, write or admin", &options_.scope},
                {"--namespace", "NS", "where the token acts (repeatable)", &options_.namespaces},
                {"--expires",
                 "DAYS",
                 "days until the token ends; without it never",
                 &options_.expires}};
    }

    ExitCode run(const Services& services) override {
        const auto scope = registry::parse_scope(options_.scope);
        if (!options_.root || !options_.user || !scope) {
            services.terminal.err(
                scope ? "error: --root DIR and --user NAME must be given\n"
                      : fmt::format("error: --scope must be read, write or admin, not '{}'\n",
                                    options_.scope));
            return ExitCode::usage;
        }
        constexpr std::uint64_t kMostDays = 36'500;
        if (options_.expires && (*options_.expires == 0 || *options_.expires > kMostDays)) {
            services.terminal.err(fmt::format(
                "error: --expires is 1 to {} days, not {}\n", kMostDays, *options_.expires));
            return ExitCode::usage;
        }
        const Result<std::string> token = create(*scope, services);
        if (!token) {
            render_error(token.error(), services.terminal);
            return token.error().code == ErrorCode::corrupt ? ExitCode::usage : ExitCode::remote;
        }
        services.terminal.out(*token + "\n");
        return ExitCode::ok;
    }

private:
    [[nodiscard]] Result<std::string> create(registry::Scope scope,
                                             const Services& services) const {
        KB_TRY(const registry::OpenedRoot opened,
               registry::open_root(services.fs,
                                   services.current_directory / *options_.root,
                                   registry::RootUse::manage));
        return registry::create_token(*opened.meta,
                                      {.user = *options_.user,
                                       .scope = scope,
                                       .namespaces = options_.namespaces,
                                       .days = options_.expires},
                                      services.clock.unix_seconds());
    }

    RegistryTokenOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_registry_token_create() {
    return std::make_unique<RegistryTokenCreate>();
}

} // namespace kb::cli
