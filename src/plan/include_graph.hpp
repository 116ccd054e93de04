// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/source_snapshot.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kb::plan {

/// What a translation unit needs, found by following its includes through the project.
struct Reach {
    /// Project headers, sorted by path.
    std::vector<const SourceFile*> headers{};
    bool torch = false;
    bool python = false;
    bool tvm_ffi = false;
    /// It, or a header of it, names the ops id.
    bool ops = false;
};

/// The project's files by path. Refers to the snapshot.
class IncludeGraph {
public:
    explicit IncludeGraph(const SourceSnapshot& snapshot);

    [[nodiscard]] const SourceFile* find(std::string_view path) const;

    /// `include_dirs` are relative to the source root, "" is the root itself. An include whose
    /// target only the preprocessor knows may be any header, and is taken to need everything.
    [[nodiscard]] Reach reach(const SourceFile& file,
                              const std::vector<std::string>& include_dirs) const;

private:
    [[nodiscard]] const SourceFile* resolve(const SourceFile& from,
                                            const Include& include,
                                            const std::vector<std::string>& include_dirs) const;

    std::map<std::string, const SourceFile*, std::less<>> files_;
};

} // namespace kb::plan
