// SPDX-License-Identifier: Apache-2.0
#include "hub/xet_chunk.hpp"
#include "hub/xet_shard.hpp"
#include "registry/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kb::registry {

namespace {

/// Chunks that clients make have 8 KiB and more, but for the last of a file. A few small ones are
/// let be; not a short shard that names so many that they fill the memory.
constexpr std::uint64_t kUsualChunk = 8192;

std::uint64_t most_chunks(const hub::XetFile& file) {
    return file.size() / kUsualChunk + file.terms.size() + hub::kMaxXorbChunks;
}

hub::HubStatus no_file(const hub::XetFile& file, std::string_view why) {
    return {.http = 400, .message = fmt::format("file {} of the shard {}", file.hash.text(), why)};
}

} // namespace

/// The files of one shard on their way into blobs.
class XetJob {
public:
    XetJob(Service& service, const UploadGrant& grant) : service_{&service}, grant_{&grant} {}

    /// Nothing is written: do the terms name chunks that are here, and make the file they claim?
    Reply<Done> check(const hub::XetFile& file) {
        if (file.size() > service_->settings().object_bytes) {
            return hub::HubStatus{.http = 413,
                                  .message = fmt::format("an object has at most {} bytes",
                                                         service_->settings().object_bytes)};
        }
        std::vector<hub::XetNode> chunks;
        for (const hub::XetTerm& term : file.terms) {
            KB_TRY(const Xorb* xorb, find(file, term));
            if (term.end > xorb->chunks.size()) {
                return no_file(file, "names chunks that its xorb does not have");
            }
            if (chunks.size() + (term.end - term.first) > most_chunks(file)) {
                return no_file(file, "has too many small chunks");
            }
            std::vector<hub::XetNode> run;
            std::uint64_t bytes = 0;
            for (std::uint32_t i = term.first; i < term.end; ++i) {
                run.push_back(xorb->chunks[i].node);
                bytes += run.back().size;
            }
            if (bytes != term.bytes) {
                return no_file(file, "has a term of another length than its chunks");
            }
            if (term.verification && *term.verification != hub::xet_range_hash(run)) {
                return no_file(file, "has a term that its chunks do not verify");
            }
            chunks.insert(chunks.end(), run.begin(), run.end());
        }
        if (hub::xet_file_hash(hub::xet_root(std::move(chunks))) != file.hash) {
            return no_file(file, "has chunks that make another hash");
        }
        return Done{};
    }

    /// The file becomes an object of the repository, as if it had been sent in one piece.
    Reply<Done> store(const hub::XetFile& file) {
        const std::uint64_t size = file.size();
        if (file.sha256 && !brings_data(file)) {
            KB_TRY(
                const bool is_present,
                service_->has_object(grant_->repo, {.oid = *file.sha256, .size = size}, Pin::yes));
            if (is_present) {
                return Done{};
            }
        }
        KB_TRY(store::BlobWriter writer, service_->parts_.blobs.begin());
        std::map<hub::XetHash, std::vector<ChunkPlace>> places;
        for (const hub::XetTerm& term : file.terms) {
            places[term.xorb].push_back(
                {.first = term.first, .end = term.end, .offset = writer.written()});
            const Result<void> read = service_->xorbs_.read(
                xorbs_.at(term.xorb), term.first, term.end, [&writer](std::string_view raw) {
                    return writer.write(raw);
                });
            if (!read && read.error().code == ErrorCode::not_found) {
                return missing(file, term);
            }
            KB_TRY(read);
        }
        const Result<store::StoredBlob> blob = writer.finish({.digest = file.sha256, .size = size});
        if (!blob && blob.error().code == ErrorCode::corrupt) {
            return no_file(file, blob.error().to_text());
        }
        KB_TRY(blob);
        KB_TRY(service_->parts_.meta.add_lfs(
            grant_->repo, {.sha256 = blob->digest, .size = size}, service_->now()));
        for (auto& [hash, runs] : places) {
            for (ChunkPlace& run : runs) {
                run.blob = blob->digest;
            }
            KB_TRY(service_->xorbs_.add_places(xorbs_.at(hash), runs));
        }
        return Done{};
    }

private:
    static hub::HubStatus missing(const hub::XetFile& file, const hub::XetTerm& term) {
        return no_file(file,
                       fmt::format("needs xorb {}, which this user did not send or sent too long "
                                   "ago: empty the client's xet cache (HF_XET_CACHE), or set "
                                   "HF_HUB_DISABLE_XET=1",
                                   term.xorb.text()));
    }

    Reply<const Xorb*> find(const hub::XetFile& file, const hub::XetTerm& term) {
        auto found = xorbs_.find(term.xorb);
        if (found == xorbs_.end()) {
            KB_TRY(std::optional<Xorb> xorb,
                   service_->xorbs_.find(grant_->user, term.xorb, service_->now()));
            if (!xorb) {
                return missing(file, term);
            }
            found = xorbs_.emplace(term.xorb, std::move(*xorb)).first;
        }
        return &found->second;
    }

    /// Of a file that is stored already the bytes came once more: putting it together shows where
    /// they lie.
    [[nodiscard]] bool brings_data(const hub::XetFile& file) const {
        return std::ranges::any_of(file.terms, [this](const hub::XetTerm& term) {
            return service_->xorbs_.has_data(xorbs_.at(term.xorb));
        });
    }

    Service* service_;
    const UploadGrant* grant_;
    std::map<hub::XetHash, Xorb> xorbs_{};
};

Reply<bool>
Service::receive_xorb(const UploadGrant& grant, const hub::XetHash& hash, http::BodyReader& body) {
    return xorbs_.receive(grant.user, hash, body);
}

Reply<Done> Service::receive_shard(const UploadGrant& grant, http::BodyReader& body) {
    const Result<std::string> text = http::read_all(body, hub::kMaxShardBytes);
    if (!text && text.error().code == ErrorCode::denied) {
        return hub::HubStatus{.http = 413, .message = text.error().message};
    }
    if (!text) {
        return hub::HubStatus{.http = 408, .message = "the upload broke off"};
    }
    KB_TRY(const std::vector<hub::XetFile> files,
           or_bad_request(hub::parse_shard(as_bytes(*text))));
    XetJob job{*this, grant};
    for (const hub::XetFile& file : files) {
        KB_TRY(job.check(file));
    }
    for (const hub::XetFile& file : files) {
        KB_TRY(job.store(file));
    }
    return Done{};
}

} // namespace kb::registry
