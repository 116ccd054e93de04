// SPDX-License-Identifier: Apache-2.0
#include "document/json.hpp"
#include "document/reader.hpp"
#include "plan/document_error.hpp"
#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::plan {

namespace {

using document::Node;
using document::Reader;

constexpr std::string_view kSchema = "kernel-builder/plan/1";

Node version_node(const Version& version) {
    return version.empty() ? Node{} : Node{version.to_text()};
}

Node version_node(const std::optional<Version>& version) {
    return version ? Node{version->to_text()} : Node{};
}

Node words_node(const Words& words) {
    Node node = Node::array();
    for (const std::string_view word : words) {
        node.push(std::string{word});
    }
    return node;
}

Node requirements_node(const std::vector<Requirement>& list) {
    Node node = Node::array();
    for (const Requirement& requirement : list) {
        node.push(requirement.id());
    }
    return node;
}

Node tu_node(const Tu& tu) {
    Node headers = Node::array();
    for (const RelPath& header : tu.headers) {
        headers.push(header.text());
    }
    return Node::table({{"id", tu.id},
                        {"source", tu.source.text()},
                        {"kind", to_text(tu.kind)},
                        {"section", tu.section},
                        {"command", words_node(tu.command)},
                        {"before", words_node(tu.before)},
                        {"object", tu.object},
                        {"keep-dir", tu.keep_dir.empty() ? Node{} : Node{tu.keep_dir}},
                        {"archs", Node::strings(tu.archs)},
                        {"torch", version_node(tu.torch)},
                        {"headers", std::move(headers)},
                        {"requirements", words_node(tu.requirements)}});
}

Node section_node(const SectionArchs& section) {
    Node refused = Node::array();
    for (const auto& item : section.choice.refused) {
        refused.push(Node::table({{"arch", item.arch}, {"reason", item.reason}}));
    }
    return Node::table({{"section", section.section},
                        {"skipped", section.skipped},
                        {"archs", Node::strings(section.choice.kept)},
                        {"refused", std::move(refused)}});
}

Node promises_node(const Promises& promises) {
    return Node::table({{"device-code", to_text(promises.device_code)},
                        {"archs", Node::strings(promises.archs)},
                        {"libc-policy", promises.libc_policy},
                        {"python-abi", version_node(promises.python_abi)},
                        {"torch-stable-abi", version_node(promises.torch_stable_abi)},
                        {"torch", version_node(promises.torch)},
                        {"libraries", words_node(promises.libraries)}});
}

Node variant_node(const PlannedVariant& variant) {
    Node sections = Node::array();
    for (const SectionArchs& section : variant.sections) {
        sections.push(section_node(section));
    }
    Node link;
    if (!variant.link.output.empty()) {
        link = Node::table(
            {{"output", variant.link.output}, {"command", words_node(variant.link.command)}});
    }
    Node key = Node::table();
    for (const auto& line : variant.key.lines.lines()) {
        key.set(line.first, line.second);
    }
    return Node::table(
        {{"name", variant.name.text()},
         {"ops-id", variant.ops_id},
         {"torch", version_node(variant.torch)},
         {"sections", std::move(sections)},
         {"tus", words_node(variant.tus)},
         {"link", std::move(link)},
         {"promises", promises_node(variant.promises)},
         {"requirements", requirements_node(variant.requirements())},
         {"build-key", Node::table({{"id", variant.key.id()}, {"lines", std::move(key)}})}});
}

std::vector<std::string> texts(Reader& reader, std::string_view key) {
    std::vector<std::string> result;
    if (auto items = reader.strings(key)) {
        for (auto& item : *items) {
            result.push_back(std::move(item.value));
        }
    }
    return result;
}

bool is_null(Reader& reader, std::string_view key) {
    const Node* node = reader.any(key);
    return node == nullptr || node->is(Node::Kind::null);
}

Version version_or_null(Reader& reader, std::string_view key) {
    return is_null(reader, key) ? Version{} : version_member(reader, key);
}

std::optional<Version> optional_version(Reader& reader, std::string_view key) {
    if (is_null(reader, key)) {
        return std::nullopt;
    }
    return version_member(reader, key);
}

void fail(Reader& reader, std::string_view key) {
    reader.diagnostics().error("bad-value",
                               reader.node().span,
                               fmt::format("'{}' of {} is malformed", key, reader.path()));
}

RelPath path_member(Reader& reader, std::string_view key, const std::string& text) {
    auto path = RelPath::parse(text);
    if (!path) {
        fail(reader, key);
        return RelPath::literal("malformed");
    }
    return std::move(path).value();
}

std::vector<Requirement> requirement_list(Reader& reader, std::string_view key) {
    std::vector<Requirement> list;
    for (const std::string& text : texts(reader, key)) {
        if (auto requirement = Requirement::parse(text)) {
            list.push_back(std::move(requirement).value());
        } else {
            fail(reader, key);
        }
    }
    return list;
}

template <typename Enum>
Enum enum_member(Reader& reader, std::string_view key, Enum last) {
    const std::string text = text_member(reader, key);
    for (int i = 0; i <= static_cast<int>(last); ++i) {
        if (to_text(static_cast<Enum>(i)) == text) {
            return static_cast<Enum>(i);
        }
    }
    fail(reader, key);
    return last;
}

Tu read_tu(Reader& reader) {
    Tu tu{.id = text_member(reader, "id"),
          .source = path_member(reader, "source", text_member(reader, "source")),
          .kind = enum_member(reader, "kind", backend::SourceKind::other),
          .section = text_member(reader, "section"),
          .command = Words{texts(reader, "command")},
          .before = Words{texts(reader, "before")},
          .object = text_member(reader, "object"),
          .keep_dir = is_null(reader, "keep-dir") ? std::string{} : text_member(reader, "keep-dir"),
          .archs = texts(reader, "archs"),
          .torch = version_or_null(reader, "torch")};
    for (const std::string& header : texts(reader, "headers")) {
        tu.headers.push_back(path_member(reader, "headers", header));
    }
    tu.requirements = Words{texts(reader, "requirements")};
    reader.require({"id", "source", "kind", "command", "object"});
    reader.finish({"id",
                   "source",
                   "kind",
                   "section",
                   "command",
                   "before",
                   "object",
                   "keep-dir",
                   "archs",
                   "torch",
                   "headers",
                   "requirements"});
    return tu;
}

SectionArchs read_section(Reader& reader) {
    SectionArchs section{.section = text_member(reader, "section")};
    section.choice.kept = texts(reader, "archs");
    const auto skipped = reader.boolean("skipped");
    section.skipped = skipped && skipped->value;
    if (const Node* refused = reader.array("refused")) {
        for (const Node& item : refused->as_array()) {
            Reader entry{item, reader.path() + ".refused", reader.diagnostics()};
            section.choice.refused.push_back(
                {text_member(entry, "arch"), text_member(entry, "reason")});
            entry.finish({"arch", "reason"});
        }
    }
    reader.require({"section", "archs", "skipped", "refused"});
    reader.finish({"section", "archs", "skipped", "refused"});
    return section;
}

Promises read_promises(Reader& reader) {
    Promises promises{.device_code = enum_member(reader, "device-code", backend::DeviceCode::spirv),
                      .archs = texts(reader, "archs"),
                      .libc_policy = text_member(reader, "libc-policy"),
                      .python_abi = version_or_null(reader, "python-abi"),
                      .torch_stable_abi = optional_version(reader, "torch-stable-abi"),
                      .torch = optional_version(reader, "torch"),
                      .libraries = Words{texts(reader, "libraries")}};
    reader.finish({"device-code",
                   "archs",
                   "libc-policy",
                   "python-abi",
                   "torch-stable-abi",
                   "torch",
                   "libraries"});
    return promises;
}

BuildKey read_key(Reader& reader) {
    BuildKey key;
    const std::string id = text_member(reader, "id");
    std::string text;
    if (const Node* lines = reader.table("lines")) {
        for (const auto& line : lines->entries()) {
            text += fmt::format("{} {}\n", line.key, lines->text_or(line.key));
        }
    }
    if (auto lines = digest::KeyFile::parse(text)) {
        key.lines = std::move(lines).value();
    } else {
        fail(reader, "lines");
    }
    reader.finish({"id", "lines"});
    if (key.id() != id) {
        fail(reader, "id");
    }
    return key;
}

PlannedVariant read_variant(Reader& reader) {
    PlannedVariant variant{.ops_id = text_member(reader, "ops-id"),
                           .torch = version_or_null(reader, "torch"),
                           .tus = Words{texts(reader, "tus")}};
    if (auto name = VariantName::parse(text_member(reader, "name"))) {
        variant.name = std::move(*name);
    } else {
        fail(reader, "name");
    }
    if (const Node* sections = reader.array("sections")) {
        for (const Node& item : sections->as_array()) {
            Reader section{item, reader.path() + ".sections", reader.diagnostics()};
            variant.sections.push_back(read_section(section));
        }
    }
    if (!is_null(reader, "link")) {
        if (const Node* node = reader.table("link")) {
            Reader link{*node, reader.path() + ".link", reader.diagnostics()};
            variant.link = {.output = text_member(link, "output"),
                            .command = Words{texts(link, "command")}};
            link.finish({"output", "command"});
        }
    }
    if (const Node* node = reader.table("promises")) {
        Reader promises{*node, reader.path() + ".promises", reader.diagnostics()};
        variant.promises = read_promises(promises);
    }
    const std::vector<Requirement> needed = requirement_list(reader, "requirements");
    if (const Node* node = reader.table("build-key")) {
        Reader key{*node, reader.path() + ".build-key", reader.diagnostics()};
        variant.key = read_key(key);
    }
    if (variant.requirements() != needed) {
        fail(reader, "requirements");
    }
    reader.require({"name", "ops-id", "tus", "promises", "requirements", "build-key"});
    reader.finish({"name",
                   "ops-id",
                   "torch",
                   "sections",
                   "tus",
                   "link",
                   "promises",
                   "requirements",
                   "build-key"});
    return variant;
}

template <typename T>
std::vector<T> read_list(Reader& root, std::string_view key, T (*read)(Reader&)) {
    std::vector<T> list;
    if (const Node* array = root.array(key)) {
        for (std::size_t i = 0; i < array->as_array().size(); ++i) {
            Reader reader{array->as_array()[i], fmt::format("{}[{}]", key, i), root.diagnostics()};
            list.push_back(read(reader));
        }
    }
    return list;
}

void check_references(const Plan& plan, Diagnostics& diagnostics) {
    for (const PlannedVariant& variant : plan.variants) {
        for (const std::string_view id : variant.tus) {
            if (std::ranges::find(plan.tus, id, &Tu::id) == plan.tus.end()) {
                diagnostics.error(
                    "no-such-tu",
                    Span{},
                    fmt::format("'{}' links '{}', which is not planned", variant.name.text(), id));
            }
        }
    }
}

} // namespace

