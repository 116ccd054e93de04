// SPDX-License-Identifier: Apache-2.0
#include "project/attestations.hpp"

#include "package/attestation.hpp"
#include "project/project.hpp"

#include <fmt/format.h>

namespace kb::project {

namespace {

sys::Path statement_path(const sys::Path& directory, std::string_view variant) {
    return directory / fmt::format("{}.slsa.json", variant);
}

sys::Path sbom_path(const sys::Path& directory, std::string_view variant) {
    return directory / fmt::format("{}.cdx.json", variant);
}

sys::Path envelope_path(const sys::Path& directory, std::string_view variant) {
    return directory / fmt::format("{}.dsse.json", variant);
}

std::string blob_name(const digest::Digest& digest, std::string_view kind) {
    return fmt::format("{}.{}", digest.hex(), kind);
}

} // namespace

sys::Path attestation_directory(const sys::Path& variant_directory) {
    sys::Path directory = variant_directory.lexically_normal();
    if (!directory.has_filename()) {
        directory = directory.parent_path(); // "build/v/"
    }
    return directory.parent_path().parent_path() / kStateDirectory / "provenance";
}

Result<Attestations>
read_attestations(sys::FileSystem& fs, const sys::Path& directory, std::string_view variant) {
    Attestations out;
    KB_TRY(out.statement, fs.read_file(statement_path(directory, variant)));
    Result<std::string> sbom = fs.read_file(sbom_path(directory, variant));
    if (!sbom && sbom.error().code == ErrorCode::not_found) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("a statement without its bill of materials '{}'",
                                            sbom_path(directory, variant).string())};
    }
    KB_TRY(out.sbom, std::move(sbom));
    Result<std::string> envelope = fs.read_file(envelope_path(directory, variant));
    if (envelope) {
        out.envelope = std::move(envelope).value();
    } else if (envelope.error().code != ErrorCode::not_found) {
        return envelope.error();
    }
    return out;
}

bool has_attestations(sys::FileSystem& fs, const sys::Path& directory, std::string_view variant) {
    return sys::exists(fs, statement_path(directory, variant)) &&
           sys::exists(fs, sbom_path(directory, variant));
}

Result<void> write_attestations(sys::FileSystem& fs,
                                const sys::Path& directory,
                                std::string_view variant,
                                const Attestations& attestations) {
    KB_TRY(fs.make_directories(directory));
    const Result<std::string> before = fs.read_file(statement_path(directory, variant));
    if (!before || *before != attestations.statement) {
        KB_TRY(fs.remove_file(envelope_path(directory, variant)));
    }
    KB_TRY(fs.write_atomic(sbom_path(directory, variant), attestations.sbom, FileMode::regular));
    KB_TRY(fs.write_atomic(
        statement_path(directory, variant), attestations.statement, FileMode::regular));
    return attestations.envelope.empty()
               ? Result<void>{}
               : write_signature(fs, directory, variant, attestations.envelope);
}

Result<void> write_named_blob(sys::FileSystem& fs,
                              const sys::Path& directory,
                              std::string_view kind,
                              std::string_view content) {
    KB_TRY(fs.make_directories(directory));
    const sys::Path path = directory / blob_name(digest::sha256(content), kind);
    const Result<std::string> before = fs.read_file(path);
    return before && *before == content ? Result<void>{}
                                        : fs.write_atomic(path, content, FileMode::regular);
}

Result<std::vector<std::string>> attestation_names(sys::FileSystem& fs,
                                                   const sys::Path& directory,
                                                   std::string_view variant,
                                                   const Attestations& said) {
    std::vector<std::string> names = {fmt::format("{}.slsa.json", variant),
                                      fmt::format("{}.cdx.json", variant)};
    if (!said.envelope.empty()) {
        names.push_back(fmt::format("{}.dsse.json", variant));
    }
    const package::NamedBlobs blobs = package::named_blobs(said.statement);
    const auto add = [&](const std::optional<digest::Digest>& digest,
                         std::string_view kind) -> Result<void> {
        if (!digest) {
            return {};
        }
        const std::string name = blob_name(*digest, kind);
        const Result<std::string> content = fs.read_file(directory / name);
        if (!content) {
            return content.error().code == ErrorCode::not_found ? Result<void>{}
                                                                : Error{content.error()};
        }
        if (digest::sha256(*content) != *digest) {
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format("'{}' is not what its name says; build again",
                                                (directory / name).string())};
        }
        names.push_back(name);
        return {};
    };
    KB_TRY(add(blobs.lock, kLockKind));
    KB_TRY(add(blobs.source_archive, kSourcesKind));
    return names;
}

Result<void> write_signature(sys::FileSystem& fs,
                             const sys::Path& directory,
                             std::string_view variant,
                             std::string_view envelope) {
    return fs.write_atomic(envelope_path(directory, variant), envelope, FileMode::regular);
}

} // namespace kb::project
