// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "config/config.hpp"
#include "plan/support_matrix.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::plan {

using backend::Variant;
using backend::VariantName;

/// A condition on versions: a comma list of `[op]version` or `version.*`, op one of
/// >= <= > < == !=; a bare version is a prefix ("13" means 13.*). All comparisons must hold, and at
/// least one of the bare versions where there are any.
class VersionSet {
public:
    VersionSet() = default;
    /// The error says which item is wrong and shows the form.
    [[nodiscard]] static Result<VersionSet> parse(std::string_view text);
    [[nodiscard]] bool contains(const Version& version) const;
    /// An item asks for just this version ("13.2", "==13.2"; not "13" or ">=13.2").
    [[nodiscard]] bool names(const Version& version) const;

    /// No condition at all.
    [[nodiscard]] bool is_any() const { return items_.empty(); }

    [[nodiscard]] const std::string& text() const { return text_; }

private:
    enum class Op : std::uint8_t { ge, le, gt, lt, eq, ne, prefix };

    struct Item {
        Op op = Op::prefix;
        Version version{};
        /// Written with ".*".
        bool wildcard = false;
    };

    [[nodiscard]] static std::optional<Item> parse_item(std::string_view text);
    [[nodiscard]] static bool holds(const Item& item, const Version& version);

    std::vector<Item> items_;
    std::string text_;
};

/// What the user asks for; all conditions must hold. Empty lists ask for nothing in particular.
struct Selection {
    VersionSet torch{};
    VersionSet cuda{};
    VersionSet rocm{};
    /// Devices: a variant must hold code that runs on each of them ("9.0", "gfx942").
    std::vector<std::string> archs{};
    std::vector<BackendId> backends{};
    std::vector<Platform> platforms{};
    /// Exact names, as build --variant gives them.
    std::vector<std::string> variants{};
    /// Only the newest torch version of each backend.
    bool latest = false;
    /// Only rows that are part of the bundle; a row that is asked for by name or by torch or
    /// toolkit version is looked at in any case.
    bool bundle_only = true;
};

/// What a section gets in one variant.
struct SectionArchs {
    std::string section{};
    backend::ArchChoice choice{};
    /// Left out as a whole: the toolkit is older than its cuda-minver.
    bool skipped = false;

    bool operator==(const SectionArchs&) const = default;
};

struct ChosenVariant {
    VariantName name{};
    /// The torch version whose headers it is compiled with: its own, or for the stable ABI the
    /// lowest one of the matrix that has that ABI. Empty for noarch and tvm-ffi.
    Version torch{};
    /// Sections of its backend in file order, with their architectures; none for noarch.
    std::vector<SectionArchs> sections{};

    /// Union over the sections, sorted naturally: the promise, and metadata's archs.
    [[nodiscard]] std::vector<std::string> archs() const;
    bool operator==(const ChosenVariant&) const = default;
};

/// A row that gave no variant. `rule` is a short kebab word (docs/commands/list-variants.md).
struct RefusedVariant {
    /// The name that it would have had.
    std::string what{};
    std::string rule{};
    std::string reason{};

    auto operator<=>(const RefusedVariant&) const = default;
};

/// What a rule means: the row gives no variant, because ...
struct SelectionRule {
    std::string_view name{};
    std::string_view meaning{};
};

/// Every rule that a refusal may name.
[[nodiscard]] std::span<const SelectionRule> selection_rules();

struct VariantChoice {
    /// In plan order: stable ABI first, then by backend, version, platform.
    std::vector<ChosenVariant> chosen{};
    /// Sorted by name, then rule.
    std::vector<RefusedVariant> refused{};

    bool operator==(const VariantChoice&) const = default;
};

/// Which variants there are. Depends on no lock and no toolchain. A variant whose section has no
/// architecture left stays chosen: plan::make reports it as an error.
[[nodiscard]] VariantChoice
select(const config::Config& config, const SupportMatrix& matrix, const Selection& selection);

/// What of a machine bears on which variant is its own.
struct HostFacts {
    Platform platform{};
    /// Backend of the accelerator that was found; cpu without one.
    BackendId backend = BackendId::cpu;
    /// Version of its driver's toolkit, if known: "13.0".
    std::optional<Version> backend_version{};
};

/// The variant that a build without --matrix makes: of the host's platform, its backend (else cpu,
/// else any), stable ABI before newest torch, newest toolkit that the driver runs. Index into
/// `choice.chosen`; nothing when no variant is for this platform.
[[nodiscard]] std::optional<std::size_t> best_for_host(const VariantChoice& choice,
                                                       const HostFacts& host);

/// Device code for `archs` runs on `device`: same major version and not newer, PTX of an older one,
/// 'a' only on its own chip, 'f' within the family; other backends: the same name.
[[nodiscard]] bool serves_device(std::span<const std::string> archs, std::string_view device);

} // namespace kb::plan
