// SPDX-License-Identifier: Apache-2.0
#include "check/abi_diff.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace kb::check {

namespace {

using Texts = std::set<std::string>;

NameChanges changes(const Texts& before, const Texts& after) {
    NameChanges out;
    std::ranges::set_difference(before, after, std::back_inserter(out.removed));
    std::ranges::set_difference(after, before, std::back_inserter(out.added));
    return out;
}

Texts names(const std::vector<binfmt::Symbol>& symbols) {
    Texts out;
    for (const binfmt::Symbol& symbol : symbols) {
        out.emplace(symbol.name);
    }
    return out;
}

Texts versions(const binfmt::SharedObject& object) {
    Texts out;
    for (const binfmt::VersionNeed& need : object.version_needs) {
        out.insert(std::string{need.library} + " " + std::string{need.version});
    }
    return out;
}

Texts archs(const binfmt::SharedObject& object) {
    Texts out;
    for (const binfmt::DeviceImage& image : object.device_images) {
        if (!image.arch.empty()) {
            out.insert(image.kind == binfmt::DeviceImageKind::ptx ? image.arch + "+PTX"
                                                                  : image.arch);
        }
    }
    return out;
}

std::vector<SectionChange> section_changes(const AbiSide& before, const AbiSide& after) {
    std::set<std::string> all;
    for (const AbiSide* side : {&before, &after}) {
        for (const auto& section : side->sections) {
            all.insert(section.first);
        }
    }
    std::vector<SectionChange> out;
    const auto size_in = [](const AbiSide& side, const std::string& name) {
        const auto found = side.sections.find(name);
        return found == side.sections.end() ? std::uint64_t{0} : found->second;
    };
    for (const std::string& name : all) {
        SectionChange change{
            .name = name, .before = size_in(before, name), .after = size_in(after, name)};
        if (change.before != change.after) {
            out.push_back(std::move(change));
        }
    }
    return out;
}

} // namespace

AbiDiff diff_abi(const AbiSide& before, const AbiSide& after) {
    const binfmt::SharedObject& a = *before.object;
    const binfmt::SharedObject& b = *after.object;
    return {.exports = changes(names(a.exports), names(b.exports)),
            .imports = changes(names(a.imports), names(b.imports)),
            .needed =
                changes({a.needed.begin(), a.needed.end()}, {b.needed.begin(), b.needed.end()}),
            .versions = changes(versions(a), versions(b)),
            .archs = changes(archs(a), archs(b)),
            .schemas = changes({before.schemas.begin(), before.schemas.end()},
                               {after.schemas.begin(), after.schemas.end()}),
            .sections = section_changes(before, after)};
}

} // namespace kb::check
