// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "registry/service.hpp"

#include <fmt/format.h>

#include <vector>

namespace kb::registry {

namespace {

constexpr std::size_t kReadBlock = 1UL << 20U;

hub::HubStatus not_the_object(std::string_view why) {
    return {.http = 422, .message = fmt::format("the upload is not the object: {}", why)};
}

} // namespace

Reply<hub::PreuploadAnswer>
Service::preupload(const RepoRow& repo, std::string_view revision, const hub::Preupload& request) {
    KB_TRY(const ResolvedRevision at, resolve(repo, revision));
    hub::PreuploadAnswer answer;
    for (const hub::PreuploadFile& file : request.files) {
        hub::PreuploadVerdict verdict{.path = file.path};
        if (file.size > parts_.settings.regular_bytes) {
            verdict.mode = hub::UploadMode::lfs;
        }
        KB_TRY(const std::optional<hub::GitTreeItem> item,
               find_item(tree_source(), at.commit.tree, file.path));
        if (item && item->mode != hub::GitMode::tree) {
            KB_TRY(const std::optional<FileRow> row, parts_.meta.find_file(repo.key, item->oid));
            if (row) {
                verdict.remote_oid = row->is_lfs ? row->sha256.hex() : row->oid.hex();
            }
        }
        answer.files.push_back(std::move(verdict));
    }
    return answer;
}

Reply<bool> Service::has_object(RepoKey repo, const hub::LfsObject& object, Pin pin) {
    KB_TRY(const std::optional<LfsRow> row, parts_.meta.find_lfs(repo, object.oid));
    if (!row || row->size != object.size) {
        return false;
    }
    if (pin == Pin::yes) {
        // "Present" is a promise until the commit: collection counts from here. One beside us sees
        // it before we look.
        KB_TRY(parts_.meta.add_lfs(repo, *row, now()));
    }
    KB_TRY(const std::optional<std::uint64_t> size, parts_.blobs.size(object.oid));
    return size == object.size;
}

Reply<std::unique_ptr<sys::InputFile>> Service::open_object(const RepoRow& repo,
                                                            const hub::LfsObject& object) {
    KB_TRY(const std::optional<LfsRow> row, parts_.meta.find_lfs(repo.key, object.oid));
    if (!row) {
        return entry_not_found(object.oid.hex(), "this repository");
    }
    KB_TRY(auto file, parts_.blobs.open_read(object.oid));
    return file;
}

std::string Service::sign(const UploadGrant& grant, std::string_view purpose) const {
    return digest::hmac_sha256(parts_.signing_key,
                               fmt::format("{}\n{}\n{}\n{}\n{}\n{}",
                                           purpose,
                                           grant.repo,
                                           grant.object.oid.hex(),
                                           grant.object.size,
                                           grant.user,
                                           grant.expires))
        .hex();
}

bool Service::is_signed(const UploadGrant& grant,
                        std::string_view purpose,
                        std::string_view signature) const {
    return digest::equal_constant_time(sign(grant, purpose), signature);
}

Reply<Done> Service::receive_object(const UploadGrant& grant, http::BodyReader& body) {
    const std::uint64_t size = grant.object.size;
    if (const auto length = body.length(); length && *length != size) {
        return not_the_object(fmt::format("it has {} bytes, {} were announced", *length, size));
    }
    KB_TRY(store::BlobWriter writer, parts_.blobs.begin());
    std::vector<std::byte> block(kReadBlock);
    while (true) {
        const Result<std::size_t> n = http::read_block(body, block);
        if (!n) {
            return hub::HubStatus{.http = 408, .message = "the upload broke off"};
        }
        if (*n == 0) {
            break;
        }
        if (writer.written() + *n > size) {
            return not_the_object(fmt::format("it has over {} bytes", size));
        }
        KB_TRY(writer.write(as_text(std::span{block}.first(*n))));
    }
    const Result<store::StoredBlob> stored =
        writer.finish({.digest = grant.object.oid, .size = size});
    if (!stored && stored.error().code == ErrorCode::corrupt) {
        return not_the_object(stored.error().to_text());
    }
    KB_TRY(stored);
    KB_TRY(parts_.meta.add_lfs(grant.repo, {.sha256 = grant.object.oid, .size = size}, now()));
    return Done{};
}

PartialUpload Service::partial_upload(const UploadGrant& grant, std::uint64_t part_bytes) const {
    // Nobody can guess it, and another user's parts are out of reach.
    std::string id = digest::hmac_sha256(parts_.signing_key,
                                         fmt::format("upload\n{}\n{}\n{}\n{}\n{}",
                                                     grant.repo,
                                                     grant.object.oid.hex(),
                                                     grant.object.size,
                                                     grant.user,
                                                     part_bytes))
                         .hex();
    id.resize(40);
    return {.id = std::move(id), .size = grant.object.size, .part_bytes = part_bytes};
}

Reply<std::string> Service::receive_part(const UploadGrant& grant,
                                         std::uint64_t part_bytes,
                                         std::uint64_t number,
                                         http::BodyReader& body) {
    return uploads_.receive(partial_upload(grant, part_bytes), number, body);
}

Reply<Done> Service::complete_object(const UploadGrant& grant,
                                     std::uint64_t part_bytes,
                                     const std::vector<hub::LfsPart>& parts) {
    // The answer to the first call may have been lost.
    KB_TRY(const std::optional<LfsRow> row, parts_.meta.find_lfs(grant.repo, grant.object.oid));
    if (row && row->size == grant.object.size) {
        return Done{};
    }
    const auto take = [&](const sys::Path& file) -> Reply<Done> {
        // Adopted by an earlier call that then failed to record it.
        KB_TRY(const std::optional<std::uint64_t> there, parts_.blobs.size(grant.object.oid));
        const store::BlobExpectation expected{.digest = grant.object.oid,
                                              .size = grant.object.size};
        const bool is_adopted = !sys::exists(parts_.fs, file) && there == grant.object.size;
        if (is_adopted) { // a collector beside us sees it before we look
            KB_TRY(parts_.meta.add_lfs(
                grant.repo, {.sha256 = grant.object.oid, .size = grant.object.size}, now()));
        }
        const Result<store::StoredBlob> stored =
            is_adopted ? parts_.blobs.verify(grant.object.oid) : parts_.blobs.adopt(file, expected);
        if (!stored && stored.error().code == ErrorCode::corrupt) {
            return not_the_object(stored.error().to_text());
        }
        KB_TRY(stored);
        KB_TRY(parts_.meta.add_lfs(
            grant.repo, {.sha256 = grant.object.oid, .size = grant.object.size}, now()));
        return Done{};
    };
    return uploads_.complete(partial_upload(grant, part_bytes), parts, take);
}

} // namespace kb::registry
