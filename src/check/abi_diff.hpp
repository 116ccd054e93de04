// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/shared_object.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kb::check {

/// A library as far as a diff looks at it.
struct AbiSide {
    const binfmt::SharedObject* object = nullptr;
    /// Bytes of each section in the file; empty when they are not known.
    std::map<std::string, std::uint64_t> sections{};
    /// Schemas of operators, as binfmt::find_op_schemas finds them.
    std::vector<std::string> schemas{};
};

struct NameChanges {
    std::vector<std::string> removed{};
    std::vector<std::string> added{};

    [[nodiscard]] bool empty() const { return removed.empty() && added.empty(); }

    bool operator==(const NameChanges&) const = default;
};

struct SectionChange {
    std::string name{};
    std::uint64_t before = 0;
    std::uint64_t after = 0;

    bool operator==(const SectionChange&) const = default;
};

/// What a user of the older library may trip over, each list sorted.
struct AbiDiff {
    NameChanges exports{};
    NameChanges imports{};
    NameChanges needed{};
    /// "libc.so.6 GLIBC_2.34".
    NameChanges versions{};
    NameChanges archs{};
    NameChanges schemas{};
    std::vector<SectionChange> sections{};

    /// Something that a user of the older one relied on is gone: an export, a schema, device code
    /// for an architecture.
    [[nodiscard]] bool breaks() const {
        return !exports.removed.empty() || !schemas.removed.empty() || !archs.removed.empty();
    }

    bool operator==(const AbiDiff&) const = default;
};

[[nodiscard]] AbiDiff diff_abi(const AbiSide& before, const AbiSide& after);

} // namespace kb::check
