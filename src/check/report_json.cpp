// SPDX-License-Identifier: Apache-2.0
#include "check/report_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::check {

namespace {

using document::Node;

constexpr std::array kOutcomes{Outcome::passed, Outcome::failed, Outcome::not_checked};

std::string_view json_text(Outcome outcome) {
    return outcome == Outcome::not_checked ? "not-checked" : to_text(outcome);
}

Node to_json(const Finding& finding) {
    Node out = Node::table({{"library", finding.library},
                            {"check", finding.check},
                            {"subject", finding.subject},
                            {"policy", finding.policy},
                            {"found", finding.found},
                            {"allowed", finding.allowed},
                            {"message", finding.message},
                            {"next-step", finding.next_step}});
    if (!finding.counts()) {
        out.set("suppressed", finding.suppressed);
    }
    return out;
}

Node to_json(const Verdict& verdict) {
    return Node::table({{"library", verdict.library},
                        {"check", verdict.check},
                        {"outcome", json_text(verdict.outcome)},
                        {"reason", verdict.reason},
                        {"allowed", verdict.allowed}});
}

Result<const Node::Array*> list(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    if (found == nullptr || !found->is_array()) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("the report has no list '{}'", key)};
    }
    return &found->as_array();
}

Finding finding_from(const Node& node) {
    return {.library = node.text_or("library"),
            .check = node.text_or("check"),
            .subject = node.text_or("subject"),
            .policy = node.text_or("policy"),
            .found = node.text_or("found"),
            .allowed = node.text_or("allowed"),
            .message = node.text_or("message"),
            .next_step = node.text_or("next-step"),
            .suppressed = node.text_or("suppressed")};
}

Result<Verdict> verdict_from(const Node& node) {
    const std::string text = node.text_or("outcome");
    const auto outcome = std::ranges::find(kOutcomes, std::string_view{text}, json_text);
    if (outcome == kOutcomes.end()) {
        return Error{.code = ErrorCode::corrupt,
                     .message = fmt::format("'{}' is no outcome of a check", text)};
    }
    const Node* allowed = node.find("allowed");
    return Verdict{.library = node.text_or("library"),
                   .check = node.text_or("check"),
                   .outcome = *outcome,
                   .reason = node.text_or("reason"),
                   .allowed = allowed != nullptr && *allowed == Node{true}};
}

} // namespace

Node to_json(const Report& report) {
    Node verdicts = Node::array();
    for (const Verdict& verdict : report.verdicts) {
        verdicts.push(to_json(verdict));
    }
    Node findings = Node::array();
    for (const Finding& finding : report.findings) {
        findings.push(to_json(finding));
    }
    return Node::table({{"name", report.variant},
                        {"passed", report.passed()},
                        {"verdicts", std::move(verdicts)},
                        {"findings", std::move(findings)}});
}

Node to_json(std::span<const Report> reports) {
    Node variants = Node::array();
    for (const Report& report : reports) {
        variants.push(to_json(report));
    }
    return Node::table({{"schema", "kernel-builder/report/1"},
                        {"passed", std::ranges::all_of(reports, &Report::passed)},
                        {"variants", std::move(variants)}});
}

Result<Report> report_from_json(const Node& node) {
    Report out{.variant = node.text_or("name")};
    KB_TRY(const Node::Array* verdicts, list(node, "verdicts"));
    for (const Node& verdict : *verdicts) {
        KB_TRY(Verdict one, verdict_from(verdict));
        out.verdicts.push_back(std::move(one));
    }
    KB_TRY(const Node::Array* findings, list(node, "findings"));
    for (const Node& finding : *findings) {
        out.findings.push_back(finding_from(finding));
    }
    return out;
}

} // namespace kb::check
