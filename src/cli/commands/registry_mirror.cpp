// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/commands/table.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "digest/digest.hpp"
#include "document/json.hpp"
#include "http/curl_client.hpp"
#include "hub/percent.hpp"
#include "registry/mirror.hpp"
#include "sys/environment.hpp"
#include "sys/signals.hpp"
#include "upload/hub_client.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    R"(Takes kernels over from another hub-style registry into --root, for machines that reach only
that one. Of each repository the branch main (the card) and all version branches come, or those
that --version and --branch name; --variant leaves the other variants out. Every file is checked
against the digest in its source's listing before it is committed, each branch is one commit, and
the commit says where it comes from. Files are added or changed, never deleted; what is published
here with other content stays unless --replace. A run that breaks off goes on where it was when it
is repeated. Works while the registry is being served.

The token for the source is only what --token-file holds: HF_TOKEN is not sent.

Exit codes: 0 mirrored, 2 wrong options, 5 the source or the registry failed, 130 interrupted.

Examples:
  kernel-builder registry mirror --root /srv/kernels --from https://hub.example --repo acme/relu
  kernel-builder registry mirror --root r --from http://127.0.0.1:8910 --repo acme/relu \
      --version 1 --variant torch-cuda)";

struct RegistryMirrorOptions {
    std::optional<std::string> root{};
    std::optional<std::string> from{};
    std::optional<std::string> token_file{};
    std::vector<std::string> repos{};
    std::vector<std::string> versions{};
    std::vector<std::string> branches{};
    std::vector<std::string> variants{};
    bool is_private = false;
    bool replace = false;
    bool json = false;
    bool quiet = false;
};

/// A registry behind an endpoint.
class HubSource final : public registry::MirrorSource {
public:
    HubSource(const upload::HubClient& hub, http::Secret token)
        : hub_{&hub}, token_{std::move(token)} {}

    Result<std::optional<hub::Refs>> read_refs() override { return hub_->read_refs(); }

    Result<std::vector<hub::TreeEntry>> read_tree(const hub::GitOid& commit) override {
        KB_TRY(upload::RemoteTree tree, hub_->read_tree(commit));
        std::vector<hub::TreeEntry> entries;
        for (auto& [path, entry] : tree.files) {
            entries.push_back(std::move(entry));
        }
        return entries;
    }

    Result<void>
    fetch(const hub::GitOid& commit, const RelPath& path, registry::MirrorSink& sink) override {
        http::Request request{.url = hub_->web_url(fmt::format(
                                  "/resolve/{}/{}", commit.hex(), hub::encode_path(path.text()))),
                              .bearer = token_};
        bool shrank = false; // twice would never end
        for (unsigned attempt = 1;; ++attempt) {
            const std::uint64_t before = sink.position();
            const Result<http::Response> outcome = ask(request, sink);
            if (outcome && outcome->ok()) {
                return {};
            }
            if (outcome && outcome->status == 416 && before > 0 && !std::exchange(shrank, true)) {
                KB_TRY(sink.restart()); // it has become shorter there
                continue;
            }
            if (sink.position() > before) {
                attempt = 1; // it moves
            }
            const bool may_pass = http::is_retryable(outcome);
            KB_TRY(const bool again,
                   may_pass ? hub_->retrier().wait(request.url, outcome, attempt)
                            : Result<bool>{false});
            if (!again) {
                return outcome ? hub_->explain(*outcome, "reading it") : Error{outcome.error()};
            }
        }
    }

private:
    /// One attempt from where the sink stands. A source without ranges begins anew.
    [[nodiscard]] Result<http::Response> ask(http::Request request,
                                             registry::MirrorSink& sink) const {
        if (sink.position() == 0) {
            request.sink = [&sink](Bytes bytes) {
                return sink.write(bytes);
            };
            return hub_->retrier().client->send(request);
        }
        Result<void> restarted;
        request.range = http::ByteRange{.first = sink.position()};
        request.on_begin = [&](int status) {
            restarted = status == 206 ? Result<void>{} : sink.restart();
        };
        request.sink = [&](Bytes bytes) -> Result<void> {
            KB_TRY(restarted);
            return sink.write(bytes);
        };
        return hub_->retrier().client->send(request);
    }

    const upload::HubClient* hub_;
    http::Secret token_;
};

Result<http::Secret> read_token(const std::optional<std::string>& file, const Services& services) {
    if (!file) {
        return http::Secret{};
    }
    KB_TRY(const std::string text,
           services.fs.read_file(services.current_directory / *file, 4096)
               .context("reading the token of the source"));
    return http::Secret{std::string{trim(text)}};
}

Result<hub::RepoId> parse_repo(std::string_view text) {
    const std::size_t slash = text.find('/');
    const bool has_type =
        slash != std::string_view::npos && text.find('/', slash + 1) != std::string_view::npos;
    const auto type = has_type ? hub::parse_repo_type(text.substr(0, slash))
                               : std::optional{hub::RepoType::kernels};
    if (!type) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' is no [TYPE/]OWNER/NAME", escape_control(text))};
    }
    return hub::RepoId::parse(*type, has_type ? text.substr(slash + 1) : text);
}

/// What the options mean, once they are sound.
struct MirrorRequest {
    sys::Path root{};
    http::Url from;
    http::Secret token{};
    std::vector<hub::RepoId> repos{};
    std::vector<std::string> branches{};
};

