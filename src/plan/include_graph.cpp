// SPDX-License-Identifier: Apache-2.0
#include "plan/include_graph.hpp"

#include "backend/rules.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <set>

namespace kb::plan {

namespace {

/// "a/b/../c.h" as the compiler finds it below the root; nothing when it leaves the root.
std::string normalised(std::string_view path) {
    std::vector<std::string> parts;
    for (const std::string_view part : split(path, '/')) {
        if (part.empty() || part == ".") {
            continue;
        }
        if (part != "..") {
            parts.emplace_back(part);
        } else if (parts.empty()) {
            return {};
        } else {
            parts.pop_back();
        }
    }
    return join(parts, "/");
}

std::string beside(std::string_view dir, std::string_view name) {
    return dir.empty() ? normalised(name) : normalised(std::string{dir} + "/" + std::string{name});
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
    return std::ranges::any_of(prefixes, [&](std::string_view p) { return text.starts_with(p); });
}

/// Headers that are not the project's own.
void note_external(std::string_view path, Reach& reach) {
    if (starts_with_any(path, {"torch/", "ATen/", "c10/", "caffe2/"})) {
        reach.torch = true;
    } else if (path == "Python.h" || path.starts_with("pybind11/")) {
        reach.python = true;
    } else if (starts_with_any(path, {"tvm/", "dlpack/"})) {
        reach.tvm_ffi = true;
    }
}

bool is_header(const SourceFile& file) {
    return backend::common_source_kind(file.path) == backend::SourceKind::header;
}

} // namespace

IncludeGraph::IncludeGraph(const SourceSnapshot& snapshot) {
    for (const SourceFile& file : snapshot.files) {
        files_.emplace(file.path.text(), &file);
    }
}

const SourceFile* IncludeGraph::find(std::string_view path) const {
    const auto found = files_.find(path);
    return found == files_.end() ? nullptr : found->second;
}

const SourceFile* IncludeGraph::resolve(const SourceFile& from,
                                        const Include& include,
                                        const std::vector<std::string>& include_dirs) const {
    if (include.form == IncludeForm::quoted) {
        if (const SourceFile* file = find(beside(from.path.parent(), include.path))) {
            return file;
        }
    }
    for (const std::string& dir : include_dirs) {
        if (const SourceFile* file = find(beside(dir, include.path))) {
            return file;
        }
    }
    return nullptr;
}

Reach IncludeGraph::reach(const SourceFile& file,
                          const std::vector<std::string>& include_dirs) const {
    Reach reach;
    std::set<std::string_view> seen{file.path.text()};
    std::vector<const SourceFile*> queue{&file};
    const auto visit = [&](const SourceFile* next) {
        if (seen.insert(next->path.text()).second) {
            queue.push_back(next);
            reach.headers.push_back(next);
        }
    };
    for (std::size_t i = 0; i < queue.size(); ++i) {
        const SourceFile& at = *queue[i];
        reach.ops = reach.ops || at.names_ops;
        for (const Include& include : at.includes) {
            if (include.form == IncludeForm::computed) {
                reach.torch = reach.python = reach.tvm_ffi = reach.ops = true;
                for (const auto& entry : files_) {
                    if (is_header(*entry.second)) {
                        visit(entry.second);
                    }
                }
            } else if (const SourceFile* own = resolve(at, include, include_dirs)) {
                visit(own);
            } else {
                note_external(include.path, reach);
            }
        }
    }
    std::ranges::sort(reach.headers, {}, [](const SourceFile* f) -> const std::string& {
        return f->path.text();
    });
    return reach;
}

} // namespace kb::plan
