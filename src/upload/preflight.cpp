// SPDX-License-Identifier: Apache-2.0
#include "upload/preflight.hpp"

#include "backend/variant.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace kb::upload {

namespace {

class Judge {
public:
    Judge(const PreflightInput& input, Diagnostics& diagnostics)
        : input_{&input}, diagnostics_{&diagnostics} {}

    void look_at(const package::Package& package) {
        if (!backend::VariantName::parse(package.variant)) {
            diagnostics_->error(
                "upload-name",
                {.file = package.directory},
                fmt::format("'{}' is not the name of a variant", escape_control(package.variant)),
                {"no client would find it: 'kernel-builder check-builds' says more"});
        }
        look_at_provenance(package);
        look_at_digest(package);
        look_at_checks(package);
        if (package.metadata.experimental) {
            object(Refusal::experimental,
                   package,
                   fmt::format("variant '{}' is marked experimental", package.variant));
        }
    }

    void object(Refusal refusal, const package::Package& package, std::string message) {
        const bool allowed = input_->allowed.contains(refusal);
        std::vector<std::string> notes;
        if (!allowed) {
            notes.push_back(fmt::format("pass {} to publish it all the same", flag_of(refusal)));
        }
        diagnostics_->report({.severity = allowed ? Severity::warning : Severity::error,
                              .id = std::string{id_of(refusal)},
                              .span = {.file = package.directory + "/metadata.json"},
                              .message = std::move(message),
                              .notes = std::move(notes)});
    }

private:
    void look_at_provenance(const package::Package& package) {
        const auto& provenance = package.metadata.provenance;
        if (provenance && provenance->is_dirty()) {
            object(Refusal::dirty,
                   package,
                   fmt::format("variant '{}' was built from uncommitted changes", package.variant));
        }
        const std::string sandbox = provenance ? provenance->sandbox : "";
        if (sandbox.empty()) {
            object(Refusal::weak_sandbox,
                   package,
                   fmt::format("variant '{}' does not say in which sandbox it was built",
                               package.variant));
        } else if (sandbox != "namespaces") {
            object(Refusal::weak_sandbox,
                   package,
                   fmt::format("variant '{}' was built in sandbox '{}', weaker than 'namespaces'",
                               package.variant,
                               sandbox));
        }
    }

    void look_at_digest(const package::Package& package) {
        const auto untrue = input_->untrue_statements.find(package.variant);
        if (untrue != input_->untrue_statements.end() && !untrue->second.empty()) {
            const check::Finding& first = untrue->second.front();
            object(Refusal::wrong_digest,
                   package,
                   fmt::format("the provenance statement of variant '{}' is not true of it: '{}' "
                               "{}",
                               package.variant,
                               first.subject,
                               first.message));
        }
        for (const auto& finding : package::verify(package.metadata, package.files)) {
            object(Refusal::wrong_digest,
                   package,
                   fmt::format("variant '{}' is not what its digest says: {}",
                               package.variant,
                               finding.message));
        }
    }

    void look_at_checks(const package::Package& package) {
        const auto found = input_->checked.find(package.variant);
        if (found == input_->checked.end()) {
            object(Refusal::unchecked,
                   package,
                   fmt::format("variant '{}' has no check report", package.variant));
        } else if (!found->second.failed.empty()) {
            object(Refusal::unchecked,
                   package,
                   fmt::format("variant '{}' did not pass check {}",
                               package.variant,
                               quoted_list(found->second.failed)));
        }
    }

    const PreflightInput* input_;
    Diagnostics* diagnostics_;
};

} // namespace

std::string_view flag_of(Refusal refusal) {
    switch (refusal) {
    case Refusal::dirty:
        return "--allow-dirty";
    case Refusal::weak_sandbox:
        return "--allow-weak-sandbox";
    case Refusal::unchecked:
        return "--allow-unchecked";
    case Refusal::wrong_digest:
        return "--allow-wrong-digest";
    case Refusal::mixed_versions:
        return "--allow-mixed-versions";
    case Refusal::experimental:
        return "--allow-experimental";
    }
    std::unreachable();
}

std::string_view id_of(Refusal refusal) {
    switch (refusal) {
    case Refusal::dirty:
        return "upload-dirty";
    case Refusal::weak_sandbox:
        return "upload-weak-sandbox";
    case Refusal::unchecked:
        return "upload-unchecked";
    case Refusal::wrong_digest:
        return "upload-wrong-digest";
    case Refusal::mixed_versions:
        return "upload-mixed-versions";
    case Refusal::experimental:
        return "upload-experimental";
    }
    std::unreachable();
}

void preflight(const PreflightInput& input, Diagnostics& diagnostics) {
    if (input.packages.empty()) {
        diagnostics.error("upload-nothing",
                          {},
                          "there is no variant to publish",
                          {"run 'kernel-builder build' first"});
        return;
    }
    Judge judge{input, diagnostics};
    for (const package::Package& package : input.packages) {
        judge.look_at(package);
    }
    if (!version_branch(input.packages)) {
        std::set<std::string> versions;
        for (const package::Package& package : input.packages) {
            versions.insert(fmt::format("{}", package.metadata.version));
        }
        const std::vector<std::string> names{versions.begin(), versions.end()};
        judge.object(Refusal::mixed_versions,
                     input.packages.front(),
                     fmt::format("the variants have different versions: {}", quoted_list(names)));
    }
}

std::optional<std::string> version_branch(std::span<const package::Package> packages) {
    if (packages.empty()) {
        return std::nullopt;
    }
    const std::uint64_t version = packages.front().metadata.version;
    for (const package::Package& package : packages) {
        if (package.metadata.version != version) {
            return std::nullopt;
        }
    }
    return fmt::format("v{}", version);
}

} // namespace kb::upload
