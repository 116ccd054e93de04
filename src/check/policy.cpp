// SPDX-License-Identifier: Apache-2.0
#include "check/policy.hpp"

#include "base/assert.hpp"
#include "base/text.hpp"
#include "check_data_files.hpp"

#include <unordered_map>

namespace kb::check {

namespace {

using Row = std::vector<std::string_view>;
using Added = std::unordered_map<std::string_view, Version>;

std::vector<Row> read_rows(std::string_view file_name) {
    std::vector<Row> out;
    for (const EmbeddedFile& file : data::embedded_files()) {
        if (file.path != file_name) {
            continue;
        }
        for (const std::string_view line : split(file.content, '\n')) {
            if (!line.empty() && !line.starts_with('#')) {
                out.push_back(split(line, '\t'));
            }
        }
    }
    KB_ASSERT(!out.empty(), "the policy data is compiled in");
    return out;
}

struct ManylinuxLibraries {
    static constexpr std::string_view kFile = "manylinux-libraries.tsv";
};

struct ManylinuxVersions {
    static constexpr std::string_view kFile = "manylinux-symbol-versions.tsv";
};

struct RuntimeLibraries {
    static constexpr std::string_view kFile = "runtime-libraries.tsv";
};

/// Calls `visit` with the columns of each line that is no comment. Each table is read when the
/// first check asks for it.
template <typename Table, typename Visit>
void for_each_row(std::size_t columns, Visit visit) {
    static const std::vector<Row> kRows = read_rows(Table::kFile);
    for (const Row& row : kRows) {
        KB_ASSERT(row.size() >= columns, "rows of the policy data have all columns");
        visit(row);
    }
}

Names words(std::string_view text) {
    Names out;
    for (const std::string_view word : split(text, ' ')) {
        if (!word.empty()) {
            out.insert(word);
        }
    }
    return out;
}

Added read_added(std::string_view file_name) {
    Added out;
    for (const Row& row : read_rows(file_name)) {
        const auto version = row.size() < 2 ? std::nullopt : Version::parse(row[1]);
        KB_ASSERT(version.has_value(), "versions in the policy data parse");
        out.emplace(row[0], *version);
    }
    return out;
}

std::optional<Version> look_up(const Added& table, std::string_view symbol) {
    const auto found = table.find(symbol);
    return found == table.end() ? std::nullopt : std::optional{found->second};
}

bool is_blacklist(std::string_view column) {
    return column.starts_with("blacklist:");
}

} // namespace

std::optional<ManylinuxPolicy> find_manylinux(std::string_view name,
                                              std::string_view architecture) {
    ManylinuxPolicy out;
    for_each_row<ManylinuxLibraries>(3, [&](const Row& row) {
        if (is_blacklist(row[1])) {
            if (row[0] == out.name) {
                out.blacklist[row[1].substr(row[1].find(':') + 1)] = words(row[2]);
            }
        } else if (row[0] == name || words(row[1]).contains(name)) {
            out.name = row[0];
            out.libraries = words(row[2]);
        }
    });
    if (out.name.empty()) {
        return std::nullopt;
    }
    for_each_row<ManylinuxVersions>(4, [&](const Row& row) {
        if (row[0] == out.name && row[1] == architecture) {
            out.versions[row[2]] = words(row[3]);
        }
    });
    return out;
}

std::vector<std::string_view> manylinux_names() {
    std::vector<std::string_view> out;
    for_each_row<ManylinuxLibraries>(3, [&](const Row& row) {
        if (!is_blacklist(row[1]) && row[0] != "linux") {
            out.push_back(row[0]);
        }
    });
    return out;
}

std::optional<Version> python_symbol_added(std::string_view symbol) {
    static const Added kTable = read_added("python-stable-abi.tsv");
    return look_up(kTable, symbol);
}

std::optional<Version> torch_shim_added(std::string_view symbol) {
    static const Added kTable = read_added("torch-shims.tsv");
    return look_up(kTable, symbol);
}

Names runtime_libraries(backend::BackendId backend, const Version& version) {
    Names out;
    const std::string major = std::to_string(version.major());
    for_each_row<RuntimeLibraries>(3, [&](const Row& row) {
        if (row[0] == backend::to_text(backend) && (row[1] == "*" || row[1] == major)) {
            out.merge(words(row[2]));
        }
    });
    return out;
}

} // namespace kb::check
