// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "build/inspect.hpp"
#include "build/workspace.hpp"
#include "check/check.hpp"
#include "cli/commands/table.hpp"
#include "cli/commands/upload_input.hpp"
#include "cli/commands/variants.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "cli/settings.hpp"
#include "document/json.hpp"
#include "http/curl_client.hpp"
#include "hub/revision.hpp"
#include "project/package_reader.hpp"
#include "project/project.hpp"
#include "sys/environment.hpp"
#include "sys/host_limits.hpp"
#include "sys/signals.hpp"
#include "upload/endpoint.hpp"
#include "upload/preflight.hpp"
#include "upload/publish.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace kb::cli {

namespace {

constexpr std::string_view kDescription =
    "Publishes the finished variants of DIR: build/<variant>/, what build and sign said about "
    "them\n"
    "(provenance/) and benchmarks/benchmark*.py to branch v<version>, the card to main as "
    "README.md.\n"
    "provenance/ holds the sources too, unless --no-sources. Only what differs is sent; each "
    "branch\n"
    "changes by one commit, and what a reader gets is read back. A killed upload goes on where it\n"
    "was when the same command runs again. Other variants on the branch stay as they are.\n"
    "\n"
    "The registry is --endpoint, HF_ENDPOINT or 'endpoint' of config.toml; there is no built-in\n"
    "one. The token is HF_TOKEN, else the file HF_TOKEN_PATH, else $HF_HOME/token, else\n"
    "~/.cache/huggingface/token.\n"
    "\n"
    "  kernel-builder upload --dry-run               what would change\n"
    "  kernel-builder upload --repo-id me/my-kernel  publish\n"
    "  kernel-builder upload --create-pr             propose it to somebody else's repository\n"
    "\n"
    "Exit: 0 published or nothing to do, 1 a variant must not be published, 2 usage, 3 "
    "build.toml,\n"
    "5 the registry, 130 interrupted.";

struct AllowFlag {
    upload::Refusal refusal = upload::Refusal::dirty;
    bool given = false;
    std::string_view help{};
};

struct UploadOptions {
    std::string directory = ".";
    std::optional<std::string> repo_id{};
    std::optional<std::string> branch{};
    std::optional<std::string> endpoint{};
    std::string repo_type = "kernel";
    std::optional<std::string> output_json{};
    bool is_private = false;
    bool create_pr = false;
    bool dry_run = false;
    bool replace = false;
    bool no_sources = false;
    bool quiet = false;
    bool json = false;
    std::array<AllowFlag, 6> allow{
        AllowFlag{.refusal = upload::Refusal::dirty,
                  .help = "publish what was built from uncommitted changes"},
        AllowFlag{.refusal = upload::Refusal::weak_sandbox,
                  .help = "publish what was built outside sandbox 'namespaces'"},
        AllowFlag{.refusal = upload::Refusal::unchecked,
                  .help = "publish what did not pass check-builds"},
        AllowFlag{.refusal = upload::Refusal::wrong_digest,
                  .help = "publish files that their digest does not cover"},
        AllowFlag{.refusal = upload::Refusal::mixed_versions,
                  .help = "publish different versions to one --branch"},
        AllowFlag{.refusal = upload::Refusal::experimental,
                  .help = "publish what is marked experimental"}};
};

/// Where and what, before the registry is asked.
struct Prepared {
    sys::Path root{};
    std::optional<project::Project> project{};
    Settings settings{};
    upload::UploadInput input{};
    std::map<std::string, std::vector<check::Finding>> untrue_statements{};
    std::optional<project::PackageReader> reader{};
    std::optional<hub::RepoId> repo{};
    std::optional<upload::Endpoint> endpoint{};
    std::optional<upload::Token> token{};
};

std::string plan_line(const upload::BranchPlan& plan) {
    return fmt::format("branch '{}'{}: {} to add or change, {} to delete, {} unchanged\n",
                       plan.branch,
                       plan.state == upload::BranchState::to_create ? " (new)" : "",
                       plan.adds.size(),
                       plan.deletes.size(),
                       plan.unchanged);
}

class UploadCommand final : public Command {
public:
    [[nodiscard]] std::string_view name() const override { return "upload"; }

