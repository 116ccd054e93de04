// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/render.hpp"
#include "document/json.hpp"
#include "registry/root.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::cli {

namespace {

constexpr std::string_view kListDescription =
    R"(Lists the tokens of a registry, oldest first: id, user, scope, namespaces, when made and when they
end. The tokens themselves are not kept; the id is the beginning of a hash and opens nothing.

Exit codes: 0 listed, 2 no --root given, 5 the registry cannot be opened.

Example:
  kernel-builder registry token list --root /srv/kernels)";

constexpr std::string_view kRevokeDescription =
    R"(Ends a token at once, by the id that 'registry token list' shows, or all tokens of a user. Works
while the registry is being served.

Exit codes: 0 revoked, 2 wrong options or no such token, 5 the registry cannot be opened.

Examples:
  kernel-builder registry token revoke --root /srv/kernels --id 3f2a91c04b7d
  kernel-builder registry token revoke --root /srv/kernels --user alice)";

constexpr std::size_t kIdLength = 12;

std::string id_of(const registry::TokenRow& token) {
    return token.hash.hex().substr(0, kIdLength);
}

Result<registry::OpenedRoot> open(const std::string& root, const Services& services) {
    return registry::open_root(
        services.fs, services.current_directory / root, registry::RootUse::manage);
}

class RegistryTokenList final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry token list"; }

    [[nodiscard]] std::string_view summary() const override {
        return "List the tokens of a registry";
    }

    [[nodiscard]] std::string_view description() const override { return kListDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "directory of the registry", &root_},
                {"--json", "", "the list as JSON", &json_}};
    }

    ExitCode run(const Services& services) override {
        if (!root_) {
            services.terminal.err("error: --root DIR must be given\n");
            return ExitCode::usage;
        }
        const auto tokens = list(services);
        if (!tokens) {
            render_error(tokens.error(), services.terminal);
            return exit_code_for(tokens.error(), ExitCode::remote);
        }
        const std::int64_t now = services.clock.unix_seconds();
        document::Node items = document::Node::array();
        std::string text;
        for (const registry::TokenRow& token : *tokens) {
            items.push(to_json(token));
            text += fmt::format("{}  {}  {}  [{}]  made {}  {}\n",
                                id_of(token),
                                token.user,
                                registry::to_text(token.scope),
                                join(token.namespaces, " "),
                                sys::to_rfc3339(token.created),
                                ends(token, now));
        }
        services.terminal.out(
            json_ ? document::write_json(document::Node::table(
                        {{"schema", "kernel-builder/registry-tokens/1"}, {"tokens", items}}))
                  : text);
        return ExitCode::ok;
    }

private:
    [[nodiscard]] Result<std::vector<registry::TokenRow>> list(const Services& services) const {
        KB_TRY(const registry::OpenedRoot opened, open(*root_, services));
        return opened.meta->tokens();
    }

    static std::string ends(const registry::TokenRow& token, std::int64_t now) {
        if (!token.expires) {
            return "never ends";
        }
        return fmt::format(
            "{} {}", *token.expires <= now ? "ended" : "ends", sys::to_rfc3339(*token.expires));
    }

    static document::Node to_json(const registry::TokenRow& token) {
        return document::Node::table(
            {{"id", id_of(token)},
             {"user", token.user},
             {"scope", registry::to_text(token.scope)},
             {"namespaces", document::Node::strings(token.namespaces)},
             {"created", sys::to_rfc3339(token.created)},
             {"expires",
              token.expires ? document::Node{sys::to_rfc3339(*token.expires)} : document::Node{}}});
    }

    std::optional<std::string> root_{};
    bool json_ = false;
};

class RegistryTokenRevoke final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry token revoke"; }

    [[nodiscard]] std::string_view summary() const override {
        return "End a token of a registry, or all of a user";
    }

    [[nodiscard]] std::string_view description() const override { return kRevokeDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "directory of the registry", &root_},
                {"--id", "ID", "the token, as 'registry token list' shows it", &id_},
                {"--user", "NAME", "all tokens of this user", &user_}};
    }

    ExitCode run(const Services& services) override {
        if (!root_ || id_.has_value() == user_.has_value()) {
            services.terminal.err("error: --root DIR and one of --id ID and --user NAME must be "
                                  "given\n");
            return ExitCode::usage;
        }
        if (id_ && id_->size() < kIdLength) {
            services.terminal.err(fmt::format("error: an id has at least {} digits\n", kIdLength));
            return ExitCode::usage;
        }
        const Result<std::size_t> revoked = revoke(services);
        if (!revoked) {
            render_error(revoked.error(), services.terminal);
            return exit_code_for(revoked.error(), ExitCode::remote);
        }
        if (*revoked == 0) {
            services.terminal.err("error: there is no such token; 'registry token list' shows "
                                  "them\n");
            return ExitCode::usage;
        }
        services.terminal.out(fmt::format("revoked {}\n", counted(*revoked, "token")));
        return ExitCode::ok;
    }

private:
    [[nodiscard]] Result<std::size_t> revoke(const Services& services) const {
        KB_TRY(const registry::OpenedRoot opened, open(*root_, services));
        KB_TRY(const std::vector<registry::TokenRow> tokens, opened.meta->tokens());
        std::size_t count = 0;
        for (const registry::TokenRow& token : tokens) {
            if (id_ ? !token.hash.hex().starts_with(*id_) : token.user != *user_) {
                continue;
            }
            KB_TRY(const bool was_there,
                   opened.meta->remove_token(
                       token.hash,
                       {.time = services.clock.unix_seconds(),
                        .actor = "registry token",
                        .action = "revoke-token",
                        .detail = fmt::format("{} {}", token.user, id_of(token))}));
            count += was_there ? 1U : 0U;
        }
        return count;
    }

    std::optional<std::string> root_{};
    std::optional<std::string> id_{};
    std::optional<std::string> user_{};
};

} // namespace

std::unique_ptr<Command> make_registry_token_list() {
    return std::make_unique<RegistryTokenList>();
}

std::unique_ptr<Command> make_registry_token_revoke() {
    return std::make_unique<RegistryTokenRevoke>();
}

} // namespace kb::cli
