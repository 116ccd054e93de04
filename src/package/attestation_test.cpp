// SPDX-License-Identifier: Apache-2.0
#include "package/attestation.hpp"

#include "digest/signature.hpp"
#include "document/json.hpp"
#include "package/source_archive.hpp"
#include "support/catch.hpp"

#include <functional>

namespace kb::package {
namespace {

FileEntry entry(std::string_view path, std::string_view content) {
    return {
        .path = RelPath::literal(path), .size = content.size(), .sha256 = digest::sha256(content)};
}

Package variant() {
    Package package{.variant = "torch-stable-abi211-cpu-x86_64-linux"};
    package.metadata.name = "relu";
    package.metadata.version = 2;
    package.metadata.license = "Apache-2.0";
    package.metadata.python_depends = {"einops"};
    package.metadata.provenance = Provenance{.tool_version = "0.1.0",
                                             .kernel = SourceState{.commit = std::string(40, 'a')},
                                             .build_key = std::string(64, 'b'),
                                             .lock_digest = std::string(64, 'c'),
                                             .sandbox = "namespaces"};
    package.files = {
        entry("__init__.py", "x"), entry("_relu.abi3.so", "elf"), entry("metadata.json", "{}")};
    return package;
}

AttestationInput input_of(const Package& package) {
    return {.package = package,
            .sources = {{.id = "relu_cpu/relu.cpp", .sha256 = digest::sha256("source")}},
            .toolchain = {{.id = "deb/libc6@2.36-9+deb12u10#gcc-12",
                           .file = "libc6_2.36-9+deb12u10_amd64.deb",
                           .sha256 = digest::sha256("libc")},
                          {.id = "wheel/torch@2.11.0#include",
                           .file = "torch.whl",
                           .sha256 = digest::sha256("torch")}}};
}

TEST_CASE("a statement is true of the variant it was made for", "[package][attestation]") {
    const Package package = variant();
    const std::string sbom = write_sbom(input_of(package));
    const std::string statement = write_statement(input_of(package), sbom);
    CHECK(judge_statement(package, statement, sbom).empty());
    // Equal input, equal bytes; bytecode of a later import does not count.
    CHECK(write_statement(input_of(package), sbom) == statement);
    CHECK(write_sbom(input_of(package)) == sbom);
    Package imported = package;
    imported.files.push_back(entry("__pycache__/__init__.cpython-311.pyc", "code"));
    CHECK(judge_statement(imported, statement, sbom).empty());
}

TEST_CASE("a statement names the lock and the archive of the sources", "[package][attestation]") {
    const Package package = variant();
    AttestationInput input = input_of(package);
    const std::string sbom = write_sbom(input);
    const NamedBlobs without = named_blobs(write_statement(input, sbom));
    CHECK(without.lock == digest::Digest::from_hex(std::string(64, 'c')).value());
    CHECK_FALSE(without.source_archive);
    input.source_archive = digest::sha256("archive");
    const std::string statement = write_statement(input, sbom);
    CHECK(named_blobs(statement).source_archive == digest::sha256("archive"));
    CHECK(judge_statement(package, statement, sbom).empty());
    CHECK_FALSE(named_blobs("{").lock);
    CHECK_FALSE(named_blobs("[]").source_archive);
}

TEST_CASE("an archive of sources is the same for the same sources", "[package][attestation]") {
    const std::string deep = "a/" + std::string(120, 'd') + "/kernel.cu";
    const std::vector<FileImage> files = {
        {.path = RelPath::literal("build.toml"), .content = std::string(512, 'x')},
        {.path = RelPath::literal("run.sh"), .content = "#!", .mode = FileMode::executable},
        {.path = RelPath::parse(deep).value(), .content = "code"}};
    const std::string tar = write_source_archive(files);
    CHECK(tar == write_source_archive({files[2], files[1], files[0]}));
    // a pax header and its record, three members with 1, 1 and 1 blocks, two empty blocks.
    CHECK(tar.size() == 512U * (2 + 2 + 2 + 2 + 2));
    CHECK(tar.substr(512, 19 + deep.size() - 9).starts_with("142 path=a/ddd"));
    CHECK(tar[512 + 141] == '\n');
    CHECK(tar.substr(1024, 102).starts_with("a/ddd"));
    CHECK(tar.substr(2048, 11) == std::string("build.toml") + '\0');
    CHECK(tar.substr(3072 + 100, 7) == "0000755");
}

TEST_CASE("no bytecode hides behind a statement that is signed", "[package][attestation]") {
    Package package = variant();
    CHECK(find_uncovered(package).empty());
    package.files.push_back(entry("__pycache__/__init__.cpython-311.pyc", "code"));
    package.files.push_back(entry("_ops/__init__.pyc", "code"));
    const auto findings = find_uncovered(package);
    REQUIRE(findings.size() == 2);
    CHECK(findings[0].subject == "__pycache__/__init__.cpython-311.pyc");
    CHECK(findings[1].subject == "_ops/__init__.pyc");
    CHECK(findings[1].message == "'_ops/__init__.pyc' is not covered by the statement");
    CHECK(findings[1].next_step == "delete it");
}

TEST_CASE("a statement names every difference", "[package][attestation]") {
    struct Row {
        std::string subject{};
        std::function<void(Package&)> change{};
    };

    const Row row = GENERATE(values<Row>({
        {"__init__.py",
         [](Package& p) {
             p.files[0] = entry("__init__.py", "y");
         }},
        {"metadata.json",
         [](Package& p) {
             p.files[2] = entry("metadata.json", "{ }");
         }},
        {"more.py",
         [](Package& p) {
             p.files.push_back(entry("more.py", ""));
         }},
        {"torch-stable-abi211-cpu-x86_64-linux/_relu.abi3.so",
         [](Package& p) {
             p.files.erase(p.files.begin() + 1);
         }},
        {"build-key",
         [](Package& p) {
             p.metadata.provenance->build_key = "d";
         }},
        {"lock-digest",
         [](Package& p) {
             p.metadata.provenance->lock_digest = "d";
         }},
        {"sandbox",
         [](Package& p) {
             p.metadata.provenance->sandbox = "plain";
         }},
    }));
    const Package package = variant();
    const std::string sbom = write_sbom(input_of(package));
    const std::string statement = write_statement(input_of(package), sbom);
    Package other = package;
    row.change(other);
    CAPTURE(row.subject);
    const auto findings = judge_statement(other, statement, sbom);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].subject == row.subject);
    CHECK(findings[0].check == "statement");
}

