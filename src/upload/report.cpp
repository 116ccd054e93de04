// SPDX-License-Identifier: Apache-2.0
#include "upload/publish.hpp"

#include <utility>

namespace kb::upload {

namespace {

using document::Node;

std::string_view to_text(UploadStatus status) {
    switch (status) {
    case UploadStatus::no_changes:
        return "no_changes";
    case UploadStatus::planned:
        return "planned";
    case UploadStatus::uploaded:
        return "uploaded";
    case UploadStatus::pull_request_created:
        return "pull_request_created";
    }
    std::unreachable();
}

Node or_null(const std::optional<std::string>& text) {
    return text ? Node{*text} : Node{};
}

Node plan_json(const BranchPlan& plan) {
    Node adds = Node::array();
    for (const LocalFile& file : plan.adds) {
        adds.push(Node::table(
            {{"path", file.path.text()}, {"size", file.size}, {"sha256", file.sha256.hex()}}));
    }
    Node deletes = Node::array();
    for (const RelPath& path : plan.deletes) {
        deletes.push(path.text());
    }
    return Node::table({{"branch", plan.branch},
                        {"new-branch", plan.state == BranchState::to_create},
                        {"add", std::move(adds)},
                        {"delete", std::move(deletes)},
                        {"unchanged", std::uint64_t{plan.unchanged}}});
}

Node result_json(const BranchResult& result) {
    return Node::table({{"branch", result.branch},
                        {"created", result.created},
                        {"commit", result.commit ? Node{result.commit->hex()} : Node{}},
                        {"pull-request", or_null(result.pull_request_url)},
                        {"added", std::uint64_t{result.added}},
                        {"deleted", std::uint64_t{result.deleted}},
                        {"unchanged", std::uint64_t{result.unchanged}}});
}

} // namespace

// {"status": "uploaded", "repo_id": "a/b", "branch": "v1", "url": "...", "pull_requests": []}
Node to_output_json(const UploadReport& report) {
    Node pull_requests = Node::array();
    for (const BranchResult& branch : report.branches) {
        if (branch.pull_request_url) {
            pull_requests.push(
                Node::table({{"branch", branch.branch}, {"url", *branch.pull_request_url}}));
        }
    }
    const bool uploaded = report.status == UploadStatus::uploaded;
    return Node::table({{"status", to_text(report.status)},
                        {"repo_id", report.repo_id},
                        {"branch", report.branch},
                        {"url", uploaded ? Node{report.url} : Node{}},
                        {"pull_requests", std::move(pull_requests)}});
}

Node to_json(const UploadReport& report) {
    Node plans = Node::array();
    for (const BranchPlan& plan : report.plan.branches) {
        plans.push(plan_json(plan));
    }
    Node results = Node::array();
    for (const BranchResult& result : report.branches) {
        results.push(result_json(result));
    }
    const TransferCounts& sent = report.transfer;
    return Node::table(
        {{"schema", "kernel-builder/upload/1"},
         {"status", to_text(report.status)},
         {"repo-id", report.repo_id},
         {"branch", report.branch},
         {"url", report.url},
         {"plan", std::move(plans)},
         {"refused-variants", Node::strings(report.plan.refused_variants)},
         {"bytes-planned", report.plan.bytes()},
         {"branches", std::move(results)},
         {"transfer",
          Node::table({{"bytes-sent", sent.bytes_sent},
                       {"blobs-sent", std::uint64_t{sent.blobs_sent}},
                       {"blobs-present", std::uint64_t{sent.blobs_present}},
                       {"blobs-from-journal", std::uint64_t{sent.blobs_from_journal}},
                       {"parts-resumed", std::uint64_t{sent.parts_resumed}}})},
         {"files-verified", std::uint64_t{report.verified}}});
}

} // namespace kb::upload
