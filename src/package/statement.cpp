// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "document/json.hpp"
#include "package/attestation.hpp"

#include <fmt/format.h>

#include <map>

namespace kb::package {

namespace {

using document::Node;

constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";
constexpr std::string_view kPredicateType = "https://slsa.dev/provenance/v1";
constexpr std::string_view kBuildType = "urn:kernel-builder:variant:1";
constexpr std::string_view kSbomName = "sbom.cdx.json";
constexpr std::string_view kSourcesName = "sources.tar";
constexpr std::string_view kLockName = "build.lock";

/// Bytecode comes and goes with imports; a signature beside metadata.json covers them, not they it.
bool is_subject(const RelPath& path) {
    return is_digested(path) || path.text() == "metadata.json";
}

Node sha256_of(std::string_view hex) {
    return Node::table({{"sha256", hex}});
}

Node resource(std::string_view name, std::string_view hex) {
    return Node::table({{"name", name}, {"digest", sha256_of(hex)}});
}

Node dependencies(const AttestationInput& input, const Provenance& origin) {
    Node out = Node::array();
    if (origin.kernel) {
        out.push(Node::table({{"name", origin.kernel->dirty ? "commit (with changes)" : "commit"},
                              {"digest", Node::table({{"gitCommit", origin.kernel->commit}})}}));
    }
    if (!origin.lock_digest.empty()) {
        out.push(resource(kLockName, origin.lock_digest));
    }
    for (const Ingredient& source : input.sources) {
        out.push(resource(fmt::format("source/{}", source.id), source.sha256.hex()));
    }
    for (const Ingredient& tool : input.toolchain) {
        out.push(resource(tool.id, tool.sha256.hex()));
    }
    return out;
}

check::Finding
finding(std::string_view check, std::string subject, std::string message, std::string next) {
    return {.check = std::string{check},
            .subject = escape_control(subject),
            .policy = "SLSA provenance 1",
            .message = escape_control(message),
            .next_step = std::move(next)};
}

check::Finding untrue(std::string subject, std::string message) {
    return finding("statement",
                   std::move(subject),
                   std::move(message),
                   "get variant and statement from one build, or build again");
}

const Node* at(const Node& root, std::initializer_list<std::string_view> path) {
    const Node* node = &root;
    for (const std::string_view key : path) {
        node = node != nullptr && node->is_table() ? node->find(key) : nullptr;
    }
    return node;
}

std::string text_at(const Node& root, std::initializer_list<std::string_view> path) {
    const Node* node = at(root, path);
    return node != nullptr && node->is_string() ? node->as_string() : std::string{};
}

/// Name -> SHA-256 of an array of resource descriptors; "" for one without.
std::map<std::string, std::string> digests_of(const Node* list) {
    std::map<std::string, std::string> out;
    if (list == nullptr || !list->is_array()) {
        return out;
    }
    for (const Node& item : list->as_array()) {
        out.insert_or_assign(text_at(item, {"name"}), text_at(item, {"digest", "sha256"}));
    }
    return out;
}

void judge_files(const Package& package, const Node& root, std::vector<check::Finding>& out) {
    auto promised = digests_of(root.find("subject"));
    for (const FileEntry& file : package.files) {
        if (!is_subject(file.path)) {
            continue;
        }
        const std::string name = fmt::format("{}/{}", package.variant, file.path.text());
        const auto found = promised.find(name);
        if (found == promised.end()) {
            out.push_back(untrue(file.path.text(), "is not among the files of the statement"));
            continue;
        }
        if (found->second != file.sha256.hex()) {
            out.push_back(untrue(file.path.text(), "is not the file of the statement"));
        }
        promised.erase(found);
    }
    for (const auto& [name, digest] : promised) {
        out.push_back(untrue(name, "is in the statement and not in the variant"));
    }
}

} // namespace

std::string write_statement(const AttestationInput& input, std::string_view sbom) {
    const Package& package = input.package;
    const Provenance origin = package.metadata.provenance.value_or(Provenance{});
    Node subject = Node::array();
    for (const FileEntry& file : package.files) {
        if (is_subject(file.path)) {
            subject.push(resource(fmt::format("{}/{}", package.variant, file.path.text()),
                                  file.sha256.hex()));
        }
    }
    Node byproducts = Node::array();
    byproducts.push(resource(kSbomName, digest::sha256(sbom).hex()));
    if (input.source_archive) {
        byproducts.push(resource(kSourcesName, input.source_archive->hex()));
    }
    Node definition = Node::table({{"buildType", kBuildType},
                                   {"externalParameters",
                                    Node::table({{"kernel", package.metadata.name},
                                                 {"version", package.metadata.version},
                                                 {"variant", package.variant}})},
                                   {"internalParameters",
                                    Node::table({{"build-key", origin.build_key},
                                                 {"lock-digest", origin.lock_digest},
                                                 {"sandbox", origin.sandbox}})},
                                   {"resolvedDependencies", dependencies(input, origin)}});
    Node details = Node::table(
        {{"builder",
          Node::table({{"id", "pkg:generic/kernel-builder"},
                       {"version", Node::table({{"kernel-builder", origin.tool_version}})}})},
         {"metadata", Node::table({{"invocationId", origin.build_key}})},
         {"byproducts", std::move(byproducts)}});
    return document::write_canonical_json(
        Node::table({{"_type", kStatementType},
                     {"subject", std::move(subject)},
                     {"predicateType", kPredicateType},
                     {"predicate",
                      Node::table({{"buildDefinition", std::move(definition)},
                                   {"runDetails", std::move(details)}})}}));
}

NamedBlobs named_blobs(std::string_view statement) {
    const auto root = document::parse_json(statement, {.name = "the statement"});
    if (!root || !root->is_table()) {
        return {};
    }
    const auto find = [&root](std::initializer_list<std::string_view> list, std::string_view name) {
        const auto digests = digests_of(at(*root, list));
        const auto found = digests.find(std::string{name});
        if (found == digests.end()) {
            return std::optional<digest::Digest>{};
        }
        const Result<digest::Digest> digest = digest::Digest::from_hex(found->second);
        return digest ? std::optional{*digest} : std::nullopt;
    };
    return {.lock = find({"predicate", "buildDefinition", "resolvedDependencies"}, kLockName),
            .source_archive = find({"predicate", "runDetails", "byproducts"}, kSourcesName)};
}

std::vector<check::Finding> find_uncovered(const Package& package) {
    std::vector<check::Finding> out;
    for (const FileEntry& file : package.files) {
        if (bytecode_of(file.path) != Bytecode::none) {
            out.push_back(
                finding("statement",
                        file.path.text(),
                        fmt::format("'{}' is not covered by the statement", file.path.text()),
                        "delete it"));
        }
    }
    return out;
}

std::vector<check::Finding>
judge_statement(const Package& package, std::string_view statement, std::string_view sbom) {
    const auto root = document::parse_json(statement, {.name = "the statement"});
    if (!root || !root->is_table() || text_at(*root, {"_type"}) != kStatementType ||
        text_at(*root, {"predicateType"}) != kPredicateType ||
        text_at(*root, {"predicate", "buildDefinition", "buildType"}) != kBuildType) {
        return {untrue("statement", "is no in-toto statement with SLSA provenance of a variant")};
    }
    std::vector<check::Finding> out;
    judge_files(package, *root, out);
    const Provenance origin = package.metadata.provenance.value_or(Provenance{});
    const auto compare = [&](std::string_view key, const std::string& ours) {
        if (text_at(*root, {"predicate", "buildDefinition", "internalParameters", key}) != ours) {
            out.push_back(
                untrue(std::string{key}, "differs between the statement and metadata.json"));
        }
    };
    compare("build-key", origin.build_key);
    compare("lock-digest", origin.lock_digest);
    compare("sandbox", origin.sandbox);
    const auto byproducts = digests_of(at(*root, {"predicate", "runDetails", "byproducts"}));
    const auto bill = byproducts.find(std::string{kSbomName});
    if (bill == byproducts.end() || bill->second != digest::sha256(sbom).hex()) {
        out.push_back(untrue(std::string{kSbomName}, "is not the bill of the statement"));
    }
    return out;
}

} // namespace kb::package
