// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "check/checks.hpp"
#include "check/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kb::check {

namespace {

constexpr std::string_view kNextStep = "build with the locked toolchain, which links against this "
                                       "policy, instead of the machine's own";

/// "GLIBC_2.34" -> "GLIBC" and "2.34". Versions without '_' are no business of the policies
/// ("libcudart.so.13").
struct VersionName {
    std::string_view tag{};
    std::string_view text{};
};

std::optional<VersionName> split_version(std::string_view version) {
    const std::size_t at = version.find('_');
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    return VersionName{.tag = version.substr(0, at), .text = version.substr(at + 1)};
}

/// The highest numeric version of a set, for messages.
std::string_view highest(const Names& versions) {
    std::string_view best;
    for (const std::string_view version : versions) {
        const bool numeric = Version::parse(version).has_value();
        if (numeric && (best.empty() || natural_less(best, version))) {
            best = version;
        }
    }
    return best;
}

/// The allowed set when the policy knows the tag and the version is not in it.
const Names* refused_by(const ManylinuxPolicy& policy, std::string_view version) {
    const auto name = split_version(version);
    if (!name) {
        return nullptr;
    }
    const auto allowed = policy.versions.find(name->tag);
    if (allowed == policy.versions.end() || allowed->second.contains(name->text)) {
        return nullptr;
    }
    return &allowed->second;
}

Finding version_finding(const ManylinuxPolicy& policy,
                        std::string_view version,
                        std::string_view symbol,
                        const Names& allowed) {
    const std::string_view tag = version.substr(0, version.find('_'));
    std::string limit = allowed.empty() ? fmt::format("no version of {}", tag)
                                        : fmt::format("{} up to {}", tag, highest(allowed));
    return {.subject = std::string{symbol.empty() ? version : symbol},
            .policy = std::string{policy.name},
            .found = std::string{version},
            .allowed = limit,
            .message =
                symbol.empty()
                    ? fmt::format("needs {}, {} has {}", version, policy.name, limit)
                    : fmt::format("'{}' wants {}, {} has {}", symbol, version, policy.name, limit),
            .next_step = std::string{kNextStep}};
}

void check_versions(const ManylinuxPolicy& policy,
                    const binfmt::SharedObject& object,
                    std::vector<Finding>& out) {
    Names told;
    for (const binfmt::Symbol& symbol : object.imports) {
        if (const Names* allowed = refused_by(policy, symbol.version)) {
            out.push_back(version_finding(policy, symbol.version, symbol.name, *allowed));
            told.insert(symbol.version);
        }
    }
    // The loader wants every version of the table, whatever symbols use it.
    for (const binfmt::VersionNeed& need : object.version_needs) {
        const Names* allowed = refused_by(policy, need.version);
        if (allowed != nullptr && !need.weak && !told.contains(need.version)) {
            out.push_back(version_finding(policy, need.version, "", *allowed));
        }
    }
}

void check_blacklist(const ManylinuxPolicy& policy,
                     const binfmt::SharedObject& object,
                     std::vector<Finding>& out) {
    for (const auto& [library, symbols] : policy.blacklist) {
        if (std::ranges::find(object.needed, library) == object.needed.end()) {
            continue;
        }
        for (const binfmt::Symbol& symbol : object.imports) {
            const bool from_here = symbol.library.empty() || symbol.library == library;
            const bool optional = symbol.binding == binfmt::Binding::weak; // loads without it
            if (from_here && !optional && symbols.contains(symbol.name)) {
                out.push_back({.subject = std::string{symbol.name},
                               .policy = std::string{policy.name},
                               .found = std::string{library},
                               .allowed = "public symbols",
                               .message = fmt::format("'{}' is not in every {} that {} covers",
                                                      symbol.name,
                                                      library,
                                                      policy.name),
                               .next_step = std::string{kNextStep}});
            }
        }
    }
}

bool applies(const Promise& promise, const binfmt::SharedObject& object) {
    return !promise.manylinux.empty() && object.format == binfmt::Format::elf;
}

Looked look(const CheckInput& input, const Library& library) {
    const binfmt::SharedObject& object = *library.object;
    const auto policy = find_manylinux(input.promise.manylinux, object.architecture);
    if (!policy) {
        return {.not_checked = fmt::format("no policy is called '{}'", input.promise.manylinux)};
    }
    if (policy->versions.empty()) {
        return {.not_checked =
                    fmt::format("{} does not cover {}", policy->name, object.architecture)};
    }
    Looked out;
    check_versions(*policy, object, out.findings);
    check_blacklist(*policy, object, out.findings);
    return out;
}

constexpr std::array kNeeds{binfmt::Fact::symbols, binfmt::Fact::versions, binfmt::Fact::needed};

} // namespace

Check manylinux_check() {
    return {.id = "manylinux",
            .title = "symbol versions are those of the promised manylinux policy",
            .needs = kNeeds,
            .applies = applies,
            .library = look};
}

} // namespace kb::check