    [[nodiscard]] std::string_view summary() const override {
        return "Publish finished variants to a registry";
    }

    [[nodiscard]] std::string_view description() const override { return kDescription; }

    [[nodiscard]] Tier tier() const override { return Tier::machine; }

    [[nodiscard]] std::vector<OptionRow> options() override {
        std::vector<OptionRow> rows = {
            {"DIR", "", "kernel, build or variant directory", &options_.directory},
            {"--repo-id",
             "OWNER/NAME",
             "repository (default: general.hub.repo-id of build.toml)",
             &options_.repo_id},
            {"--branch",
             "NAME",
             "branch (default: general.hub.branch, else v<version>)",
             &options_.branch},
            {"--endpoint", "URL", "registry (default: HF_ENDPOINT)", &options_.endpoint},
            {"--repo-type", "TYPE", "kernel, or model for old clients", &options_.repo_type},
            {"--private", "", "make a new repository private", &options_.is_private},
            {"--create-pr", "", "open a pull request instead", &options_.create_pr},
            {"--replace",
             "",
             "replace variants that are published with other content",
             &options_.replace},
            {"--no-sources", "", "leave out the archive of the sources", &options_.no_sources},
            {"--dry-run", "", "say what would change and stop", &options_.dry_run},
            {"--output-json", "FILE", "write a summary file", &options_.output_json},
            {"--json", "", "plan and result as JSON", &options_.json},
            {"-q,--quiet", "", "no progress", &options_.quiet}};
        for (AllowFlag& flag : options_.allow) {
            rows.push_back({std::string{upload::flag_of(flag.refusal)},
                            "",
                            std::string{flag.help},
                            &flag.given});
        }
        return rows;
    }

    ExitCode run(const Services& services) override {
        Prepared prepared;
        if (options_.output_json && !options_.dry_run) {
            const auto writable =
                check_writable(services.fs, services.current_directory / *options_.output_json);
            if (!writable) {
                return usage(services, "--output-json: " + writable.error().to_text());
            }
        }
        if (const ExitCode code = prepare(services, prepared); code != ExitCode::ok) {
            return code;
        }
        return publish(services, prepared);
    }

private:
    ExitCode prepare(const Services& services, Prepared& out) {
        Diagnostics diagnostics;
        const auto settings = read_settings({}, services, diagnostics);
        render_diagnostics(diagnostics, {}, services.terminal);
        if (!settings) {
            return ExitCode::usage;
        }
        out.settings = *settings;
        const auto found = find_variants(options_.directory, services);
        if (!found) {
            return found.code();
        }
        if (const auto read = read_project(services, out); !read) {
            return ExitCode::configuration;
        }
        if (const auto read = read_input(services, *found, out); !read) {
            render_error(read.error(), services.terminal);
            return ExitCode::failed;
        }
        if (const ExitCode code = judge(services, out); code != ExitCode::ok) {
            return code;
        }
        return find_target(services, out);
    }

    /// build.toml is wanted only for what no flag says, so its absence is no error here.
    bool read_project(const Services& services, Prepared& out) const {
        out.root = resolve_directory(options_.directory, services);
        auto text =
            project::read_project(services.fs, services.current_directory, options_.directory);
        if (!text) {
            return true;
        }
        const std::string name = text->config_name;
        const std::string content = text->config_text;
        Diagnostics diagnostics;
        out.project = project::judge_project(std::move(*text), project::Validate::no, diagnostics);
        if (!out.project && !options_.repo_id) {
            render_diagnostics(diagnostics, {{name, content}}, services.terminal);
            return false;
        }
        return true;
    }

    /// What is too large to hash before the first request is hashed while it is sent. Where a wrong
    /// digest is allowed, or nothing is sent, there is nothing to gain.
    Result<void>
    read_packages(const Services& services, const project::Discovery& found, Prepared& out) const {
        out.reader.emplace(services.fs,
                           services.clock,
                           project::HashCache::open(services.fs, hash_cache_path(services, out)),
                           sys::read_host_limits(services.fs).cpus);
        const bool sends = !options_.dry_run && !allowed().contains(upload::Refusal::wrong_digest);
        KB_TRY(out.input.packages,
               out.reader->read(found.variants,
                                sends ? project::Trust::claims : project::Trust::nothing));
        save_hashes(services, out);
        return {};
    }

