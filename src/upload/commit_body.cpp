// SPDX-License-Identifier: Apache-2.0
#include "upload/commit_body.hpp"

#include "base/assert.hpp"
#include "sys/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <set>
#include <sys/types.h>
#include <unistd.h>

namespace kb::upload {

namespace {

constexpr std::size_t kBatch = 256;
constexpr std::size_t kSample = 512;

/// The first bytes, by which a server tells text from binary.
Result<std::string> read_sample(const LocalFile& file) {
    const sys::UniqueFd fd{::open(file.source.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd) {
        return error_from_errno(errno, fmt::format("opening '{}'", file.source));
    }
    std::string sample(kSample, '\0');
    const auto n = ::pread(fd.get(), sample.data(), sample.size(), 0);
    if (n < 0) {
        return error_from_errno(errno, fmt::format("reading '{}'", file.source));
    }
    sample.resize(static_cast<std::size_t>(n));
    return sample;
}

Result<void> take_verdicts(const hub::PreuploadAnswer& answer, UploadModes& modes) {
    for (const hub::PreuploadVerdict& verdict : answer.files) {
        if (verdict.should_ignore) {
            return Error{.code = ErrorCode::denied,
                         .message = fmt::format("the repository's .gitignore drops '{}'; change it "
                                                "there, the variant would be incomplete",
                                                verdict.path.text())};
        }
        modes.insert_or_assign(verdict.path, verdict.mode);
    }
    return {};
}

hub::UploadMode mode_of(const UploadModes& modes, const LocalFile& file) {
    const auto found = modes.find(file.path);
    KB_ASSERT(found != modes.end(), "ask_modes() has seen every file of the plan");
    return found->second;
}

} // namespace

Result<void> ask_modes(const HubClient& hub,
                       const std::string& revision,
                       const BranchPlan& plan,
                       UploadModes& modes) {
    std::vector<const LocalFile*> open;
    for (const LocalFile& file : plan.adds) {
        if (file.size == 0) {
            modes.insert_or_assign(file.path, hub::UploadMode::regular);
        } else if (file.size > kMaxInline) {
            modes.insert_or_assign(file.path, hub::UploadMode::lfs);
        } else if (!modes.contains(file.path)) {
            open.push_back(&file);
        }
    }
    for (std::size_t first = 0; first < open.size(); first += kBatch) {
        hub::Preupload request;
        for (std::size_t i = first; i < std::min(open.size(), first + kBatch); ++i) {
            KB_TRY(std::string sample, read_sample(*open[i]));
            request.files.push_back(
                {.path = open[i]->path, .size = open[i]->size, .sample = std::move(sample)});
        }
        KB_TRY(const hub::PreuploadAnswer answer, hub.preupload(revision, request));
        KB_TRY(take_verdicts(answer, modes));
    }
    for (const LocalFile* file : open) {
        if (!modes.contains(file->path)) {
            return Error{.code = ErrorCode::corrupt,
                         .message = fmt::format("the registry does not say how '{}' shall travel",
                                                file->path.text())};
        }
    }
    return {};
}

Result<std::string> read_checked(sys::FileSystem& fs, const LocalFile& file) {
    KB_TRY(std::string content, fs.read_file(file.source, file.size));
    if (content.size() != file.size || digest::sha256(content) != file.sha256) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' changed while it was published; run the same "
                                            "command again",
                                            file.source)};
    }
    return content;
}

Result<void> identify(sys::FileSystem& fs, LocalFile& file) {
    KB_TRY(const std::string content, read_checked(fs, file));
    file.git_oid = hub::git_id(hub::GitKind::blob, content);
    return {};
}

std::vector<LocalFile> lfs_blobs(const BranchPlan& plan, const UploadModes& modes) {
    std::set<digest::Digest> seen;
    std::vector<LocalFile> blobs;
    for (const LocalFile& file : plan.adds) {
        if (mode_of(modes, file) == hub::UploadMode::lfs && seen.insert(file.sha256).second) {
            blobs.push_back(file);
        }
    }
    return blobs;
}

Result<std::string> make_commit_body(sys::FileSystem& fs,
                                     const hub::CommitHeader& header,
                                     BranchPlan& plan,
                                     const UploadModes& modes) {
    std::string body = hub::write_line(header);
    for (const RelPath& path : plan.deletes) {
        body += hub::write_line(hub::DeletedFileOp{.path = path});
    }
    for (LocalFile& file : plan.adds) {
        if (mode_of(modes, file) == hub::UploadMode::lfs) {
            body += hub::write_line(
                hub::LfsFileOp{.path = file.path, .oid = file.sha256, .size = file.size});
        } else {
            KB_TRY(const std::string content, read_checked(fs, file));
            file.git_oid = hub::git_id(hub::GitKind::blob, content);
            body += hub::write_line(hub::FileOp{.path = file.path}, content);
        }
    }
    return body;
}

} // namespace kb::upload
