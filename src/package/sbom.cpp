// SPDX-License-Identifier: Apache-2.0
#include "backend/requirement.hpp"
#include "document/json.hpp"
#include "package/attestation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kb::package {

namespace {

using document::Node;

/// Percent encoding of a package URL's name or version.
std::string encoded(std::string_view text) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == '~';
        if (plain) {
            out += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out += '%';
        out += kHex[byte >> 4U];
        out += kHex[byte & 15U];
    }
    return out;
}

std::string type_of(std::string_view provider) {
    if (provider == "wheel") {
        return "pypi";
    }
    if (provider == "deb") {
        return "deb/debian";
    }
    return provider == "conda" ? "conda" : "generic";
}

Node hashes(const digest::Digest& sha256) {
    Node out = Node::array();
    out.push(Node::table({{"alg", "SHA-256"}, {"content", sha256.hex()}}));
    return out;
}

/// One pinned file. Scope "excluded": it made the variant and is no part of it.
Node component(const Ingredient& ingredient) {
    Node out = Node::table({{"type", "file"},
                            {"bom-ref", ingredient.id},
                            {"name", ingredient.file.empty() ? ingredient.id : ingredient.file},
                            {"scope", "excluded"},
                            {"hashes", hashes(ingredient.sha256)}});
    if (const auto requirement = backend::Requirement::parse(ingredient.id)) {
        out.set("type", "application");
        out.set("name", requirement->name);
        out.set("version", requirement->version);
        out.set("purl",
                fmt::format("pkg:{}/{}@{}",
                            type_of(requirement->provider),
                            encoded(requirement->name),
                            encoded(requirement->version)));
    }
    return out;
}

/// Random by the book; ours is of the content, so that equal variants have equal bills.
std::string serial_number(const Package& package) {
    std::string all;
    for (const FileEntry& file : package.files) {
        all += fmt::format("{} {}\n", file.sha256.hex(), file.path.text());
    }
    std::string hex = digest::sha256(package.variant + "\n" + all).hex().substr(0, 32);
    hex[12] = '8'; // a UUID of our own making (version 8, RFC 9562)
    hex[16] = 'a';
    return fmt::format("urn:uuid:{}-{}-{}-{}-{}",
                       hex.substr(0, 8),
                       hex.substr(8, 4),
                       hex.substr(12, 4),
                       hex.substr(16, 4),
                       hex.substr(20));
}

} // namespace

std::string write_sbom(const AttestationInput& input) {
    const Metadata& metadata = input.package.metadata;
    Node files = Node::array();
    for (const FileEntry& file : input.package.files) {
        files.push(Node::table({{"type", "file"},
                                {"bom-ref", fmt::format("file:{}", file.path.text())},
                                {"name", file.path.text()},
                                {"hashes", hashes(file.sha256)}}));
    }
    Node components = Node::array();
    Node made_from = Node::array();
    for (const Ingredient& ingredient : input.toolchain) {
        components.push(component(ingredient));
        made_from.push(ingredient.id);
    }
    for (const std::string& name : metadata.python_depends) {
        components.push(Node::table({{"type", "library"},
                                     {"bom-ref", fmt::format("python:{}", name)},
                                     {"name", name},
                                     {"purl", fmt::format("pkg:pypi/{}", encoded(name))}}));
        made_from.push(fmt::format("python:{}", name));
    }
    Node variant = Node::table({{"type", "library"},
                                {"bom-ref", input.package.variant},
                                {"name", metadata.name},
                                {"version", fmt::format("{}", metadata.version)},
                                {"components", std::move(files)}});
    if (!metadata.license.empty()) {
        Node licenses = Node::array();
        licenses.push(Node::table({{"expression", metadata.license}}));
        variant.set("licenses", std::move(licenses));
    }
    Node dependencies = Node::array();
    dependencies.push(
        Node::table({{"ref", input.package.variant}, {"dependsOn", std::move(made_from)}}));
    return document::write_canonical_json(
        Node::table({{"bomFormat", "CycloneDX"},
                     {"specVersion", "1.5"},
                     {"serialNumber", serial_number(input.package)},
                     {"version", 1},
                     {"metadata", Node::table({{"component", std::move(variant)}})},
                     {"components", std::move(components)},
                     {"dependencies", std::move(dependencies)}}));
}

} // namespace kb::package
