// SPDX-License-Identifier: Apache-2.0
#include "config/project_settings.hpp"

#include "document/reader.hpp"

#include <fmt/format.h>

namespace kb::config {

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
    reader.require({"schema"});
    reader.finish({"schema", "experimental"});
    const bool failed = problems.has_errors();
    diagnostics.append(std::move(problems));
    return failed ? std::nullopt : std::optional{settings};
}

} // namespace kb::config
