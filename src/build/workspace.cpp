// SPDX-License-Identifier: Apache-2.0
#include "build/workspace.hpp"

#include "backend/mounts.hpp"
#include "base/text.hpp"
#include "build/learnt.hpp"
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

/// Never fails: the store may be somebody else's, and what is forgotten is learnt again.
void save_classes(sys::FileSystem& fs, const sys::Path& path, const CostTable& classes) {
    [[maybe_unused]] const Result<void> saved = save_costs(fs, path, classes);
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
    const CostTable known = load_costs(fs, workspace.peaks());
    std::map<std::string, std::uint64_t> out;
    for (const plan::Tu& tu : plan.tus) {
        if (const auto found = known.find(step_key(tu)); found != known.end()) {
            out.emplace(tu.object, found->second.peak_bytes);
        }
    }
    return out;
}

Result<void> learn_costs(sys::FileSystem& fs,
                         const Workspace& workspace,
                         const sys::Path& classes_path,
                         const plan::Plan& plan,
                         std::span<const LaunchRecord> log) {
    if (log.empty()) {
        return {};
    }
    CostTable steps = load_costs(fs, workspace.peaks());
    CostTable classes = load_costs(fs, classes_path);
    for (const LaunchRecord& record : log) {
        const auto tu = std::ranges::find(plan.tus, record.object, &plan::Tu::object);
        if (tu != plan.tus.end() && record.exit_code == 0) {
            const auto object = fs.stat(workspace.work() / record.object);
            learn_step(*tu, record, object ? object->size : 0, steps, classes);
        }
    }
    KB_TRY(save_costs(fs, workspace.peaks(), steps));
    save_classes(fs, classes_path, classes);
    return {};
}

Result<void> learn_package(sys::FileSystem& fs,
                           const Workspace& workspace,
                           const sys::Path& classes_path,
                           const plan::PlannedVariant& variant,
                           const sys::Path& package) {
    Cost cost;
    KB_TRY(const std::vector<sys::WalkEntry> entries, sys::walk(fs, package));
    for (const sys::WalkEntry& entry : entries) {
        cost.bytes += entry.info.type == sys::FileType::regular ? entry.info.size : 0;
    }
    if (const Result<std::string> log = fs.read_file(workspace.work() / ".ninja_log")) {
        const auto seconds = parse_ninja_log(*log);
        if (const auto found = seconds.find(variant.link.output); found != seconds.end()) {
            cost.cpu_seconds = found->second;
        }
    }
    CostTable steps = load_costs(fs, workspace.peaks());
    CostTable classes = load_costs(fs, classes_path);
    learn_link(variant, cost, steps, classes);
    KB_TRY(save_costs(fs, workspace.peaks(), steps));
    save_classes(fs, classes_path, classes);
    return {};
}

} // namespace kb::build
