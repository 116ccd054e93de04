// SPDX-License-Identifier: Apache-2.0
#include "package/package_digest.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace kb::package {

bool is_digested(const RelPath& path) {
    if (path.text() == "metadata.json" || path.text() == "metadata.json.sigstore" ||
        path.extension() == ".pyc") {
        return false;
    }
    return std::ranges::none_of(split(path.text(), '/'),
                                [](std::string_view part) { return part == "__pycache__"; });
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
