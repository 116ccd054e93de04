// SPDX-License-Identifier: Apache-2.0
#include "package/verify.hpp"

#include "backend/variant.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::package {

namespace {

using check::Finding;

constexpr std::string_view kReseal = "rebuild the variant, or 'kernel-builder hash' if the change "
                                     "was meant";

Finding digest_finding(std::string_view path, std::string message) {
    return {.check = "digest",
            .subject = escape_control(path),
            .policy = "metadata.json",
            .message = std::move(message),
            .next_step = std::string{kReseal}};
}

std::string named(std::string_view path, std::string_view what) {
    return fmt::format("'{}' {}", escape_control(path), what);
}

Finding package_finding(std::string_view subject, std::string message, std::string next_step) {
    return {.check = "package",
            .subject = escape_control(subject),
            .policy = "variant directory",
            .message = std::move(message),
            .next_step = std::move(next_step)};
}

bool has_file(const FileList& files, std::string_view path) {
    return std::ranges::any_of(files,
                               [&](const FileEntry& file) { return file.path.text() == path; });
}

bool is_library(const RelPath& path) {
    const std::string_view extension = path.extension();
    return extension == ".so" || extension == ".pyd" || extension == ".dylib" ||
           extension == ".dll";
}

void check_name(const Package& package, std::vector<Finding>& out) {
    const auto name = backend::VariantName::parse(package.variant);
    if (!name) {
        out.push_back(package_finding(package.variant,
                                      "the directory name is no variant that a client would load",
                                      "see 'kernel-builder list-variants' for the names"));
        return;
    }
    const std::string_view promised = backend::to_text(name->variant().backend);
    // Historic "torch-universal" packages serve every backend.
    if (package.variant != "torch-universal" && promised != package.metadata.backend) {
        Finding finding = package_finding(
            package.variant,
            fmt::format("the directory is named for backend '{}', metadata.json says '{}'",
                        promised,
                        escape_control(package.metadata.backend)),
            "rebuild the variant");
        finding.found = escape_control(package.metadata.backend);
        finding.allowed = promised;
        out.push_back(std::move(finding));
    }
    const bool noarch = name->variant().framework == backend::FrameworkId::torch_noarch;
    const bool library = std::ranges::any_of(package.files, is_library, &FileEntry::path);
    if (!noarch && !library) {
        out.push_back(package_finding(
            package.variant, "the variant holds no shared library", "rebuild the variant"));
    }
    if (noarch && library) {
        out.push_back(package_finding(package.variant,
                                      "a variant for every machine holds a shared library",
                                      "give the backend a [kernel.<id>] section, or remove it"));
    }
}

} // namespace

std::vector<Finding> verify(const Metadata& metadata, const FileList& files) {
    std::vector<Finding> out;
    if (!metadata.digest) {
        out.push_back(digest_finding("", "metadata.json holds no digest"));
        out.back().next_step = "'kernel-builder hash' adds it";
        return out;
    }
    if (metadata.digest->algorithm != "sha256") {
        out.push_back(digest_finding("",
                                     fmt::format("the digest uses {}, which is not recomputed here",
                                                 escape_control(metadata.digest->algorithm))));
        out.back().found = escape_control(metadata.digest->algorithm);
        out.back().allowed = "sha256";
        return out;
    }
    const PackageDigest actual = compute_digest(files);
    for (const auto& [path, expected] : metadata.digest->files) {
        const auto found = actual.files.find(path);
        if (found == actual.files.end()) {
            out.push_back(digest_finding(path, named(path, "is missing")));
        } else if (found->second != expected) {
            out.push_back(digest_finding(path, named(path, "differs from its digest")));
            out.back().found = found->second;
            out.back().allowed = escape_control(expected);
        }
    }
    for (const auto& [path, hash] : actual.files) {
        if (!metadata.digest->files.contains(path)) {
            out.push_back(digest_finding(path, named(path, "is in no digest")));
        }
    }
    for (const FileEntry& file : files) {
        // Python runs it in place of a source, and no digest covers it.
        if (bytecode_of(file.path) == Bytecode::placed) {
            out.push_back(digest_finding(
                file.path.text(), named(file.path.text(), "is bytecode, which no digest covers")));
            out.back().next_step = "delete it";
        }
    }
    return out;
}

std::vector<Finding> verify(const Package& package) {
    std::vector<Finding> out = verify(package.metadata, package.files);
    check_name(package, out);
    const std::string module = replace_all(package.metadata.name, "-", "_");
    if (!has_file(package.files, "__init__.py") &&
        !has_file(package.files, module + "/__init__.py")) {
        out.push_back(package_finding("__init__.py",
                                      "the variant has no '__init__.py', so it cannot be imported",
                                      "rebuild the variant"));
    }
    if (package.metadata.kernels_minver) {
        const auto version = Version::parse(*package.metadata.kernels_minver);
        if (!version || version->size() != 3) {
            out.push_back(package_finding(
                "kernels-minver",
                fmt::format("'kernels-minver' is '{}', clients read three components only",
                            escape_control(*package.metadata.kernels_minver)),
                "write it as '0.17.0'"));
        }
    }
    return out;
}

} // namespace kb::package
