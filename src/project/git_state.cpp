// SPDX-License-Identifier: Apache-2.0
#include "project/git_state.hpp"

#include "base/text.hpp"

namespace kb::project {

namespace {

Result<sys::ProcessResult> git(sys::ProcessRunner& processes,
                               const sys::EnvironmentMap& environment,
                               const sys::Path& directory,
                               std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "git");
    sys::ProcessSpec spec{.argv = std::move(arguments)};
    sys::EnvironmentMap variables = environment;
    variables["LC_ALL"] = "C";
    variables["GIT_OPTIONAL_LOCKS"] = "0"; // a look must not write the index
    spec.environment = std::move(variables);
    spec.working_directory = directory;
    return processes.run(spec);
}

} // namespace

GitState read_git_state(sys::ProcessRunner& processes,
                        const sys::EnvironmentMap& environment,
                        const sys::Path& directory) {
    const auto head = git(processes, environment, directory, {"rev-parse", "--verify", "HEAD"});
    if (!head) {
        return {.reason = head.error().code == ErrorCode::not_found ? "git is not installed"
                                                                    : head.error().to_text()};
    }
    if (!head->status.ok()) {
        return {.reason = escape_control(trim(head->err))};
    }
    const auto status =
        git(processes,
            environment,
            directory,
            {"status", "--porcelain", "--", ".", ":(exclude)build", ":(exclude).kernel-builder"});
    if (!status || !status->status.ok()) {
        // The commit is known, but not whether it is what was built: that counts as dirty.
        return {.commit = std::string{trim(head->out)},
                .is_dirty = true,
                .reason = "git status failed"};
    }
    return {.commit = std::string{trim(head->out)}, .is_dirty = !trim(status->out).empty()};
}

} // namespace kb::project
