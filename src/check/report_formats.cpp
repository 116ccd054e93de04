// SPDX-License-Identifier: Apache-2.0
#include "check/report_formats.hpp"

#include "check/check.hpp"
#include "document/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kb::check {

namespace {

using document::Node;

std::string place_of(const Report& report, std::string_view library) {
    return library.empty() ? report.variant : fmt::format("{}/{}", report.variant, library);
}

/// A relative reference: what is not plain is written as %XX.
std::string uri(std::string_view path) {
    std::string out;
    for (const char c : path) {
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                           (c >= 'A' && c <= 'Z') ||
                           std::string_view{"/-._~+"}.find(c) != std::string_view::npos;
        if (plain) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

Node one(Node item) {
    Node out = Node::array();
    out.push(std::move(item));
    return out;
}

Node text(std::string_view words) {
    return Node::table({{"text", words}});
}

std::string_view title_of(std::string_view id) {
    const auto checks = all_checks();
    const auto found = std::ranges::find(checks, id, &Check::id);
    if (found != checks.end()) {
        return found->title;
    }
    return id == "read" ? "the file could be read" : id;
}

Node rules_of(std::span<const Report> reports) {
    std::set<std::string_view> ids;
    for (const Report& report : reports) {
        for (const Verdict& verdict : report.verdicts) {
            ids.insert(verdict.check);
        }
        for (const Finding& finding : report.findings) {
            ids.insert(finding.check);
        }
    }
    Node rules = Node::array();
    for (const std::string_view id : ids) {
        rules.push(Node::table({{"id", id}, {"shortDescription", text(title_of(id))}}));
    }
    return rules;
}

struct ResultRow {
    std::string_view rule{};
    std::string_view kind = "fail";
    std::string message{};
    std::string place{};
    std::string_view subject{};
    std::string_view suppressed{};
};

Node result_of(const ResultRow& row) {
    Node location = Node::table(
        {{"physicalLocation",
          Node::table({{"artifactLocation", Node::table({{"uri", uri(row.place)}})}})}});
    if (!row.subject.empty()) {
        location.set("logicalLocations", one(Node::table({{"fullyQualifiedName", row.subject}})));
    }
    Node out =
        Node::table({{"ruleId", row.rule},
                     {"kind", row.kind},
                     {"level", row.kind == "fail" ? "error" : "none"},
                     {"message", text(row.message)},
                     {"locations", one(std::move(location))},
                     {"partialFingerprints",
                      Node::table({{"subject/v1",
                                    fmt::format("{} {} {}", row.rule, row.place, row.subject)}})}});
    if (!row.suppressed.empty()) {
        out.set("suppressions",
                one(Node::table({{"kind", "external"}, {"justification", row.suppressed}})));
    }
    return out;
}

void add_results(const Report& report, Node& results) {
    for (const Finding& finding : report.findings) {
        const std::string next =
            finding.next_step.empty() ? std::string{} : "; next: " + finding.next_step;
        results.push(result_of({.rule = finding.check,
                                .message = finding.message + next,
                                .place = place_of(report, finding.library),
                                .subject = finding.subject,
                                .suppressed = finding.suppressed}));
    }
    for (const Verdict& verdict : report.verdicts) {
        if (verdict.outcome == Outcome::not_checked) {
            results.push(result_of({.rule = verdict.check,
                                    .kind = verdict.allowed ? "open" : "fail",
                                    .message = "not checked: " + verdict.reason,
                                    .place = place_of(report, verdict.library)}));
        }
    }
}

/// The findings of one verdict, a line each.
std::string findings_of(const Report& report, const Verdict& verdict) {
    std::string out;
    for (const Finding& finding : report.findings) {
        if (finding.library == verdict.library && finding.check == verdict.check &&
            finding.suppressed.empty()) {
            out += finding.message + "\n";
            if (!finding.next_step.empty()) {
                out += "  next: " + finding.next_step + "\n";
            }
        }
    }
    return out;
}

/// What the author lets be, a line each: a reader of the XML should see that it was there.
std::string suppressed_of(const Report& report, const Verdict& verdict) {
    std::string out;
    for (const Finding& finding : report.findings) {
        if (finding.library == verdict.library && finding.check == verdict.check &&
            !finding.suppressed.empty()) {
            out += fmt::format("suppressed ({}): {}\n", finding.suppressed, finding.message);
        }
    }
    return out.empty()
               ? out
               : fmt::format("      <system-out>{}</system-out>\n", document::escape_markup(out));
}

struct Counts {
    std::size_t failures = 0;
    std::size_t skipped = 0;
};

std::string junit_case(const Report& report, const Verdict& verdict, Counts& counts) {
    std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                                  document::escape_markup(place_of(report, verdict.library)),
                                  document::escape_markup(verdict.check));
    std::string body = suppressed_of(report, verdict);
    const bool unchecked = verdict.outcome == Outcome::not_checked;
    if (unchecked && verdict.allowed) {
        ++counts.skipped;
        body.insert(0,
                    fmt::format("      <skipped message=\"{}\"/>\n",
                                document::escape_markup(verdict.reason)));
    } else if (verdict.outcome != Outcome::passed) {
        ++counts.failures;
        const std::string lines = unchecked ? verdict.reason : findings_of(report, verdict);
        body.insert(0,
                    fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                                unchecked ? "not-checked" : "finding",
                                document::escape_markup(lines.substr(0, lines.find('\n'))),
                                document::escape_markup(lines)));
    }
    return out + (body.empty() ? "/>\n" : fmt::format(">\n{}    </testcase>\n", body));
}

} // namespace

Node to_sarif(std::span<const Report> reports, std::string_view tool_version) {
    Node results = Node::array();
    for (const Report& report : reports) {
        add_results(report, results);
    }
    Node driver = Node::table({{"name", "kernel-builder"},
                               {"semanticVersion", tool_version},
                               {"rules", rules_of(reports)}});
    Node run = Node::table({{"tool", Node::table({{"driver", std::move(driver)}})},
                            {"invocations", one(Node::table({{"executionSuccessful", true}}))},
                            {"results", std::move(results)}});
    return Node::table({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                        {"version", "2.1.0"},
                        {"runs", one(std::move(run))}});
}

std::string to_junit(std::span<const Report> reports) {
    std::string suites;
    Counts all;
    std::size_t cases = 0;
    for (const Report& report : reports) {
        Counts counts;
        std::string body;
        for (const Verdict& verdict : report.verdicts) {
            body += junit_case(report, verdict, counts);
        }
        suites +=
            fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n"
                        "{}  </testsuite>\n",
                        document::escape_markup(report.variant),
                        report.verdicts.size(),
                        counts.failures,
                        counts.skipped,
                        body);
        all.failures += counts.failures;
        all.skipped += counts.skipped;
        cases += report.verdicts.size();
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}</testsuites>\n",
        cases,
        all.failures,
        all.skipped,
        suites);
}

} // namespace kb::check
