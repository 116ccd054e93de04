// SPDX-License-Identifier: Apache-2.0
#include "upload/upload_plan.hpp"

#include "base/assert.hpp"
#include "digest/key_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kb::upload {

namespace {

bool is_below(const RelPath& path, std::string_view folder) {
    return path.text().size() > folder.size() && path.text().starts_with(folder) &&
           path.text()[folder.size()] == '/';
}

bool is_benchmark(const RelPath& path) {
    return path.parent() == "benchmarks" && path.name().starts_with("benchmark") &&
           path.name().ends_with(".py");
}

/// The variant whose statement, bill or signature this is; "" for another file.
std::string_view told_variant(const RelPath& path) {
    constexpr std::string_view kFolder = "provenance/";
    const std::string_view text = path.text();
    for (const std::string_view ending : {".slsa.json", ".cdx.json", ".dsse.json"}) {
        if (text.starts_with(kFolder) && text.ends_with(ending)) {
            return text.substr(kFolder.size(), text.size() - kFolder.size() - ending.size());
        }
    }
    return {};
}

bool is_cached_bytecode(const RelPath& path) {
    return package::bytecode_of(path) == package::Bytecode::cached;
}

/// The variant that a path of the plan belongs to; "" for another.
std::string_view variant_of(const RelPath& path) {
    const std::string_view text = path.text();
    if (!text.starts_with("build/")) {
        return told_variant(path);
    }
    const std::string_view rest = text.substr(6);
    return rest.substr(0, rest.find('/'));
}

/// May this path of the branch be deleted when it is not wanted?
bool is_ours(const BranchContent& content, const RelPath& path, BranchState state) {
    if (std::ranges::any_of(content.folders, [&path](const RelPath& folder) {
            return is_below(path, folder.text());
        })) {
        return true;
    }
    if (state == BranchState::to_create) {
        return is_below(path, "build") ||
               (is_below(path, "provenance") && !content.variants.empty()) ||
               (content.owns_benchmarks && is_below(path, "benchmarks"));
    }
    return content.owns_benchmarks && is_benchmark(path);
}

RelPath folder_of(const package::Package& package) {
    const auto path = RelPath::parse("build/" + package.variant);
    KB_ASSERT(path.has_value(), "preflight refuses a package whose name is no variant name");
    return *path;
}

void add_package(const package::Package& package, BranchContent& content) {
    const RelPath folder = folder_of(package);
    content.folders.push_back(folder);
    content.variants.push_back(package.variant);
    for (const package::FileEntry& entry : package.files) {
        if (is_cached_bytecode(entry.path)) {
            continue;
        }
        content.files.push_back({.path = folder / entry.path,
                                 .source = package.directory + "/" + entry.path.text(),
                                 .size = entry.size,
                                 .sha256 = entry.sha256});
    }
}

void delete_companions(const BranchContent& content,
                       const std::vector<RelPath>& companions,
                       BranchPlan& plan) {
    std::set<std::string, std::less<>> rebuilt; // other files
    std::set<std::string, std::less<>> retold;  // another statement, or other files
    const auto look_at = [&](const RelPath& path) {
        retold.emplace(variant_of(path));
        if (is_below(path, "build")) {
            rebuilt.emplace(variant_of(path));
        }
    };
    for (const LocalFile& file : plan.adds) {
        look_at(file.path);
    }
    std::ranges::for_each(plan.deletes, look_at);
    for (const RelPath& path : companions) {
        const std::string_view variant = variant_of(path);
        const bool ours = std::ranges::find(content.variants, variant) != content.variants.end();
        if (ours && (is_below(path, "build") ? rebuilt : retold).contains(variant)) {
            plan.deletes.push_back(path);
        }
    }
    std::ranges::sort(plan.deletes);
}

} // namespace

std::vector<BranchContent> make_contents(const UploadInput& input) {
    BranchContent version{.branch = input.branch, .owns_benchmarks = input.has_benchmarks_folder};
    for (const package::Package& package : input.packages) {
        add_package(package, version);
    }
    version.files.insert(version.files.end(), input.benchmarks.begin(), input.benchmarks.end());
    version.files.insert(version.files.end(), input.provenance.begin(), input.provenance.end());
    std::vector<BranchContent> contents;
    if (input.card && input.branch == "main") {
        version.files.push_back(*input.card);
    }
    contents.push_back(std::move(version));
    if (input.card && input.branch != "main") {
        contents.push_back({.branch = "main", .files = {*input.card}});
    }
    for (BranchContent& content : contents) {
        std::ranges::sort(content.files, {}, &LocalFile::path);
        std::ranges::sort(content.folders);
    }
    return contents;
}