    /// Only saves time: a place that cannot be written is no reason to stop.
    static void save_hashes(const Services& services, Prepared& prepared) {
        if (services.fs.make_directories(hash_cache_path(services, prepared).parent_path())) {
            [[maybe_unused]] const Result<void> saved = prepared.reader->save();
        }
    }

    Result<void>
    read_input(const Services& services, const project::Discovery& found, Prepared& out) const {
        KB_TRY(read_packages(services, found, out));
        KB_TRY(read_extras(services.fs, found.place, out.root, out.input));
        KB_TRY(out.untrue_statements,
               read_statements(services.fs,
                               options_.no_sources ? Sources::leave_out : Sources::publish,
                               out.input));
        return {};
    }

    [[nodiscard]] std::set<upload::Refusal> allowed() const {
        std::set<upload::Refusal> allowed;
        for (const AllowFlag& flag : options_.allow) {
            if (flag.given) {
                allowed.insert(flag.refusal);
            }
        }
        return allowed;
    }

    ExitCode judge(const Services& services, const Prepared& prepared) const {
        const auto suppressions = find_suppressions(options_.directory, services);
        if (!suppressions) {
            return ExitCode::configuration;
        }
        std::map<std::string, upload::CheckState> checked;
        const build::InspectOptions inspection{
            .threads = sys::read_host_limits(services.fs).cpus,
            .machine_places = find_machine_places(options_.directory, services)};
        for (const package::Package& package : prepared.input.packages) {
            auto libraries = build::inspect_libraries(services.fs, package.directory, inspection);
            if (!libraries) {
                render_error(libraries.error(), services.terminal);
                return ExitCode::failed;
            }
            const check::Report report =
                build::run_checks({.variant = package.variant,
                                   .libraries = std::move(*libraries),
                                   .promise = build::promise_of(package.variant, &package.metadata),
                                   .suppressions = *suppressions,
                                   .machine_places = inspection.machine_places});
            checked[package.variant] = {.failed = build::failed_checks(report)};
        }
        Diagnostics diagnostics;
        upload::preflight({.packages = prepared.input.packages,
                           .checked = std::move(checked),
                           .untrue_statements = prepared.untrue_statements,
                           .allowed = allowed()},
                          diagnostics);
        render_diagnostics(diagnostics, {}, services.terminal);
        return diagnostics.has_errors() ? ExitCode::failed : ExitCode::ok;
    }

    static ExitCode usage(const Services& services, const std::string& text) {
        services.terminal.err("error: " + text + "\n");
        return ExitCode::usage;
    }

    ExitCode find_target(const Services& services, Prepared& out) const {
        const config::Hub hub = out.project ? out.project->config.hub : config::Hub{};
        if (!options_.repo_id && !hub.repo_id) {
            return usage(services,
                         "no repository is named: pass --repo-id OWNER/NAME, or write "
                         "'repo-id' to [general.hub] of build.toml");
        }
        const auto type = hub::parse_repo_type(options_.repo_type);
        if (!type || (*type != hub::RepoType::kernels && *type != hub::RepoType::models)) {
            return usage(services,
                         fmt::format("--repo-type knows 'kernel' and 'model', not '{}'",
                                     escape_control(options_.repo_type)));
        }
        const std::string id = options_.repo_id ? *options_.repo_id : hub.repo_id->value;
        auto repo = hub::RepoId::parse(*type, id);
        if (!repo) {
            return usage(services, repo.error().to_text());
        }
        out.repo = std::move(*repo);
        const auto version = upload::version_branch(out.input.packages);
        if (!options_.branch && !hub.branch && !version) {
            return usage(services, "the variants have different versions: name the --branch");
        }
        out.input.branch =
            options_.branch ? *options_.branch : (hub.branch ? hub.branch->value : *version);
        if (const auto name = hub::RefName::branch(out.input.branch); !name) {
            return usage(services, name.error().to_text());
        }
        auto endpoint = upload::find_endpoint(
            {.flag = options_.endpoint, .config = out.settings.endpoint}, services.environment);
        if (!endpoint) {
            return usage(services, endpoint.error().to_text());
        }
        out.endpoint = std::move(*endpoint);
        auto token = upload::find_token(services.environment, services.fs);
        if (!token) {
            return usage(services, token.error().to_text());
        }
        out.token = std::move(*token);
        return ExitCode::ok;
    }