std::string write_plan(const Plan& plan) {
    Node tus = Node::array();
    for (const Tu& tu : plan.tus) {
        tus.push(tu_node(tu));
    }
    Node variants = Node::array();
    for (const PlannedVariant& variant : plan.variants) {
        variants.push(variant_node(variant));
    }
    return document::write_canonical_json(Node::table(
        {{"schema", std::string{kSchema}},
         {"kernel", plan.kernel},
         {"unique-id", plan.unique_id},
         {"tool-version", plan.tool_version},
         {"lock", Node::table({{"origin", plan.lock_origin}, {"sha256", plan.lock_digest.hex()}})},
         {"tus", std::move(tus)},
         {"variants", std::move(variants)},
         {"requirements", requirements_node(plan.requirements)},
         {"missing", requirements_node(plan.missing)}}));
}

Result<Plan> parse_plan(std::string_view json) {
    KB_TRY(const Node root,
           document::parse_json(json, Origin{"plan.json"}).context("reading 'plan.json'"));
    Diagnostics diagnostics;
    Reader reader{root, "the plan", diagnostics};
    if (text_member(reader, "schema") != kSchema) {
        return Error{
            ErrorCode::corrupt, fmt::format("'plan.json' is not of schema '{}'", kSchema), {}};
    }
    Plan plan{.kernel = text_member(reader, "kernel"),
              .unique_id = text_member(reader, "unique-id"),
              .tool_version = text_member(reader, "tool-version")};
    if (const Node* lock = reader.table("lock")) {
        Reader table{*lock, "lock", diagnostics};
        plan.lock_origin = text_member(table, "origin");
        if (auto digest = digest::Digest::from_hex(text_member(table, "sha256"))) {
            plan.lock_digest = *digest;
        } else {
            fail(table, "sha256");
        }
        table.finish({"origin", "sha256"});
    }
    plan.tus = read_list(reader, "tus", read_tu);
    plan.variants = read_list(reader, "variants", read_variant);
    plan.requirements = requirement_list(reader, "requirements");
    plan.missing = requirement_list(reader, "missing");
    reader.require({"kernel", "unique-id", "tool-version", "lock", "tus", "variants"});
    reader.finish({"schema",
                   "kernel",
                   "unique-id",
                   "tool-version",
                   "lock",
                   "tus",
                   "variants",
                   "requirements",
                   "missing"});
    check_references(plan, diagnostics);
    if (auto error = first_error(diagnostics)) {
        return std::move(*error);
    }
    return plan;
}

} // namespace kb::plan