std::vector<std::size_t> files_to_identify(const BranchContent& content, const RemoteTree& remote) {
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < content.files.size(); ++i) {
        const LocalFile& file = content.files[i];
        const hub::TreeEntry* entry = remote.find(file.path);
        if (entry != nullptr && !entry->lfs && entry->size == file.size && !file.git_oid) {
            indexes.push_back(i);
        }
    }
    return indexes;
}

bool UploadPlan::empty() const {
    return std::ranges::all_of(branches, [](const BranchPlan& branch) { return branch.empty(); });
}

std::uint64_t UploadPlan::bytes() const {
    std::set<digest::Digest> seen;
    std::uint64_t total = 0;
    for (const BranchPlan& branch : branches) {
        for (const LocalFile& file : branch.adds) {
            total += seen.insert(file.sha256).second ? file.size : 0;
        }
    }
    return total;
}

BranchPlan plan_branch(const BranchContent& content, const RemoteTree& remote, BranchState state) {
    BranchPlan plan{.branch = content.branch, .state = state};
    std::set<std::string_view> wanted;
    for (const LocalFile& file : content.files) {
        wanted.insert(file.path.text());
        const hub::TreeEntry* entry = remote.find(file.path);
        if (entry != nullptr && is_same_content(file, *entry)) {
            ++plan.unchanged;
        } else {
            plan.adds.push_back(file);
        }
    }
    std::vector<RelPath> companions; // of a variant: they go with its bytes
    for (const auto& [path, entry] : remote.files) {
        if (wanted.contains(path.text())) {
            continue;
        }
        if (state == BranchState::existing &&
            (!told_variant(path).empty() || is_cached_bytecode(path))) {
            companions.push_back(path);
        } else if (is_ours(content, path, state)) {
            plan.deletes.push_back(path);
        }
    }
    delete_companions(content, companions, plan);
    return plan;
}

std::vector<std::string> changed_variants(const BranchPlan& plan, const RemoteTree& remote) {
    std::set<std::string> published;
    for (const auto& [path, entry] : remote.files) {
        const std::string& text = path.text();
        const std::size_t end = text.find('/', 6);
        if (text.starts_with("build/") && end != std::string::npos) {
            published.insert(text.substr(6, end - 6));
        }
    }
    std::set<std::string> changed;
    const auto look_at = [&](const RelPath& path) {
        for (const std::string& variant : published) {
            if (is_below(path, "build/" + variant)) {
                changed.insert(variant);
            }
        }
    };
    if (plan.state == BranchState::existing) {
        for (const LocalFile& file : plan.adds) {
            look_at(file.path);
        }
        std::ranges::for_each(plan.deletes, look_at);
    }
    return {changed.begin(), changed.end()};
}

digest::Digest content_digest(std::span<const BranchContent> contents) {
    digest::KeyFile key;
    for (const BranchContent& content : contents) {
        for (const LocalFile& file : content.files) {
            // A path may hold spaces, which a key may not: the path goes into the value.
            const std::string id = digest::sha256(content.branch + "\n" + file.path.text()).hex();
            key.set(id, fmt::format("{} {} {}", file.sha256.hex(), file.size, file.path.text()));
        }
        for (const RelPath& folder : content.folders) {
            key.set(digest::sha256("folder\n" + content.branch + "\n" + folder.text()).hex(),
                    folder.text());
        }
    }
    return key.digest();
}

std::vector<RelPath> changed_paths(const RemoteTree& before, const RemoteTree& after) {
    std::vector<RelPath> changed;
    for (const auto& [path, entry] : after.files) {
        const hub::TreeEntry* old = before.find(path);
        if (old == nullptr || old->oid != entry.oid) {
            changed.push_back(path);
        }
    }
    for (const auto& [path, entry] : before.files) {
        if (after.find(path) == nullptr) {
            changed.push_back(path);
        }
    }
    std::ranges::sort(changed);
    return changed;
}

std::vector<RelPath> contested_paths(const BranchPlan& plan, std::span<const RelPath> changed) {
    std::set<std::string_view> touched;
    for (const LocalFile& file : plan.adds) {
        touched.insert(file.path.text());
    }
    for (const RelPath& path : plan.deletes) {
        touched.insert(path.text());
    }
    std::vector<RelPath> contested;
    std::ranges::copy_if(changed, std::back_inserter(contested), [&touched](const RelPath& path) {
        return touched.contains(path.text());
    });
    return contested;
}

} // namespace kb::upload
