// SPDX-License-Identifier: Apache-2.0
#include "upload/transfer.hpp"

#include "base/text.hpp"
#include "document/json.hpp"
#include "sys/worker_pool.hpp"
#include "upload/transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>

namespace kb::upload {

namespace {

constexpr std::size_t kBatch = 256; // as the official client asks

/// A blob that has to travel, with what is known about it so far.
struct Errand {
    const LocalFile* file = nullptr;
    hub::LfsBatchItem item{};
    const Transfer* transfer = nullptr;
    std::uint64_t chunk_size = 0;
    std::map<std::uint64_t, hub::LfsPart> parts{};
    std::size_t resumed = 0;
    std::size_t missing = 0;
};

struct Job {
    Errand* errand = nullptr;
    Piece piece{};
};

const Transfer* find_transfer(std::string_view wire_name, const hub::LfsBatchItem& item) {
    // A server may choose multipart and still send small blobs whole.
    const bool in_parts = item.upload && item.upload->header.contains("chunk_size");
    const std::string_view name = wire_name == "multipart" && !in_parts ? "basic" : wire_name;
    for (const Transfer& row : transfer_table()) {
        if (row.wire_name == name) {
            return &row;
        }
    }
    return nullptr;
}

class Sender {
public:
    Sender(const HubClient& hub, Journal& journal, const TransferOptions& options)
        : hub_{&hub}, journal_{&journal}, options_{&options} {}

    Result<void> send(std::span<const LocalFile> blobs, const std::optional<std::string>& ref) {
        state_.blobs_total = blobs.size();
        std::vector<const LocalFile*> wanted;
        for (const LocalFile& blob : blobs) {
            state_.bytes_total += blob.size;
            if (journal_->has_blob(blob.sha256)) {
                ++counts.blobs_from_journal;
                settle(blob.size);
            } else {
                wanted.push_back(&blob);
            }
        }
        std::ranges::sort(wanted, std::greater{}, [](const LocalFile* file) { return file->size; });
        for (std::size_t first = 0; first < wanted.size(); first += kBatch) {
            const std::size_t n = std::min(kBatch, wanted.size() - first);
            KB_TRY(send_batch(std::span{wanted}.subspan(first, n), ref));
        }
        return {};
    }

    TransferCounts counts{};

private:
    Result<void> send_batch(std::span<const LocalFile* const> files,
                            const std::optional<std::string>& ref) {
        KB_TRY(std::vector<Errand> errands, ask(files, ref));
        KB_TRY(run(errands));
        // Parts that an earlier run had confirmed may be gone from the server; once, all are sent.
        std::vector<Errand> again;
        for (Errand& errand : errands) {
            if (!journal_->has_blob(errand.file->sha256)) {
                KB_TRY(journal_->forget_parts(errand.file->sha256));
                again.push_back(std::move(errand));
            }
        }
        if (again.empty()) {
            return {};
        }
        std::vector<const LocalFile*> rest;
        std::ranges::transform(
            again, std::back_inserter(rest), [](const Errand& errand) { return errand.file; });
        KB_TRY(errands, ask(rest, ref));
        return run(errands);
    }

    Result<std::vector<Errand>> ask(std::span<const LocalFile* const> files,
                                    const std::optional<std::string>& ref) {
        hub::LfsBatchRequest request{.ref = ref};
        for (const Transfer& row : transfer_table()) {
            request.transfers.emplace_back(row.wire_name);
        }
        for (const LocalFile* file : files) {
            request.objects.push_back({.oid = file->sha256, .size = file->size});
        }
        KB_TRY(hub::LfsBatchAnswer answer, hub_->lfs_batch(request));
        std::map<digest::Digest, hub::LfsBatchItem> items;
        for (hub::LfsBatchItem& item : answer.objects) {
            const digest::Digest oid = item.object.oid;
            items.insert_or_assign(oid, std::move(item));
        }
        std::vector<Errand> errands;
        for (const LocalFile* file : files) {
            const auto found = items.find(file->sha256);
            if (found == items.end()) {
                return Error{.code = ErrorCode::corrupt,
                             .message = fmt::format("the registry does not say where '{}' goes",
                                                    file->path.text())};
            }
            KB_TRY(take_item(*file, std::move(found->second), answer.transfer, errands));
        }
        return errands;
    }

    Result<void> take_item(const LocalFile& file,
                           hub::LfsBatchItem item,
                           std::string_view transfer,
                           std::vector<Errand>& errands) {
        if (item.error) {
            return explain_status({.http = item.error->code, .message = item.error->message},
                                  fmt::format("sending '{}'", file.path.text()),
                                  HasToken::yes);
        }
        if (!item.upload) {
            ++counts.blobs_present;
            settle(file.size);
            return journal_->add_blob(file.sha256);
        }
        Errand errand{.file = &file, .transfer = find_transfer(transfer, item)};
        if (errand.transfer == nullptr) {
            return Error{.code = ErrorCode::unsupported,
                         .message = fmt::format(
                             "the registry wants transfer '{}', which is not supported here",
                             escape_control(transfer))};
        }
        errand.item = std::move(item);
        errands.push_back(std::move(errand));
        return {};
    }