TEST_CASE("another bill of materials, or no statement at all, is found", "[package][attestation]") {
    const Package package = variant();
    const std::string sbom = write_sbom(input_of(package));
    const std::string statement = write_statement(input_of(package), sbom);
    CHECK(judge_statement(package, statement, sbom + " ").size() == 1);
    for (const char* text : {"", "{}", "[]", "not json", "{\"_type\": 3}"}) {
        CAPTURE(text);
        CHECK(judge_statement(package, text, sbom).size() == 1);
    }
}

TEST_CASE("the statement is an in-toto statement with SLSA provenance", "[package][attestation]") {
    const Package package = variant();
    const auto root =
        document::parse_json(write_statement(input_of(package), "bill"), {.name = "test"});
    REQUIRE(root);
    CHECK(root->text_or("_type") == "https://in-toto.io/Statement/v1");
    CHECK(root->text_or("predicateType") == "https://slsa.dev/provenance/v1");
    CHECK(root->find("subject")->as_array().size() == 3);
    const document::Node& definition = *root->find("predicate")->find("buildDefinition");
    CHECK(definition.find("externalParameters")->is_table());
    // The commit, the lock, one source and two pinned files.
    CHECK(definition.find("resolvedDependencies")->as_array().size() == 5);
    CHECK(root->find("predicate")->find("runDetails")->find("builder")->find("id")->is_string());
}

TEST_CASE("the bill of materials is CycloneDX with package URLs", "[package][attestation]") {
    const Package package = variant();
    const auto root = document::parse_json(write_sbom(input_of(package)), {.name = "test"});
    REQUIRE(root);
    CHECK(root->text_or("bomFormat") == "CycloneDX");
    CHECK(root->text_or("specVersion") == "1.5");
    const std::string serial = root->text_or("serialNumber");
    CHECK(serial.size() == std::string_view{"urn:uuid:"}.size() + 36);
    const auto& components = root->find("components")->as_array();
    REQUIRE(components.size() == 3);
    CHECK(components[0].text_or("purl") == "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10");
    CHECK(components[1].text_or("purl") == "pkg:pypi/torch@2.11.0");
    CHECK(components[2].text_or("purl") == "pkg:pypi/einops");
}

TEST_CASE("an envelope holds for its statement and key", "[package][attestation]") {
    const auto key = digest::make_signing_key().value();
    const auto other = digest::make_signing_key().value();
    const std::string statement = "{\"a\": 1}\n";
    CHECK(signed_bytes(statement) == "DSSEv1 28 application/vnd.in-toto+json 9 {\"a\": 1}\n");
    const std::string signature = digest::sign(key.private_pem, signed_bytes(statement)).value();
    const std::string envelope =
        write_envelope(statement, digest::key_id(key.public_pem).value(), signature);
    CHECK(judge_envelope(statement, envelope, key.public_pem).empty());
    CHECK(judge_envelope(statement, envelope, other.public_pem).size() == 1);
    CHECK(judge_envelope("{\"a\": 2}\n", envelope, key.public_pem).size() == 1);
    CHECK(judge_envelope(statement, envelope, "no key").size() == 1);
    for (const char* text : {"", "{}", "{\"signatures\": [], \"payloadType\": 1}", "3"}) {
        CHECK(judge_envelope(statement, text, key.public_pem).size() == 1);
    }
    // A signature over the bare statement, without the type, is none.
    const std::string bare = digest::sign(key.private_pem, statement).value();
    CHECK(judge_envelope(statement, write_envelope(statement, "", bare), key.public_pem).size() ==
          1);
}

} // namespace
} // namespace kb::package
