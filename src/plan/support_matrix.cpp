// SPDX-License-Identifier: Apache-2.0
#include "plan/support_matrix.hpp"

#include "document/json.hpp"
#include "document/reader.hpp"
#include "plan/document_error.hpp"
#include "plan_data_files.hpp"

#include <fmt/format.h>

#include <set>

namespace kb::plan {

namespace {

using document::Node;
using document::Reader;

std::vector<std::string> texts(Reader& reader, std::string_view key) {
    std::vector<std::string> result;
    if (auto items = reader.strings(key)) {
        for (auto& item : *items) {
            result.push_back(std::move(item.value));
        }
    }
    return result;
}

std::vector<Requirement> requirements_member(Reader& reader) {
    std::vector<Requirement> result;
    const auto items = reader.strings("requirements");
    if (!items) {
        return result;
    }
    for (const auto& item : *items) {
        auto requirement = Requirement::parse(item.value);
        if (requirement) {
            result.push_back(std::move(requirement).value());
        } else {
            reader.diagnostics().error(
                "bad-requirement", item.span, std::move(requirement).error().message);
        }
    }
    return result;
}

BackendId backend_member(Reader& reader) {
    const auto text = reader.string("backend");
    const auto id = text ? backend::parse_backend(text->value) : std::nullopt;
    if (text && !id) {
        reader.diagnostics().error(
            "bad-backend", text->span, fmt::format("'{}' is not a backend", text->value));
    }
    return id.value_or(BackendId::cpu);
}

Platform read_platform(Reader& reader, const std::string& text, const Span& span) {
    const auto platform = backend::parse_platform(text);
    if (!platform) {
        reader.diagnostics().error(
            "bad-platform", span, fmt::format("'{}' is not a platform", text));
    }
    return platform.value_or(Platform{});
}

std::uint32_t standard_member(Reader& reader) {
    const auto value = reader.unsigned_integer("cxx-standard");
    if (value && value->value != 17 && value->value != 20 && value->value != 23) {
        reader.diagnostics().error("bad-standard", value->span, "'cxx-standard' is 17, 20 or 23");
    }
    return value ? static_cast<std::uint32_t>(value->value) : 17;
}

FrameworkRow read_framework(Reader& reader) {
    FrameworkRow row{.version = version_member(reader, "version").major_minor(),
                     .cxx_standard = standard_member(reader),
                     .requirements = requirements_member(reader),
                     .unavailable = text_member(reader, "unavailable")};
    reader.require({"version", "cxx-standard", "requirements"});
    reader.finish({"version", "cxx-standard", "requirements", "unavailable"});
    return row;
}

std::optional<Version> optional_version(Reader& reader, std::string_view key) {
    Version version = version_member(reader, key);
    if (version.empty()) {
        return std::nullopt;
    }
    return version;
}

std::vector<Platform> platforms_member(Reader& reader) {
    std::vector<Platform> result;
    if (const auto platforms = reader.strings("platforms")) {
        for (const auto& text : *platforms) {
            result.push_back(read_platform(reader, text.value, text.span));
        }
    }
    return result;
}

ToolkitRow read_toolkit(Reader& reader) {
    ToolkitRow row{.backend = backend_member(reader),
                   .version = version_member(reader, "version"),
                   .archs = {.builds = texts(reader, "builds"),
                             .compiles = texts(reader, "compiles"),
                             .name = text_member(reader, "name")},
                   .cxx_standard = standard_member(reader),
                   .host_compiler_min = optional_version(reader, "host-compiler-min"),
                   .host_compiler_max = optional_version(reader, "host-compiler-max"),
                   .host_compiler = optional_version(reader, "host-compiler"),
                   .platforms = platforms_member(reader),
                   .stable_abi_only = text_member(reader, "stable-abi-only"),
                   .requirements = requirements_member(reader),
                   .unavailable = text_member(reader, "unavailable")};
    reader.require({"backend", "name", "cxx-standard", "requirements"});
    reader.finish({"backend",
                   "version",
                   "name",
                   "builds",
                   "compiles",
                   "cxx-standard",
                   "host-compiler-min",
                   "host-compiler-max",
                   "host-compiler",
                   "platforms",
                   "stable-abi-only",
                   "requirements",
                   "unavailable"});
    for (const auto* list : {&row.archs.builds, &row.archs.compiles}) {
        for (const std::string& arch : *list) {
            if (const auto problem = backend::check_arch(row.backend, arch)) {
                reader.diagnostics().error("unknown-arch", reader.node().span, problem->message);
            }
        }
    }
    return row;
}

HostRow read_host(Reader& reader) {
    HostRow row{.compiler = version_member(reader, "compiler"),
                .libc_policy = text_member(reader, "libc-policy"),
                .requirements = requirements_member(reader),
                .unavailable = text_member(reader, "unavailable")};
    if (const auto text = reader.string("platform")) {
        row.platform = read_platform(reader, text->value, text->span);
    }
    if (const auto text = reader.string("cxx")) {
        row.cxx = text->value;
    }
    const auto cross = reader.boolean("cross");
    row.cross = cross && cross->value;
    reader.require({"platform", "compiler", "requirements"});
    reader.finish(
        {"platform", "compiler", "cxx", "cross", "libc-policy", "requirements", "unavailable"});
    return row;
}

std::optional<Requirement> upstream_member(Reader& reader) {
    const auto text = reader.string("upstream");
    if (!text) {
        return std::nullopt;
    }
    auto requirement = Requirement::parse(text->value);
    if (!requirement) {
        reader.diagnostics().error("bad-requirement", text->span, requirement.error().message);
        return std::nullopt;
    }
    return std::move(requirement).value();
}

DependencyRow read_dependency(Reader& reader) {
    DependencyRow row{.name = text_member(reader, "name"),
                      .backend = backend_member(reader),
                      .mount = text_member(reader, "mount"),
                      .include = texts(reader, "include"),
                      .definitions = texts(reader, "definitions"),
                      .requirements = requirements_member(reader),
                      .upstream = upstream_member(reader),
                      .unavailable = text_member(reader, "unavailable")};
    reader.require({"name", "backend", "mount", "include", "requirements"});
    reader.finish({"name",
                   "backend",
                   "mount",
                   "include",
                   "definitions",
                   "requirements",
                   "upstream",
                   "unavailable"});
    return row;
}

SupportRow read_row(Reader& reader) {
    SupportRow row{.torch = version_member(reader, "torch").major_minor(),
                   .backend = backend_member(reader),
                   .backend_version = version_member(reader, "backend-version")};
    row.platforms = platforms_member(reader);
    const auto bundle = reader.boolean("bundle");
    row.in_bundle = bundle && bundle->value;
    row.tvm_ffi = optional_version(reader, "tvm-ffi");
    reader.require({"torch", "backend", "platforms", "bundle"});
    reader.finish({"torch", "backend", "backend-version", "platforms", "bundle", "tvm-ffi"});
    return row;
}

template <typename Row>
std::vector<Row> read_rows(Reader& root, std::string_view key, Row (*read)(Reader&)) {
    std::vector<Row> rows;
    const Node* array = root.array(key);
    if (array == nullptr) {
        return rows;
    }
    for (std::size_t i = 0; i < array->as_array().size(); ++i) {
        const Node& node = array->as_array()[i];
        Reader reader{node, fmt::format("{}[{}]", key, i), root.diagnostics()};
        rows.push_back(read(reader));
    }
    return rows;
}

void check_unique(std::set<std::string>& seen, std::string name, Diagnostics& diagnostics) {
    if (!seen.insert(name).second) {
        diagnostics.error("double-row", Span{}, fmt::format("{} has two rows", name));
    }
}

/// Rows are unique, and each version that a row names has a row of its own.
void check_references(const SupportMatrix& matrix, Diagnostics& diagnostics) {
    std::set<std::string> seen;
    for (const FrameworkRow& row : matrix.torch) {
        check_unique(seen, "torch " + row.version.to_text(), diagnostics);
    }
    for (const FrameworkRow& row : matrix.tvm_ffi) {
        check_unique(seen, "tvm-ffi " + row.version.to_text(), diagnostics);
    }
    for (const ToolkitRow& row : matrix.toolkits) {
        check_unique(
            seen, fmt::format("{} {}", to_text(row.backend), row.version.to_text()), diagnostics);
    }
    for (const HostRow& row : matrix.hosts) {
        check_unique(seen, to_text(row.platform), diagnostics);
    }
    for (const DependencyRow& row : matrix.dependencies) {
        check_unique(seen, row.name, diagnostics);
    }
    for (const SupportRow& row : matrix.rows) {
        const std::string name = fmt::format("torch {} with {} {}",
                                             row.torch.to_text(),
                                             to_text(row.backend),
                                             row.backend_version.to_text());
        check_unique(seen, name, diagnostics);
        if (find_torch(matrix, row.torch) == nullptr) {
            diagnostics.error("no-such-row", Span{}, fmt::format("'{}': no row of torch", name));
        }
        if (find_toolkit(matrix, row.backend, row.backend_version) == nullptr) {
            diagnostics.error("no-such-row", Span{}, fmt::format("'{}': no toolkit row", name));
        }
        if (row.tvm_ffi && find_tvm_ffi(matrix, *row.tvm_ffi) == nullptr) {
            diagnostics.error("no-such-row", Span{}, fmt::format("'{}': no tvm-ffi row", name));
        }
        for (const Platform& platform : row.platforms) {
            if (find_host(matrix, platform) == nullptr) {
                diagnostics.error("no-such-row", Span{}, fmt::format("'{}': no host row", name));
            }
        }
    }
}

const FrameworkRow* find_framework(const std::vector<FrameworkRow>& rows, const Version& version) {
    for (const FrameworkRow& row : rows) {
        if (row.version == version.major_minor()) {
            return &row;
        }
    }
    return nullptr;
}

} // namespace

Result<SupportMatrix> parse_support_matrix(std::string_view json) {
    KB_TRY(const Node root,
           document::parse_json(json, Origin{"support_matrix.json"}).context("reading the matrix"));
    Diagnostics diagnostics;
    Reader reader{root, "the support matrix", diagnostics};
    SupportMatrix matrix;
    if (text_member(reader, "schema") != "kernel-builder/support-matrix/1") {
        return Error{ErrorCode::corrupt,
                     "the support matrix is not of schema 'kernel-builder/support-matrix/1'",
                     {}};
    }
    static_cast<void>(text_member(reader, "about"));
    if (const Node* python = reader.table("python")) {
        Reader table{*python, "python", diagnostics};
        matrix.python_abi = version_member(table, "abi");
        matrix.python = requirements_member(table);
        table.require({"abi", "requirements"});
        table.finish({"abi", "requirements"});
    }
    matrix.hosts = read_rows(reader, "hosts", read_host);
    matrix.torch = read_rows(reader, "torch", read_framework);
    matrix.tvm_ffi = read_rows(reader, "tvm-ffi", read_framework);
    matrix.toolkits = read_rows(reader, "toolkits", read_toolkit);
    matrix.dependencies = read_rows(reader, "dependencies", read_dependency);
    matrix.rows = read_rows(reader, "rows", read_row);
    reader.require({"python", "hosts", "torch", "tvm-ffi", "toolkits", "dependencies", "rows"});
    reader.finish({"schema",
                   "about",
                   "python",
                   "hosts",
                   "torch",
                   "tvm-ffi",
                   "toolkits",
                   "dependencies",
                   "rows"});
    check_references(matrix, diagnostics);
    if (auto error = first_error(diagnostics)) {
        return std::move(*error);
    }
    return matrix;
}

const SupportMatrix& default_support_matrix() {
    static const SupportMatrix kMatrix = [] {
        auto matrix = parse_support_matrix(data::embedded_files().front().content);
        KB_ASSERT(matrix.has_value(), "the compiled-in matrix is tested to be readable");
        return std::move(matrix).value();
    }();
    return kMatrix;
}

const FrameworkRow* find_torch(const SupportMatrix& matrix, const Version& torch) {
    return find_framework(matrix.torch, torch);
}

const FrameworkRow* find_tvm_ffi(const SupportMatrix& matrix, const Version& tvm_ffi) {
    return find_framework(matrix.tvm_ffi, tvm_ffi);
}

const ToolkitRow*
find_toolkit(const SupportMatrix& matrix, BackendId backend, const Version& version) {
    for (const ToolkitRow& row : matrix.toolkits) {
        if (row.backend == backend && row.version == version) {
            return &row;
        }
    }
    return nullptr;
}

const HostRow* find_host(const SupportMatrix& matrix, const Platform& platform) {
    for (const HostRow& row : matrix.hosts) {
        if (row.platform == platform) {
            return &row;
        }
    }
    return nullptr;
}

const DependencyRow* find_dependency(const SupportMatrix& matrix, std::string_view name) {
    for (const DependencyRow& row : matrix.dependencies) {
        if (row.name == name) {
            return &row;
        }
    }
    return nullptr;
}

} // namespace kb::plan