    /// Pieces not confirmed yet, largest first; what is confirmed goes into the errand.
    Result<std::vector<Job>> make_jobs(std::vector<Errand>& errands) {
        std::vector<Job> jobs;
        for (Errand& errand : errands) {
            KB_TRY(std::vector<Piece> pieces,
                   errand.transfer->pieces(*errand.file, errand.item)
                       .context(fmt::format("sending '{}'", errand.file->path.text())));
            errand.chunk_size = pieces.front().slice.length;
            errand.parts = journal_->parts(errand.file->sha256, errand.chunk_size);
            for (Piece& piece : pieces) {
                if (piece.part != 0 && errand.parts.contains(piece.part)) {
                    ++errand.resumed;
                    add_bytes(static_cast<std::int64_t>(piece.slice.length));
                } else {
                    jobs.push_back({.errand = &errand, .piece = std::move(piece)});
                }
            }
            errand.missing = pieces.size() - errand.resumed;
            counts.parts_resumed += errand.resumed;
            if (errand.missing == 0) {
                KB_TRY(finish(errand));
            }
        }
        std::ranges::stable_sort(
            jobs, std::greater{}, [](const Job& job) { return job.piece.slice.length; });
        return jobs;
    }

    Result<void> run(std::vector<Errand>& errands) {
        KB_TRY(const std::vector<Job> jobs, make_jobs(errands));
        std::vector<std::optional<Error>> errors(jobs.size());
        std::atomic<bool> stopped = false;
        sys::parallel_for(jobs.size(), options_->streams, [&](std::size_t i) {
            if (stopped) {
                return;
            }
            if (auto done = send_piece(jobs[i]); !done) {
                errors[i] = std::move(done).error();
                stopped = true;
            }
        });
        for (std::optional<Error>& error : errors) {
            if (error) {
                return std::move(*error);
            }
        }
        return {};
    }

    Result<void> send_piece(const Job& job) {
        const LocalFile& file = *job.errand->file;
        const std::string doing = fmt::format("sending '{}'", file.path.text());
        KB_TRY(const http::Url url, hub_->endpoint().resolve(job.piece.url));
        std::uint64_t reported = 0;
        const http::Request request{.method = http::Method::put,
                                    .url = url,
                                    .headers = job.piece.headers,
                                    .body = job.piece.slice,
                                    .progress = [&](std::uint64_t sent, std::uint64_t) {
                                        add_bytes(static_cast<std::int64_t>(sent - reported));
                                        reported = sent;
                                    }};
        KB_TRY(const http::Response response, hub_->retrier().send(request).context(doing));
        if (!response.ok()) {
            return hub_->explain(response, doing);
        }
        add_bytes(static_cast<std::int64_t>(job.piece.slice.length - reported));
        return confirm(job, response);
    }

    Result<void> confirm(const Job& job, const http::Response& response) {
        Errand& errand = *job.errand;
        if (job.piece.part != 0) {
            const auto etag = response.headers.find("ETag");
            if (!etag) {
                return Error{.code = ErrorCode::corrupt,
                             .message = fmt::format("the registry took part {} of '{}' but gave no "
                                                    "ETag",
                                                    job.piece.part,
                                                    errand.file->path.text())};
            }
            const hub::LfsPart part{.number = job.piece.part, .etag = std::string{*etag}};
            KB_TRY(journal_->add_part(errand.file->sha256, errand.chunk_size, part));
            const std::lock_guard lock{mutex_};
            errand.parts[part.number] = part;
        }
        bool last = false;
        {
            const std::lock_guard lock{mutex_};
            counts.bytes_sent += job.piece.slice.length;
            last = --errand.missing == 0;
        }
        return last ? finish(errand) : Result<void>{};
    }

    Result<void> finish(Errand& errand) {
        const hub::LfsObject object{.oid = errand.file->sha256, .size = errand.file->size};
        const std::string doing = fmt::format("sending '{}'", errand.file->path.text());
        auto finished = errand.transfer->finish(*hub_, errand.item, errand.parts);
        if (finished && errand.item.verify) {
            finished = hub_->lfs_verify(*errand.item.verify, object);
        }
        if (!finished) {
            const ErrorCode code = finished.error().code;
            const bool stale =
                errand.resumed > 0 && code != ErrorCode::cancelled && code != ErrorCode::transient;
            return stale ? Result<void>{} : std::move(finished).context(doing);
        }
        KB_TRY(journal_->add_blob(errand.file->sha256));
        const std::lock_guard lock{mutex_};
        ++counts.blobs_sent;
        ++state_.blobs_done;
        return {};
    }

    void settle(std::uint64_t size) {
        const std::lock_guard lock{mutex_};
        ++state_.blobs_done;
        state_.bytes_done += size;
    }

    void add_bytes(std::int64_t delta) {
        const std::lock_guard lock{mutex_};
        state_.bytes_done += static_cast<std::uint64_t>(delta); // a repeated piece counts back
        if (options_->progress) {
            options_->progress(state_);
        }
    }

    const HubClient* hub_;
    Journal* journal_;
    const TransferOptions* options_;
    std::mutex mutex_;
    TransferProgress state_{};
};

} // namespace

std::span<const Transfer> transfer_table() {
    static constexpr std::array kTable = {kBasicTransfer, kMultipartTransfer};
    return kTable;
}

Result<TransferCounts> send_blobs(const HubClient& hub,
                                  Journal& journal,
                                  std::span<const LocalFile> blobs,
                                  const std::optional<std::string>& ref,
                                  const TransferOptions& options) {
    Sender sender{hub, journal, options};
    KB_TRY(sender.send(blobs, ref));
    return sender.counts;
}

} // namespace kb::upload
