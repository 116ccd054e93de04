// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "toolchain/providers/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::toolchain {
namespace {

using backend::Requirement;

constexpr std::size_t kCommitLength = 40;

/// What a hook or an editor sets for the repository that it works in: ours is another one.
constexpr std::array<std::string_view, 9> kOfAnotherRepository{"GIT_DIR",
                                                               "GIT_WORK_TREE",
                                                               "GIT_INDEX_FILE",
                                                               "GIT_OBJECT_DIRECTORY",
                                                               "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                                               "GIT_COMMON_DIR",
                                                               "GIT_NAMESPACE",
                                                               "GIT_GRAFT_FILE",
                                                               "GIT_SHALLOW_FILE"};

/// "NVIDIA-cutlass-<commit>.tar": the commit is pinned by the name and the bytes by the digest.
std::string file_name(const Requirement& requirement, std::string_view commit) {
    return fmt::format("{}-{}.tar", replace_all(requirement.name, "/", "-"), commit);
}

bool is_commit(std::string_view text) {
    return text.size() == kCommitLength && std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

Result<std::string> commit_of(std::string_view file) {
    constexpr std::string_view kEnd = ".tar";
    const std::size_t length = kCommitLength + kEnd.size();
    if (file.size() > length && file.ends_with(kEnd)) {
        const std::string_view commit = file.substr(file.size() - length, kCommitLength);
        if (is_commit(commit)) {
            return std::string{commit};
        }
    }
    return Error{.code = ErrorCode::corrupt,
                 .message =
                     fmt::format("'{}' names no commit; run 'kernel-builder lock --update'", file)};
}

/// git with the user's configuration (credentials, proxies, certificates), save what would change
/// the bytes of files or stop for a question.
class Git {
public:
    Git(const Machine& machine, sys::Path directory)
        : machine_{machine}, directory_{std::move(directory)} {}

    Result<std::string> run(std::vector<std::string> words) const {
        std::vector<std::string> argv{"git",
                                      "-c",
                                      "core.autocrlf=false",
                                      "-c",
                                      "core.eol=lf",
                                      "-c",
                                      "core.attributesFile=/dev/null",
                                      "-c",
                                      "tar.umask=0022"};
        argv.insert(argv.end(), words.begin(), words.end());
        sys::EnvironmentMap environment = machine_.environment;
        for (const std::string_view name : kOfAnotherRepository) {
            environment.erase(std::string{name});
        }
        environment["GIT_TERMINAL_PROMPT"] = "0";
        environment["GIT_ATTR_NOSYSTEM"] = "1";
        const Machine quiet{machine_.fs, machine_.processes, environment, machine_.clock};
        const auto result = run_tool(quiet, std::move(argv), directory_);
        if (!result && result.error().code == ErrorCode::not_found) {
            return Error{.code = ErrorCode::not_found,
                         .message = "no program 'git' in PATH, which fetches repositories: install "
                                    "git, or give a directory of files with --from"};
        }
        if (!result) {
            return result.error();
        }
        if (!result->status.ok()) {
            return Error{.code = ErrorCode::transient,
                         .message = fmt::format("git {} failed ({}): {}",
                                                words.front(),
                                                result->status.to_text(),
                                                escape_control(trim(result->err)))};
        }
        return result->out;
    }

private:
    const Machine& machine_;
    sys::Path directory_;
};

Result<std::string> address_of(const Requirement& requirement, const FetchOptions& options) {
    KB_TRY(std::string address,
           place_of(requirement,
                    {.name = requirement.name, .version = requirement.version},
                    options.sources));
    if (address.starts_with('-')) {
        return Error{.code = ErrorCode::denied,
                     .message = fmt::format("the address of '{}' is none, it begins with '-': "
                                            "change it in [sources] of config.toml",
                                            requirement.id())};
    }
    return address;
}

/// The version cannot begin with '-' either: no Requirement does.
std::vector<std::string> fetch_words(const std::string& address, const std::string& what) {
    return {"fetch", "-q", "--depth=1", "--no-tags", "--", address, what};
}

/// The commit in `git`'s repository: by itself where the server gives any commit, else by the name
/// it had when it was pinned, which must still lead to it.
Result<void> fetch_commit(const Git& git,
                          const Requirement& requirement,
                          const std::string& commit,
                          const std::string& address) {
    KB_TRY(git.run({"init", "-q", "."}));
    const auto direct = git.run(fetch_words(address, commit));
    if (direct) {
        return {};
    }
    const auto named = git.run(fetch_words(address, requirement.version));
    if (!named) {
        return named.error();
    }
    KB_TRY(const std::string found, git.run({"rev-parse", "FETCH_HEAD^{commit}"}));
    if (trim(found) == commit) {
        return {};
    }
    return Error{.code = ErrorCode::not_found,
                 .message = fmt::format(
                     "'{}' is commit {} now, {} is pinned and not served: run 'kernel-builder lock "
                     "--update' if the new one is to be trusted",
                     requirement.id(),
                     trim(found),
                     commit)};
}

/// Uncompressed, so that its bytes do not depend on a version of zlib.
Result<void> pack(const Git& git, const std::string& commit, const sys::Path& target) {
    KB_TRY(git.run({"archive", "--format=tar", "--output=" + target.string(), commit}));
    return {};
}

Result<void> download(std::span<const plan::LockEntry> entries,
                      const sys::Path& directory,
                      const Machine& machine,
                      const FetchOptions& options) {
    for (const plan::LockEntry& entry : entries) {
        KB_TRY(const Requirement requirement, Requirement::parse(entry.id));
        KB_TRY(const std::string commit, commit_of(entry.file));
        KB_TRY(const std::string address, address_of(requirement, options));
        KB_TRY(const TemporaryFolder folder, TemporaryFolder::make(machine, "git"));
        const Git git{machine, folder.path()};
        KB_TRY(fetch_commit(git, requirement, commit, address));
        KB_TRY(pack(git, commit, std::filesystem::absolute(directory / entry.file)));
    }
    return {};
}

/// The version is a tag, a branch or a commit.
Result<std::vector<plan::LockEntry>> resolve(const Requirement& requirement,
                                             const backend::Platform& /*platform*/,
                                             const Machine& machine,
                                             const FetchOptions& options) {
    if (options.network == Network::offline) {
        return Error{.code = ErrorCode::not_found,
                     .message = fmt::format("'{}' cannot be pinned offline", requirement.id())};
    }
    KB_TRY(const std::string address, address_of(requirement, options));
    KB_TRY(const TemporaryFolder folder, TemporaryFolder::make(machine, "git"));
    KB_TRY(machine.fs.make_directories(folder.path() / "work"));
    const Git git{machine, folder.path() / "work"};
    KB_TRY(git.run({"init", "-q", "."}));
    KB_TRY(git.run(fetch_words(address, requirement.version)));
    KB_TRY(const std::string head, git.run({"rev-parse", "FETCH_HEAD^{commit}"}));
    const std::string commit{trim(head)};
    const std::string file = file_name(requirement, commit);
    KB_TRY(pack(git, commit, std::filesystem::absolute(folder.path() / file)));
    return pin_file(machine, requirement, folder.path() / file);
}

/// The slice is a folder of the repository; without one all of it is taken.
store::UnpackRules rules(const Requirement& requirement) {
    if (requirement.slice.empty()) {
        return {};
    }
    return {.keep = {{requirement.slice + "/", requirement.slice + "/"}}};
}

std::string refusal(const Requirement& /*requirement*/) {
    return {};
}

} // namespace

Provider git_provider() {
    return {.name = "git",
            .source = "git",
            .refusal = refusal,
            .resolve = resolve,
            .download = download,
            .archive = [](std::string_view /*file*/) { return store::ArchiveKind::tar; },
            .rules = rules};
}

} // namespace kb::toolchain