    void show_target(const Services& services, const Prepared& prepared) const {
        services.terminal.err(fmt::format("registry {} ({}), token: {}\n",
                                          prepared.endpoint->url.redacted(),
                                          prepared.endpoint->source,
                                          prepared.token ? prepared.token->source : "none"));
        const auto warning = upload::cleartext_warning(prepared.endpoint->url);
        if (warning && prepared.token) {
            services.terminal.err("warning: " + *warning + "\n");
        }
    }

    /// In the project's own folder; a directory without build.toml has none of ours.
    static Result<sys::Path> journal_path(const Services& services, const Prepared& prepared) {
        if (prepared.project) {
            KB_TRY(project::make_state_directory(services.fs, *prepared.project));
            return prepared.project->state() / "upload.journal";
        }
        return outside_project(prepared, ".journal");
    }

    static sys::Path outside_project(const Prepared& prepared, std::string_view extension) {
        std::string name = digest::sha256(prepared.root.string()).hex().substr(0, 32);
        name += extension;
        return prepared.settings.store.parent_path() / "upload" / name;
    }

    /// Shared with the build, which hashes the same files. A project folder that nothing was built
    /// in is left alone.
    static sys::Path hash_cache_path(const Services& services, const Prepared& prepared) {
        if (prepared.project && sys::exists(services.fs, prepared.project->state())) {
            return build::Workspace{.state = prepared.project->state()}.hashes();
        }
        return outside_project(prepared, ".hashes");
    }

    ExitCode publish(const Services& services, Prepared& prepared) {
        if (!options_.quiet) {
            show_target(services, prepared);
        }
        ProgressLine progress{services.terminal, services.clock};
        bool is_as_claimed = true;
        upload::PublishRequest request{
            .input = prepared.input,
            .mode = options_.create_pr ? upload::Mode::pull_request : upload::Mode::commit,
            .dry_run = options_.dry_run ? upload::DryRun::yes : upload::DryRun::no,
            .replace = options_.replace ? upload::Replace::yes : upload::Replace::no,
            .visibility =
                options_.is_private ? hub::Visibility::private_ : hub::Visibility::public_,
            .confirm = [&prepared, &is_as_claimed]() -> Result<void> {
                KB_TRY(is_as_claimed, prepared.reader->check_claims(prepared.input.packages));
                return is_as_claimed ? Result<void>{}
                                     : Error{.code = ErrorCode::corrupt,
                                             .message = "a file is not what its digest says"};
            }};
        if (!options_.quiet) {
            request.note = [&progress](const std::string& text) {
                progress.stage(text);
            };
            request.transfer.progress = [&progress, last = ~std::uint64_t{0}](
                                            const upload::TransferProgress& p) mutable {
                const std::uint64_t mebibytes = p.bytes_done >> 20U;
                if (mebibytes != std::exchange(last, mebibytes)) {
                    progress.count(mebibytes,
                                   p.bytes_total >> 20U,
                                   fmt::format("MiB, {} of {} files", p.blobs_done, p.blobs_total));
                }
            };
        }
        if (!options_.dry_run) {
            auto journal = journal_path(services, prepared);
            if (!journal) {
                render_error(journal.error(), services.terminal);
                return ExitCode::failed;
            }
            request.journal = std::move(*journal);
        }
        const auto report = send(services, prepared, request, progress);
        progress.clear();
        save_hashes(services, prepared);
        if (!is_as_claimed) {
            return judge(services, prepared); // says which, as it does before sending
        }
        if (!report) {
            render_error(report.error(), services.terminal);
            return exit_code_for(report.error(), ExitCode::remote);
        }
        return conclude_upload(*report, services);
    }

