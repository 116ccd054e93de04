// SPDX-License-Identifier: Apache-2.0
#include "build/record.hpp"

#include "document/json.hpp"

#include <array>
#include <utility>

namespace kb::build {

namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 4> kOutcomes{
    {{Outcome::built, "built"},
     {Outcome::compile_failed, "compile-failed"},
     {Outcome::check_failed, "check-failed"},
     {Outcome::cancelled, "cancelled"}}};
constexpr std::string_view kSchema = "kernel-builder/record/1";

} // namespace

std::string_view to_text(Outcome outcome) {
    for (const auto& [value, text] : kOutcomes) {
        if (value == outcome) {
            return text;
        }
    }
    return "built";
}

std::string write_record(const Record& record) {
    return document::write_canonical_json(
        document::Node::table({{"schema", kSchema},
                               {"variant", record.variant},
                               {"outcome", to_text(record.outcome)},
                               {"key", record.key.to_text()},
                               {"package-digest", record.package_digest},
                               {"sandbox", record.sandbox},
                               {"finished", record.finished},
                               {"seconds", record.seconds},
                               {"peak-bytes", record.peak_bytes},
                               {"log", record.log},
                               {"failures", document::Node::strings(record.failures)}}));
}

Result<Record> parse_record(std::string_view json) {
    KB_TRY(const document::Node root, document::parse_json(json, {.name = "the record"}));
    if (root.text_or("schema") != kSchema) {
        return Error{.code = ErrorCode::corrupt, .message = "the record has another schema"};
    }
    Record record;
    record.variant = root.text_or("variant");
    const std::string outcome = root.text_or("outcome");
    bool known = false;
    for (const auto& [value, text] : kOutcomes) {
        if (text == outcome) {
            record.outcome = value;
            known = true;
        }
    }
    if (!known || record.variant.empty()) {
        return Error{.code = ErrorCode::corrupt,
                     .message = "the record has no variant or an unknown outcome"};
    }
    KB_TRY(record.key, digest::KeyFile::parse(root.text_or("key")));
    record.package_digest = root.text_or("package-digest");
    record.sandbox = root.text_or("sandbox");
    record.finished = root.text_or("finished");
    record.log = root.text_or("log");
    if (const document::Node* seconds = root.find("seconds");
        seconds != nullptr && seconds->is(document::Node::Kind::floating)) {
        record.seconds = seconds->as_double();
    }
    if (const document::Node* peak = root.find("peak-bytes");
        peak != nullptr && peak->is_unsigned()) {
        record.peak_bytes = peak->as_unsigned();
    }
    if (const document::Node* failures = root.find("failures");
        failures != nullptr && failures->is_array()) {
        for (const document::Node& item : failures->as_array()) {
            if (item.is_string()) {
                record.failures.push_back(item.as_string());
            }
        }
    }
    return record;
}

} // namespace kb::build