class RegistryMirror final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "registry mirror"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Take kernels over from another registry";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::nothing; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        return {{"--root", "DIR", "directory of our registry", &options_.root},
                {"--from", "URL", "endpoint of the source", &options_.from},
                {"--repo", "[TYPE/]OWNER/NAME", "repository (repeatable)", &options_.repos},
                {"--version", "N", "branch v<N> (repeatable)", &options_.versions},
                {"--branch", "NAME", "branch (repeatable)", &options_.branches},
                {"--variant", "NAME", "only this variant (repeatable)", &options_.variants},
                {"--token-file", "FILE", "token for the source", &options_.token_file},
                {"--private", "", "make new repositories private", &options_.is_private},
                {"--replace", "", "also change what is published here", &options_.replace},
                {"--json", "", "the report as JSON", &options_.json},
                {"-q,--quiet", "", "no progress", &options_.quiet}};
    }

    ExitCode run(const Services& services) override {
        const auto request = resolve(services);
        if (!request) {
            services.terminal.err(fmt::format("error: {}\n", request.error().to_text()));
            return ExitCode::usage;
        }
        ProgressLine progress{services.terminal, services.clock};
        const auto client = http::make_curl_client(
            {.user_agent = "kernel-builder/" KB_VERSION,
             .ca_bundle = sys::lookup(services.environment, "CURL_CA_BUNDLE").value_or(""),
             .cancelled = [] {
                 return sys::interrupted();
             }});
        const http::Retrier retrier{.client = client.get(), .clock = &services.clock, .random = [] {
                                        std::uint64_t value = 0;
                                        const std::string bytes =
                                            digest::random_bytes(sizeof value);
                                        std::memcpy(&value, bytes.data(), sizeof value);
                                        return value;
                                    }};
        document::Node rows = document::Node::array();
        for (const hub::RepoId& repo : request->repos) {
            const upload::HubClient hub{
                retrier, request->from, request->token, repo, upload::TokenPlace::file};
            HubSource source{hub, request->token};
            const auto report = registry::mirror_into_root(request->root,
                                                           services.fs,
                                                           services.clock,
                                                           source,
                                                           wishes(repo, *request, progress));
            progress.clear();
            if (!report) {
                render_error(report.error(), services.terminal);
                return exit_code_for(report.error(), ExitCode::remote);
            }
            if (options_.json) {
                rows.push(to_json(repo, *report));
            } else {
                services.terminal.out(to_text(repo, *report));
            }
        }
        if (options_.json) {
            services.terminal.out(document::write_json(
                document::Node::table({{"schema", "kernel-builder/registry-mirror/1"},
                                       {"from", request->from.redacted()},
                                       {"repositories", std::move(rows)}})));
        }
        return ExitCode::ok;
    }

private:
    [[nodiscard]] Result<MirrorRequest> resolve(const Services& services) const {
        if (!options_.root || !options_.from || options_.repos.empty()) {
            return Error{.code = ErrorCode::corrupt,
                         .message = "--root DIR, --from URL and a --repo OWNER/NAME must be given"};
        }
        KB_TRY(http::Url from, http::Url::parse(*options_.from));
        MirrorRequest request{.root = services.current_directory / *options_.root,
                              .from = std::move(from),
                              .branches = options_.branches};
        for (const std::string& version : options_.versions) {
            if (!parse_unsigned(version)) {
                return Error{
                    .code = ErrorCode::corrupt,
                    .message = fmt::format("--version '{}' is no number", escape_control(version))};
            }
            request.branches.push_back("v" + version);
        }
        for (const std::string& text : options_.repos) {
            KB_TRY(hub::RepoId repo, parse_repo(text));
            request.repos.push_back(std::move(repo));
        }
        KB_TRY(request.token, read_token(options_.token_file, services));
        return request;
    }

    [[nodiscard]] registry::MirrorOptions
    wishes(const hub::RepoId& repo, const MirrorRequest& request, ProgressLine& progress) const {
        registry::MirrorOptions wishes{.repo = repo,
                                       .origin = request.from.redacted(),
                                       .branches = request.branches,
                                       .variants = options_.variants,
                                       .replace = options_.replace ? registry::MirrorReplace::yes
                                                                   : registry::MirrorReplace::no,
                                       .visibility = options_.is_private
                                                         ? hub::Visibility::private_
                                                         : hub::Visibility::public_};
        if (!options_.quiet) {
            wishes.note = [&progress](const std::string& text) {
                progress.stage(text);
            };
        }
        return wishes;
    }

    static std::string to_text(const hub::RepoId& repo, const registry::MirrorReport& report) {
        std::string text;
        for (const registry::MirroredBranch& branch : report.branches) {
            text += fmt::format("{} {}: {} taken over, {} here already; commit {}\n",
                                repo.text(),
                                branch.name,
                                counted(branch.added, "file"),
                                branch.unchanged,
                                branch.commit.hex());
        }
        return text + fmt::format("fetched {}, {} were here\n",
                                  human_bytes(report.bytes_fetched),
                                  human_bytes(report.bytes_here));
    }

    static document::Node to_json(const hub::RepoId& repo, const registry::MirrorReport& report) {
        document::Node branches = document::Node::array();
        for (const registry::MirroredBranch& branch : report.branches) {
            branches.push(document::Node::table({{"branch", branch.name},
                                                 {"source", branch.source.hex()},
                                                 {"commit", branch.commit.hex()},
                                                 {"added", branch.added},
                                                 {"unchanged", branch.unchanged}}));
        }
        return document::Node::table({{"repository", repo.text()},
                                      {"branches", std::move(branches)},
                                      {"bytes-fetched", report.bytes_fetched},
                                      {"bytes-here", report.bytes_here}});
    }

    RegistryMirrorOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_registry_mirror() {
    return std::make_unique<RegistryMirror>();
}

} // namespace kb::cli
