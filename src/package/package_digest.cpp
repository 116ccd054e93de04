// SPDX-License-Identifier: Apache-2.0
#include "package/package_digest.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace kb::package {

Bytecode bytecode_of(const RelPath& path) {
    const auto parts = split(path.text(), '/');
    if (std::ranges::find(parts, "__pycache__") != parts.end()) {
        return Bytecode::cached;
    }
    return path.extension() == ".pyc" ? Bytecode::placed : Bytecode::none;
}

bool is_digested(const RelPath& path) {
    return path.text() != "metadata.json" && path.text() != "metadata.json.sigstore" &&
           bytecode_of(path) == Bytecode::none;
}

PackageDigest compute_digest(const FileList& files) {
    PackageDigest out;
    for (const FileEntry& file : files) {
        if (is_digested(file.path)) {
            out.files.emplace(file.path.text(), file.sha256.base64());
        }
    }
    return out;
}

} // namespace kb::package
