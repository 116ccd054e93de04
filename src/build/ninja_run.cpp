// SPDX-License-Identifier: Apache-2.0
#include "build/ninja_run.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace kb::build {

void NinjaParser::feed(std::string_view chunk) {
    pending_ += chunk;
    std::size_t start = 0;
    for (std::size_t eol = pending_.find('\n'); eol != std::string::npos;
         eol = pending_.find('\n', start)) {
        line(std::string_view{pending_}.substr(start, eol - start));
        start = eol + 1;
    }
    pending_.erase(0, start);
}

void NinjaParser::finish() {
    if (!pending_.empty()) {
        line(pending_);
        pending_.clear();
    }
}

// Ninja prints a finished edge as "<status><description>", then "FAILED: <outputs>" and the command
// when it failed, then what the command printed:
//     @kb 3 40 CUDA relu.cu [9.0]
//     FAILED: tu/ab12.o
//     /toolchain/cuda-13.0/bin/nvcc ...
//     relu.cu(3): error: ...
void NinjaParser::line(std::string_view text) {
    constexpr std::string_view kMark = "@kb ";
    constexpr std::string_view kFailed = "FAILED: ";
    if (text.starts_with(kMark)) {
        in_failure_ = false;
        progress(text.substr(kMark.size()));
    } else if (text.starts_with(kFailed)) {
        in_failure_ = true;
        const std::string_view outputs = trim(text.substr(kFailed.size()));
        failures_.push_back({.output = std::string{outputs.substr(0, outputs.find(' '))}});
    } else if (text.starts_with("ninja: ")) {
        in_failure_ = false;
        messages_ += std::string{text} + "\n";
    } else if (in_failure_) {
        failures_.back().text += std::string{text} + "\n";
    } else {
        said(text);
    }
}

void NinjaParser::progress(std::string_view text) {
    step_ = {};
    warned_ = false;
    const auto fields = split(text, ' ');
    if (fields.size() < 3) {
        return;
    }
    const auto finished = parse_unsigned(fields[0]);
    const auto total = parse_unsigned(fields[1]);
    step_.what = text.substr(fields[0].size() + fields[1].size() + 2);
    if (finished && total && on_progress_) {
        on_progress_({.finished = *finished, .total = *total, .what = step_.what});
    }
}

/// A warning is kept with the lines around it: the place before it, the excerpt after it.
void NinjaParser::said(std::string_view text) {
    if (step_.what.empty() || step_.text.size() > kWarningBytes) {
        return;
    }
    step_.text += std::string{text} + "\n";
    if (step_.text.size() > kWarningBytes) {
        step_.text += "...\n";
    }
    if (warned_) {
        warnings_.back().text = step_.text;
    } else if (is_warning(text)) {
        warned_ = true;
        warnings_.push_back(step_);
    }
}

bool is_warning(std::string_view line) {
    // "a.cpp:1:2: warning: ...", "a.cu(3): warning #177-D: ...", "ptxas warning : Registers are
    // spilled ...", "ptxas info : (C7510) Potential Performance Loss: wgmma ... serialized ..."
    return line.find("warning:") != std::string_view::npos ||
           line.find("warning #") != std::string_view::npos || line.starts_with("ptxas warning") ||
           line.starts_with("nvcc warning") ||
           line.find("Potential Performance Loss") != std::string_view::npos;
}

sandbox::SandboxSpec ninja_sandbox(const NinjaRequest& request) {
    const bool mounts = request.view.empty();
    const std::string work = mounts ? std::string{backend::kWorkMount} : request.work.string();
    const std::string cache = mounts ? std::string{backend::kCacheMount} : request.cache.string();
    sandbox::SandboxSpec spec{.environment = request.environment, .working_directory = work};
    if (mounts) {
        spec.mounts = request.roots;
        spec.links = {{.inside = "/bin", .target = "usr/bin"},
                      {.inside = "/lib", .target = "usr/lib"},
                      {.inside = "/lib64", .target = "usr/lib64"}};
        spec.mounts.push_back(
            {.host = request.source, .inside = std::string{backend::kSourceMount}});
    }
    spec.mounts.push_back(
        {.host = request.work, .inside = work, .access = sandbox::Access::read_write});
    // The shell and ccache split what they are told to run at spaces, which a path of the host may
    // hold: there the launcher is named without its folder, which comes first: a 'launch' of the
    // host is another program.
    std::string launcher = work + "/launch/launch";
    if (!mounts) {
        launcher = "launch";
        std::string& path = spec.environment["PATH"];
        path = work + "/launch" + (path.empty() ? "" : ":") + path;
    }
    spec.environment["NINJA_STATUS"] = std::string{kNinjaStatus};
    spec.environment["KB_LAUNCH_DIR"] = work + "/launch";
    if (request.cache.empty()) {
        spec.environment["kb_launch"] = launcher;
    } else {
        spec.mounts.push_back(
            {.host = request.cache, .inside = cache, .access = sandbox::Access::read_write});
        spec.environment["kb_launch"] = "ccache";
        spec.environment["CCACHE_DIR"] = cache;
        // The cache is asked first; only a miss takes memory tokens.
        spec.environment["CCACHE_PREFIX"] = launcher;
        // Roots have one fixed time, so a compiler is known by its content.
        spec.environment["CCACHE_COMPILERCHECK"] = "content";
        spec.environment["CCACHE_NOHASHDIR"] = "1";
    }
    spec.argv = {mounts ? "/usr/bin/ninja" : (request.view / "bin/ninja").string(),
                 "-j",
                 fmt::format("{}", request.jobs),
                 "-k",
                 request.fail_fast ? "1" : "0"};
    spec.argv.insert(spec.argv.end(), request.targets.begin(), request.targets.end());
    return spec;
}

namespace {

/// Lists of folders (PATH, the compiler's own) are divided by colons, which nothing escapes.
Result<void> refuse_colons(const NinjaRequest& request) {
    if (request.view.empty()) {
        return {};
    }
    std::vector<sys::Path> paths{request.work, request.source, request.view, request.cache};
    for (const sandbox::Mount& root : request.roots) {
        paths.push_back(root.host);
    }
    for (const sys::Path& path : paths) {
        if (path.string().find(':') != std::string::npos) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format(
                             "'{}' holds a ':', which sandbox level '{}' cannot build with: move "
                             "the project or the store, or use '--sandbox namespaces'",
                             path.string(),
                             sandbox::to_text(request.level))};
        }
    }
    return {};
}

} // namespace

Result<NinjaResult> run_ninja(const NinjaRequest& request,
                              sys::ProcessRunner& processes,
                              const std::function<void(const NinjaProgress&)>& on_progress) {
    KB_TRY(refuse_colons(request));
    KB_TRY(sys::ProcessSpec process,
           sandbox::confine(ninja_sandbox(request), request.level, request.tools));
    NinjaParser parser{on_progress};
    std::string errors;
    process.on_output = [&](std::string_view chunk) {
        parser.feed(chunk);
    };
    Result<sys::ProcessResult> ran = processes.run(process);
    if (!ran) {
        return std::move(ran).context("starting Ninja in the sandbox").error();
    }
    parser.finish();
    NinjaResult result{.status = ran->status,
                       .failures = parser.failures(),
                       .warnings = parser.warnings(),
                       .messages = parser.messages(),
                       .wall_seconds = ran->wall_seconds};
    if (!result.status.ok() && result.failures.empty() && result.messages.empty()) {
        result.messages = ran->err; // bubblewrap's own words
    }
    return result;
}

} // namespace kb::build
