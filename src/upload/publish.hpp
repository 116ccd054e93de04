// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "document/node.hpp"
#include "sys/file_system.hpp"
#include "upload/hub_client.hpp"
#include "upload/journal.hpp"
#include "upload/transfer.hpp"
#include "upload/upload_plan.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kb::upload {

enum class Mode : std::uint8_t { commit, pull_request };
enum class DryRun : std::uint8_t { no, yes };

struct PublishRequest {
    UploadInput input{};
    Mode mode = Mode::commit;
    DryRun dry_run = DryRun::no;
    Replace replace = Replace::no;
    hub::Visibility visibility = hub::Visibility::public_;
    sys::Path journal{};
    std::string message = "Uploaded using `kernel-builder`.";
    /// How often the branch may move under us before we give up.
    unsigned replans = 8;
    TransferOptions transfer{};
    /// One line for people about what happens now; may be empty.
    std::function<void(const std::string&)> note{};
    /// Makes sure that `input` is what it says; runs once, beside the sending in a thread of its
    /// own. Its error is the result, and nothing is committed then. May be empty.
    std::function<Result<void>()> confirm{};
};

struct PublishServices {
    const HubClient* hub = nullptr;
    sys::FileSystem* fs = nullptr;
};

enum class UploadStatus : std::uint8_t { no_changes, planned, uploaded, pull_request_created };

struct BranchResult {
    std::string branch{};
    /// The branch did not exist before.
    bool created = false;
    /// The commit that holds what was wanted: ours, or the head when there was nothing to do.
    std::optional<hub::GitOid> commit{};
    std::optional<std::string> pull_request_url{};
    std::size_t added = 0;
    std::size_t deleted = 0;
    std::size_t unchanged = 0;
};

struct UploadReport {
    UploadStatus status = UploadStatus::no_changes;
    std::string repo_id{};
    std::string branch{};
    /// Page of the branch at this endpoint.
    std::string url{};
    std::vector<BranchResult> branches{};
    UploadPlan plan{};
    TransferCounts transfer{};
    /// Files read back and compared.
    std::size_t verified = 0;
};

/// Reads the remote state, plans, and unless that is empty or a dry run: creates repository and
/// branch, sends blobs, commits once per branch, and reads back what a reader now gets. On an error
/// the journal stays, and the same call goes on from there. A branch that moved is read again: when
/// the other change touches none of our places we commit on top, else the error says who and what.
[[nodiscard]] Result<UploadReport> publish(const PublishRequest& request,
                                           const PublishServices& services);

/// The summary file of --output-json, exactly as upstream's readers expect it.
[[nodiscard]] document::Node to_output_json(const UploadReport& report);
/// --json: schema "kernel-builder/upload/1".
[[nodiscard]] document::Node to_json(const UploadReport& report);

} // namespace kb::upload
