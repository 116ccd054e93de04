// SPDX-License-Identifier: Apache-2.0
#include "build/reproduce.hpp"

#include "binfmt/elf.hpp"
#include "project/variant_dirs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kb::build {

namespace {

std::uint64_t first_difference(std::string_view a, std::string_view b) {
    const auto at = std::ranges::mismatch(a, b);
    return static_cast<std::uint64_t>(at.in1 - a.begin());
}

/// Sections by name in file order; none for a file that is no ELF file or has none.
std::vector<std::pair<std::string, std::string_view>> sections_of(std::string_view content) {
    const auto bytes = std::as_bytes(std::span{content.data(), content.size()});
    std::vector<std::pair<std::string, std::string_view>> out;
    if (!binfmt::is_elf(bytes)) {
        return out;
    }
    auto sections = binfmt::read_elf_sections(binfmt::MemorySource{bytes});
    if (!sections) {
        return out;
    }
    for (binfmt::ElfSection& section : *sections) {
        out.emplace_back(std::move(section.name),
                         content.substr(section.range.offset, section.range.size));
    }
    return out;
}

FileDifference difference_in(std::string file, std::string_view first, std::string_view second) {
    FileDifference out{
        .file = std::move(file), .offset = first_difference(first, second), .what = "changed"};
    const auto ours = sections_of(first);
    const auto theirs = sections_of(second);
    for (const auto& [name, content] : ours) {
        const auto& wanted = name;
        const auto other =
            std::ranges::find_if(theirs, [&](const auto& row) { return row.first == wanted; });
        const std::string_view counterpart =
            other == theirs.end() ? std::string_view{} : other->second;
        if (name != ".note.gnu.build-id" && content != counterpart) {
            out.section = name;
            out.offset = first_difference(content, counterpart);
            break;
        }
    }
    return out;
}

/// The sources and package files of the project, and nothing else, in another place.
Result<project::Project>
copy_project(sys::FileSystem& fs, const BuildInput& input, const sys::Path& root) {
    const auto copy = [&](const sys::Path& relative) -> Result<void> {
        KB_TRY(fs.make_directories((root / relative).parent_path()));
        return fs.copy_file(input.project.root() / relative, root / relative);
    };
    KB_TRY(fs.make_directories(root));
    for (const plan::SourceFile& file : input.snapshot.files) {
        if (!file.generated) {
            KB_TRY(copy(file.path.text()));
        }
    }
    const sys::Path package = project::package_directory(input.project.config).text();
    for (const plan::PackageFile& file : input.snapshot.package) {
        KB_TRY(copy(package / file.path.text()));
    }
    project::Project out = input.project;
    out.text.root = root;
    return out;
}

struct Place {
    std::string_view directory{};
    std::string_view user{};
    std::string_view locale{};
    std::string_view zone{};
};

constexpr Place kPlaces[] = {
    {"a", "first", "C", "UTC"},
    {"another/place/with-a-longer-name", "somebody-else", "de_DE.UTF-8", "Pacific/Kiritimati"}};

sys::EnvironmentMap environment_of(const sys::EnvironmentMap& base, const Place& place) {
    sys::EnvironmentMap out = base;
    for (const std::string_view name : {"USER", "LOGNAME"}) {
        out.insert_or_assign(std::string{name}, std::string{place.user});
    }
    for (const std::string_view name : {"LANG", "LC_ALL"}) {
        out.insert_or_assign(std::string{name}, std::string{place.locale});
    }
    out.insert_or_assign("HOME", fmt::format("/home/{}", place.user));
    out.insert_or_assign("TZ", std::string{place.zone});
    return out;
}

Result<BuildReport> build_at(const BuildInput& input,
                             const project::Project& project,
                             const BuildOptions& options,
                             const BuildServices& services,
                             const BuildEvents& events) {
    const BuildInput copied{.project = project,
                            .snapshot = input.snapshot,
                            .plan = input.plan,
                            .lock = input.lock,
                            .git = input.git};
    WorkList work;
    for (const plan::PlannedVariant& variant : input.plan.variants) {
        work.stale.push_back({.variant = variant.name.text(), .reason = "built twice"});
    }
    return run(copied, work, options, services, events);
}

} // namespace

bool ReproduceReport::equal() const {
    return builds.size() == 2 && builds.back().ok() && differences.empty();
}

Result<std::vector<FileDifference>>
compare_variants(sys::FileSystem& fs, const sys::Path& first, const sys::Path& second) {
    KB_TRY(const package::FileList ours, project::read_file_list(fs, first));
    KB_TRY(const package::FileList theirs, project::read_file_list(fs, second));
    std::map<std::string, std::pair<bool, bool>> names;
    for (const auto& file : ours) {
        names[file.path.text()].first = true;
    }
    for (const auto& file : theirs) {
        names[file.path.text()].second = true;
    }
    std::vector<FileDifference> out;
    for (const auto& [name, present] : names) {
        if (!present.first || !present.second) {
            out.push_back(
                {.file = name, .what = present.first ? "only in the first" : "only in the second"});
            continue;
        }
        KB_TRY(const std::string a, fs.read_file(first / name));
        KB_TRY(const std::string b, fs.read_file(second / name));
        if (a != b) {
            out.push_back(difference_in(name, a, b));
        }
    }
    std::ranges::stable_sort(
        out, {}, [](const FileDifference& d) { return d.file == "metadata.json"; });
    return out;
}

Result<ReproduceReport> reproduce(const BuildInput& input,
                                  const BuildOptions& options,
                                  const BuildServices& services,
                                  const BuildEvents& events,
                                  const sys::Path& scratch) {
    KB_ASSERT(input.plan.variants.size() == 1, "the caller chooses one variant");
    ReproduceReport report{.variant = input.plan.variants.front().name.text()};
    std::vector<sys::Path> packages;
    const auto build_both = [&]() -> Result<void> {
        for (const Place& place : kPlaces) {
            KB_TRY(const project::Project project,
                   copy_project(services.fs, input, scratch / place.directory));
            const sys::EnvironmentMap environment = environment_of(services.environment, place);
            BuildOptions perturbed = options;
            perturbed.use_cache = false;
            perturbed.jobs = packages.empty() ? 1 : std::max(options.jobs, 2U);
            KB_TRY(BuildReport built,
                   build_at(input,
                            project,
                            perturbed,
                            {.fs = services.fs,
                             .processes = services.processes,
                             .clock = services.clock,
                             .environment = environment},
                            events));
            const bool ok = built.ok();
            report.builds.push_back(std::move(built));
            if (!ok) {
                return {};
            }
            packages.push_back(project.root() / "build" / report.variant);
        }
        KB_TRY(report.differences, compare_variants(services.fs, packages[0], packages[1]));
        return {};
    };
    const Result<void> done = build_both();
    if (done && !report.differences.empty()) {
        report.kept = std::move(packages);
        return report;
    }
    KB_TRY(services.fs.remove_tree(scratch));
    if (!done) {
        return done.error();
    }
    return report;
}

} // namespace kb::build
