// SPDX-License-Identifier: Apache-2.0
#include "cli/render.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kb::cli {

void render_diagnostics(const Diagnostics& diagnostics,
                        const std::map<std::string, std::string>& sources,
                        Terminal& terminal) {
    Diagnostics sorted = diagnostics;
    sorted.sort();
    std::size_t errors = 0;
    for (const Diagnostic& item : sorted.items()) {
        const auto source = sources.find(item.span.file);
        terminal.err(to_text(item,
                             source == sources.end()
                                 ? std::nullopt
                                 : std::optional<std::string_view>{source->second}));
        errors += item.severity == Severity::error ? 1U : 0U;
    }
    const std::size_t warnings = sorted.items().size() - errors;
    if (errors + warnings > 1) {
        terminal.err(
            fmt::format("{}, {}\n", counted(errors, "error"), counted(warnings, "warning")));
    }
}

document::Node to_json(const Diagnostics& diagnostics) {
    Diagnostics sorted = diagnostics;
    sorted.sort();
    document::Node list = document::Node::array();
    for (const Diagnostic& item : sorted.items()) {
        list.push(document::Node::table(
            {{"severity", item.severity == Severity::error ? "error" : "warning"},
             {"id", item.id},
             {"file", item.span.file},
             {"line", item.span.line},
             {"column", item.span.column},
             {"message", item.message},
             {"notes", document::Node::strings(item.notes)}}));
    }
    return list;
}

void render_error(const Error& error, Terminal& terminal) {
    terminal.err(fmt::format("error: {}\n", error.to_text()));
}

std::string escape_lines(std::string_view text) {
    std::string out;
    for (const std::string_view line : split(text, '\n')) {
        out += escape_control(line) + "\n";
    }
    out.pop_back();
    return out;
}

std::string render_table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], count_code_points(row[i]));
        }
    }
    std::string out;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += row[i];
            line += std::string(widths[i] - count_code_points(row[i]) + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

std::string human_seconds(double seconds) {
    if (seconds < 1.0) {
        return fmt::format("{:.0f} ms", seconds * 1000.0);
    }
    if (seconds < 60.0) {
        return fmt::format("{:.1f} s", seconds);
    }
    const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

} // namespace kb::cli
