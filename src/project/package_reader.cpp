// SPDX-License-Identifier: Apache-2.0
#include "project/package_reader.hpp"

#include <algorithm>
#include <optional>

namespace kb::project {

namespace {

std::optional<digest::Digest> parse_claim(const std::string& base64) {
    const Result<std::string> bytes = digest::from_base64(base64);
    digest::Digest claim;
    if (!bytes || bytes->size() != claim.bytes.size()) {
        return std::nullopt;
    }
    std::ranges::transform(*bytes, claim.bytes.begin(), [](char c) {
        return static_cast<decltype(claim.bytes)::value_type>(c);
    });
    return claim;
}

} // namespace

void PackageReader::collect_claims(const VariantDir& variant,
                                   const package::Metadata& metadata,
                                   const std::vector<sys::WalkEntry>& entries) {
    if (!metadata.digest || metadata.digest->algorithm != "sha256") {
        return;
    }
    for (const sys::WalkEntry& entry : entries) {
        const auto row = metadata.digest->files.find(entry.path.text());
        if (entry.info.type != sys::FileType::regular || entry.info.size < kClaimedBytes ||
            row == metadata.digest->files.end() || !package::is_digested(entry.path)) {
            continue;
        }
        const sys::Path path = variant.path / entry.path.text();
        const std::optional<digest::Digest> claim = parse_claim(row->second);
        if (claim && !cache_.find(*fs_, path)) {
            claims_.insert_or_assign(path, *claim);
        }
    }
}

Result<std::vector<package::Package>> PackageReader::read(std::span<const VariantDir> variants,
                                                          Trust trust) {
    std::vector<package::Package> packages;
    std::vector<sys::Path> paths;
    for (const VariantDir& variant : variants) {
        package::Package package{.variant = variant.name, .directory = variant.path.string()};
        KB_TRY(package.metadata, read_metadata(*fs_, variant));
        KB_TRY(const std::vector<sys::WalkEntry> entries, sys::walk(*fs_, variant.path));
        if (trust == Trust::claims) {
            collect_claims(variant, package.metadata, entries);
        }
        for (const sys::WalkEntry& entry : entries) {
            sys::Path path = variant.path / entry.path.text();
            if (!claims_.contains(path)) {
                paths.push_back(std::move(path));
            }
        }
        packages.push_back(std::move(package));
    }
    cache_.hash_ahead(*fs_, *clock_, paths, threads_);
    const HashFile hash = [this](const sys::Path& path) -> Result<digest::Digest> {
        const auto claim = claims_.find(path);
        if (claim != claims_.end()) {
            return claim->second;
        }
        return cache_.sha256(*fs_, *clock_, path);
    };
    for (std::size_t i = 0; i < variants.size(); ++i) {
        KB_TRY(packages[i].files, read_file_list(*fs_, variants[i].path, hash));
    }
    return packages;
}

Result<bool> PackageReader::check_claims(std::span<package::Package> packages) {
    std::vector<sys::Path> paths;
    std::ranges::transform(
        claims_, std::back_inserter(paths), [](const auto& claim) { return claim.first; });
    // The other half of the machine is left to whoever goes on meanwhile.
    cache_.hash_ahead(*fs_, *clock_, paths, std::max(1U, threads_ / 2));
    bool as_claimed = true;
    for (package::Package& package : packages) {
        for (package::FileEntry& file : package.files) {
            const sys::Path path = sys::Path{package.directory} / file.path.text();
            if (!claims_.contains(path)) {
                continue;
            }
            KB_TRY(const digest::Digest found, cache_.sha256(*fs_, *clock_, path));
            as_claimed = as_claimed && found == file.sha256;
            file.sha256 = found;
        }
    }
    claims_.clear();
    return as_claimed;
}

} // namespace kb::project
