// SPDX-License-Identifier: Apache-2.0
#include "config/project_settings.hpp"

#include "document/reader.hpp"

#include <fmt/format.h>

namespace kb::config {

namespace {

Suppression read_suppression(const document::Node& node, Diagnostics& problems) {
    document::Reader reader{node, "[[suppress]]", problems};
    Suppression out;
    const std::pair<std::string_view, std::string*> keys[] = {{"check", &out.check},
                                                              {"variant", &out.variant},
                                                              {"library", &out.library},
                                                              {"subject", &out.subject},
                                                              {"reason", &out.reason}};
    for (const auto& [key, target] : keys) {
        if (auto found = reader.string(key)) {
            if (found->value.empty()) {
                problems.error("empty-value", found->span, fmt::format("'{}' is empty", key));
            }
            *target = std::move(found->value);
        }
    }
    reader.require({"check", "reason"});
    reader.finish({"check", "variant", "library", "subject", "reason"});
    return out;
}

void read_suppressions(document::Reader& reader, ProjectSettings& settings, Diagnostics& problems) {
    const document::Node* items = reader.array("suppress");
    if (items == nullptr) {
        return;
    }
    for (const document::Node& item : items->as_array()) {
        if (item.is_table()) {
            settings.suppressions.push_back(read_suppression(item, problems));
        } else {
            problems.error(
                "wrong-type",
                item.span,
                fmt::format("an item of 'suppress' is {}, not a table", item.kind_text()),
                {"write it as [[suppress]]"});
        }
    }
}

} // namespace

std::optional<ProjectSettings> read_project_settings(const document::Node& root,
                                                     Diagnostics& diagnostics) {
    constexpr std::string_view kSchema = "kernel-builder/project/1";
    Diagnostics problems;
    document::Reader reader{root, std::string{kProjectSettingsFile}, problems};
    ProjectSettings settings;
    if (const auto schema = reader.string("schema"); schema && schema->value != kSchema) {
        problems.error("unknown-schema",
                       schema->span,
                       fmt::format("'{}' is not a schema that this version reads", schema->value),
                       {fmt::format("write schema = \"{}\"", kSchema)});
    }
    if (const auto experimental = reader.boolean("experimental")) {
        settings.experimental = experimental->value;
    }
    read_suppressions(reader, settings, problems);
    reader.require({"schema"});
    reader.finish({"schema", "experimental", "suppress"});
    const bool failed = problems.has_errors();
    diagnostics.append(std::move(problems));
    return failed ? std::nullopt : std::optional{settings};
}

} // namespace kb::config