    static Result<upload::UploadReport> send(const Services& services,
                                             const Prepared& prepared,
                                             const upload::PublishRequest& request,
                                             ProgressLine& progress) {
        const auto client = http::make_curl_client(
            {.user_agent = "kernel-builder/" KB_VERSION,
             .ca_bundle = sys::lookup(services.environment, "CURL_CA_BUNDLE").value_or(""),
             .cancelled = [] {
                 return sys::interrupted();
             }});
        const http::Retrier retrier{
            .client = client.get(),
            .clock = &services.clock,
            .random =
                [] {
                    std::uint64_t value = 0;
                    const std::string bytes = digest::random_bytes(sizeof value);
                    std::memcpy(&value, bytes.data(), sizeof value);
                    return value;
                },
            .on_wait =
                [&progress](const http::RetryNotice& notice) {
                    progress.stage(fmt::format(
                        "{}: {}; trying again in {}",
                        notice.url,
                        notice.reason,
                        human_seconds(static_cast<double>(notice.wait.count()) / 1000)));
                }};
        const upload::HubClient hub{retrier,
                                    prepared.endpoint->url,
                                    prepared.token ? prepared.token->secret : http::Secret{},
                                    *prepared.repo};
        return upload::publish(request, {.hub = &hub, .fs = &services.fs});
    }

    ExitCode conclude_upload(const upload::UploadReport& report, const Services& services) const {
        if (options_.output_json && !options_.dry_run) {
            const auto written =
                services.fs.write_atomic(services.current_directory / *options_.output_json,
                                         document::write_json(upload::to_output_json(report)),
                                         FileMode::regular);
            if (!written) {
                render_error(written.error(), services.terminal);
                return ExitCode::failed;
            }
        }
        if (options_.json) {
            services.terminal.out(document::write_json(upload::to_json(report)));
        } else {
            render(report, services);
        }
        return ExitCode::ok;
    }

    static void render(const upload::UploadReport& report, const Services& services) {
        Terminal& terminal = services.terminal;
        switch (report.status) {
        case upload::UploadStatus::no_changes:
            terminal.out("No changes to upload.\n");
            return;
        case upload::UploadStatus::planned:
            render_plan(report, terminal);
            return;
        case upload::UploadStatus::uploaded:
            terminal.out(fmt::format("Kernel uploaded: {}\n", report.url));
            break;
        case upload::UploadStatus::pull_request_created:
            for (const upload::BranchResult& branch : report.branches) {
                if (branch.pull_request_url) {
                    terminal.out(
                        fmt::format("Pull request created: {}\n", *branch.pull_request_url));
                }
            }
            break;
        }
        terminal.err(fmt::format("sent {}, {} were there already; {} read back\n",
                                 human_bytes(report.transfer.bytes_sent),
                                 counted(report.transfer.blobs_present, "large file"),
                                 counted(report.verified, "file")));
    }

    static void render_plan(const upload::UploadReport& report, Terminal& terminal) {
        for (const upload::BranchPlan& plan : report.plan.branches) {
            terminal.out(plan_line(plan));
            for (const upload::LocalFile& file : plan.adds) {
                terminal.out(fmt::format("  + {}  {}\n", file.path.text(), human_bytes(file.size)));
            }
            for (const RelPath& path : plan.deletes) {
                terminal.out(fmt::format("  - {}\n", path.text()));
            }
        }
        terminal.out(fmt::format("at most {} to send\n", human_bytes(report.plan.bytes())));
        if (!report.plan.refused_variants.empty()) {
            terminal.err(
                fmt::format("warning: {} published with other content: --replace is needed\n",
                            quoted_list(report.plan.refused_variants)));
        }
    }

    UploadOptions options_{};
};

} // namespace

std::unique_ptr<Command> make_upload() {
    return std::make_unique<UploadCommand>();
}

} // namespace kb::cli
