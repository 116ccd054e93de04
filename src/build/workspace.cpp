// SPDX-License-Identifier: Apache-2.0
#include "build/workspace.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "generate/package_files.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::build {

namespace {

Result<void>
write_input(sys::FileSystem& fs, const sys::Path& path, std::string_view content, FileMode mode) {
    KB_TRY(fs.make_directories(path.parent_path()));
    KB_TRY(fs.write_scratch(path, content, mode));
    return fs.set_mtime(path, backend::kSourceDateEpoch);
}

/// What the compiler is likely to need for the same source again, whatever torch or flags.
std::string peak_key(const plan::Tu& tu) {
    return fmt::format("{} {}{}",
                       backend::to_text(tu.kind),
                       tu.source.text(),
                       tu.torch.empty() ? "" : " torch");
}

// "<kind> <source>[ torch]\t<bytes>"
std::map<std::string, std::uint64_t> parse_peaks(std::string_view text) {
    std::map<std::string, std::uint64_t> out;
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t tab = line.find('\t');
        if (tab == std::string_view::npos) {
            continue;
        }
        if (const auto bytes = parse_unsigned(line.substr(tab + 1))) {
            out.emplace(line.substr(0, tab), *bytes);
        }
    }
    return out;
}

std::map<std::string, std::uint64_t> load_peaks(sys::FileSystem& fs, const Workspace& workspace) {
    const Result<std::string> text = fs.read_file(workspace.peaks());
    return text ? parse_peaks(*text) : std::map<std::string, std::uint64_t>{};
}

} // namespace

Result<void> materialise(sys::FileSystem& fs,
                         const Workspace& workspace,
                         const project::Project& project,
                         const plan::SourceSnapshot& snapshot,
                         std::span<const FileImage> scripts) {
    // Made anew: a header that is no longer declared must not be found by an #include.
    KB_TRY(fs.remove_tree(workspace.source()));
    KB_TRY(fs.make_directories(workspace.source()));
    for (const plan::SourceFile& file : snapshot.files) {
        const sys::Path origin = project.root() / file.path.text();
        std::string text;
        if (file.path.text() == generate::kRegistrationHeader && !sys::exists(fs, origin)) {
            text = generate::registration_header();
        } else {
            KB_TRY(text, fs.read_file(origin));
        }
        if (digest::sha256(text) != file.sha256) {
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format(
                             "'{}' changed while the build was being planned; run it again",
                             file.path.text())};
        }
        KB_TRY(write_input(fs, workspace.source() / file.path.text(), text, FileMode::regular));
    }
    for (const FileImage& script : scripts) {
        KB_TRY(write_input(fs, workspace.work() / script.path.text(), script.content, script.mode));
    }
    return {};
}

std::map<std::string, std::uint64_t>
read_peaks(sys::FileSystem& fs, const Workspace& workspace, const plan::Plan& plan) {
    const std::map<std::string, std::uint64_t> known = load_peaks(fs, workspace);
    std::map<std::string, std::uint64_t> out;
    for (const plan::Tu& tu : plan.tus) {
        if (const auto found = known.find(peak_key(tu)); found != known.end()) {
            out.emplace(tu.object, found->second);
        }
    }
    return out;
}

Result<void> write_peaks(sys::FileSystem& fs,
                         const Workspace& workspace,
                         const plan::Plan& plan,
                         std::span<const LaunchRecord> log) {
    if (log.empty()) {
        return {};
    }
    std::map<std::string, std::uint64_t> known = load_peaks(fs, workspace);
    for (const LaunchRecord& record : log) {
        const auto tu = std::ranges::find(plan.tus, record.object, &plan::Tu::object);
        if (tu != plan.tus.end() && record.exit_code == 0) {
            known[peak_key(*tu)] = record.peak_bytes;
        }
    }
    std::string text;
    for (const auto& [key, bytes] : known) {
        text += fmt::format("{}\t{}\n", key, bytes);
    }
    KB_TRY(fs.make_directories(workspace.peaks().parent_path()));
    return fs.write_atomic(workspace.peaks(), text, FileMode::regular);
}

} // namespace kb::build
