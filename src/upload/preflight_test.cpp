// SPDX-License-Identifier: Apache-2.0
#include "upload/preflight.hpp"

#include "support/catch.hpp"

using namespace kb;
using namespace kb::upload;

namespace {

const std::string kName = "torch-stable-abi211-cpu-x86_64-linux";

/// A package against which there is nothing to say.
package::Package sound() {
    package::Package package{.variant = kName, .directory = "build/" + kName};
    package.files = {
        {.path = RelPath::literal("__init__.py"), .size = 1, .sha256 = digest::sha256("x")}};
    package.metadata.version = 1;
    package.metadata.digest = package::compute_digest(package.files);
    package.metadata.provenance = package::Provenance{
        .kernel = package::SourceState{.commit = std::string(40, 'a')}, .sandbox = "namespaces"};
    return package;
}

std::map<std::string, CheckState> passed() {
    return {{kName, {}}};
}

Diagnostics judge(const std::vector<package::Package>& packages,
                  const std::map<std::string, CheckState>& reports = passed(),
                  const std::set<Refusal>& allowed = {}) {
    Diagnostics diagnostics;
    preflight({.packages = packages, .checked = reports, .allowed = allowed}, diagnostics);
    return diagnostics;
}

} // namespace

TEST_CASE("a sound package passes preflight", "[upload][preflight]") {
    CHECK(judge({sound()}).empty());
    CHECK(version_branch(std::vector{sound(), sound()}) == "v1");
}

TEST_CASE("each reason against a package names its own flag", "[upload][preflight]") {
    struct Case {
        Refusal refusal;
        package::Package package;
        std::map<std::string, CheckState> reports;
    };

    std::vector<Case> cases;
    const auto add = [&cases](Refusal refusal) -> Case& {
        cases.push_back({refusal, sound(), passed()});
        return cases.back();
    };
    add(Refusal::dirty).package.metadata.provenance->kernel->dirty = true;
    add(Refusal::weak_sandbox).package.metadata.provenance->sandbox = "landlock";
    add(Refusal::weak_sandbox).package.metadata.provenance.reset();
    add(Refusal::wrong_digest).package.files[0].sha256 = digest::sha256("y");
    add(Refusal::wrong_digest).package.metadata.digest.reset();
    add(Refusal::unchecked).reports.clear();
    add(Refusal::unchecked).reports[kName].failed = {"manylinux"};
    add(Refusal::experimental).package.metadata.experimental = true;
    for (const Case& c : cases) {
        INFO(id_of(c.refusal));
        const Diagnostics refused = judge({c.package}, c.reports);
        REQUIRE(refused.items().size() == 1);
        const Diagnostic& item = refused.items().front();
        CHECK(item.severity == Severity::error);
        CHECK(item.id == id_of(c.refusal));
        REQUIRE(item.notes.size() == 1);
        CHECK(item.notes.front().contains(flag_of(c.refusal)));
        const Diagnostics allowed = judge({c.package}, c.reports, {c.refusal});
        REQUIRE(allowed.items().size() == 1);
        CHECK_FALSE(allowed.has_errors());
        const Refusal other = c.refusal == Refusal::dirty ? Refusal::unchecked : Refusal::dirty;
        CHECK(judge({c.package}, c.reports, {other}).has_errors());
    }
}

TEST_CASE("all reasons against all packages are told at once", "[upload][preflight]") {
    package::Package bad = sound();
    bad.metadata.provenance->sandbox = "plain";
    bad.metadata.experimental = true;
    bad.metadata.version = 2;
    CHECK(judge({bad, sound()}).items().size() == 3);
}

TEST_CASE("mixed versions have no branch", "[upload][preflight]") {
    package::Package other = sound();
    other.metadata.version = 2;
    CHECK_FALSE(version_branch(std::vector{sound(), other}).has_value());
    const Diagnostics diagnostics = judge({sound(), other});
    REQUIRE(diagnostics.items().size() == 1);
    CHECK(diagnostics.items().front().message ==
          "the variants have different versions: '1' and '2'");
}

TEST_CASE("nothing to publish, and a name that no client finds, are errors",
          "[upload][preflight]") {
    CHECK(judge({}).has_errors());
    package::Package odd = sound();
    odd.variant = "torch-riscv";
    const Diagnostics diagnostics =
        judge({odd},
              {{"torch-riscv", passed().at(kName)}},
              {Refusal::dirty, Refusal::weak_sandbox, Refusal::unchecked, Refusal::wrong_digest});
    REQUIRE(diagnostics.has_errors());
    CHECK(diagnostics.items().front().id == "upload-name");
}

TEST_CASE("a statement that is not true of its variant is refused like a wrong digest",
          "[upload][preflight]") {
    const std::vector packages{sound()};
    PreflightInput input{
        .packages = packages,
        .checked = passed(),
        .untrue_statements = {
            {kName, {{.check = "statement", .subject = "a.py", .message = "is not the file"}}}}};
    Diagnostics diagnostics;
    preflight(input, diagnostics);
    REQUIRE(diagnostics.has_errors());
    const std::string text = to_text(diagnostics.items().front());
    CHECK(text.contains("is not true of it: 'a.py' is not the file"));
    CHECK(text.contains("--allow-wrong-digest"));
    input.allowed = {Refusal::wrong_digest};
    Diagnostics allowed;
    preflight(input, allowed);
    CHECK_FALSE(allowed.has_errors());
}
