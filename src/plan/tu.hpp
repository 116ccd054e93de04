// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/rules.hpp"
#include "base/rel_path.hpp"
#include "base/version.hpp"
#include "base/words.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kb::plan {

/// One compilation: a source, one set of flags, one toolchain. Variants that need the same one
/// share it. All paths are those of the sandbox, relative ones below its work folder.
struct Tu {
    /// 32 hex digits of the digest of everything that decides its bytes: command, source, project
    /// headers that it reaches, pinned toolchain. Equal ids give equal objects.
    std::string id{};
    RelPath source = RelPath::literal("unnamed");
    backend::SourceKind kind = backend::SourceKind::cxx;
    /// Section that declared it, "" for the binding.
    std::string section{};
    /// The compiler with all its arguments, output included.
    Words command{};
    /// What has to run before; empty for most.
    Words before{};
    /// "tu/<id>.o"
    std::string object{};
    /// Where nvcc keeps its intermediate files, to be made before; "" for other compilers.
    std::string keep_dir{};
    /// Architectures of its device code: one device compilation each.
    std::vector<std::string> archs{};
    /// Version of torch whose headers it is given; empty for code that includes none.
    Version torch{};
    /// Project headers that it reaches, sorted.
    std::vector<RelPath> headers{};
    /// Requirement ids, sorted.
    Words requirements{};

    bool operator==(const Tu&) const = default;
};

/// The step that makes a variant's library out of its TUs.
struct Link {
    /// "link/<variant>/<ops id>.abi3.so"
    std::string output{};
    Words command{};

    bool operator==(const Link&) const = default;
};

} // namespace kb::plan
