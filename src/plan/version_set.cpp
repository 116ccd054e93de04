// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "plan/selection.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace kb::plan {

std::optional<VersionSet::Item> VersionSet::parse_item(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, Op>, 6> kOps{{{">=", Op::ge},
                                                                   {"<=", Op::le},
                                                                   {"==", Op::eq},
                                                                   {"!=", Op::ne},
                                                                   {">", Op::gt},
                                                                   {"<", Op::lt}}};
    Item item;
    text = trim(text);
    for (const auto& row : kOps) {
        if (text.starts_with(row.first)) {
            item.op = row.second;
            text = trim(text.substr(row.first.size()));
            break;
        }
    }
    if (item.op == Op::prefix && text.ends_with(".*")) {
        item.wildcard = true;
        text.remove_suffix(2);
    }
    auto version = Version::parse(text);
    if (!version) {
        return std::nullopt;
    }
    item.version = std::move(*version);
    return item;
}

Result<VersionSet> VersionSet::parse(std::string_view text) {
    VersionSet set;
    set.text_ = text;
    for (const std::string_view part : split(text, ',')) {
        const auto item = parse_item(part);
        if (!item) {
            return Error{ErrorCode::unsupported,
                         fmt::format("'{}' is not a condition on a version: expected a comma list "
                                     "of [op]version or version.*, op one of >= <= > < == !=",
                                     trim(part)),
                         {}};
        }
        set.items_.push_back(*item);
    }
    return set;
}

bool VersionSet::holds(const Item& item, const Version& version) {
    switch (item.op) {
    case Op::ge:
        return version >= item.version;
    case Op::le:
        return version <= item.version;
    case Op::gt:
        return version > item.version;
    case Op::lt:
        return version < item.version;
    case Op::eq:
        return version == item.version;
    case Op::ne:
        return version != item.version;
    case Op::prefix:
        break;
    }
    // The matrix knows two components: "13.0.2" asks for 13.0.
    const std::size_t count = std::min<std::size_t>(item.version.size(), 2);
    for (std::size_t i = 0; i < count; ++i) {
        if (version.component(i) != item.version.component(i)) {
            return false;
        }
    }
    return true;
}

bool VersionSet::contains(const Version& version) const {
    bool has_alternatives = false;
    bool one_holds = false;
    for (const Item& item : items_) {
        const bool alternative = item.op == Op::prefix || item.op == Op::eq;
        if (alternative) {
            has_alternatives = true;
            one_holds = one_holds || holds(item, version);
        } else if (!holds(item, version)) {
            return false;
        }
    }
    return !has_alternatives || one_holds;
}

bool VersionSet::names(const Version& version) const {
    for (const Item& item : items_) {
        const bool exact = item.op == Op::eq || (item.op == Op::prefix && !item.wildcard);
        if (exact && item.version.size() >= 2 && holds(item, version)) {
            return true;
        }
    }
    return false;
}

} // namespace kb::plan
