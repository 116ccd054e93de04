// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/variant.hpp"
#include "base/diagnostics.hpp"
#include "base/words.hpp"
#include "config/config.hpp"
#include "plan/build_key.hpp"
#include "plan/lock.hpp"
#include "plan/selection.hpp"
#include "plan/source_snapshot.hpp"
#include "plan/support_matrix.hpp"
#include "plan/tu.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::plan {

/// Everything that a plan is made of. The referred values outlive the call only.
struct PlanInput {
    const config::Config& config;
    const SupportMatrix& matrix;
    const SourceSnapshot& snapshot;
    const Lock& lock;
    const Selection& selection;
    /// Replaces the unique part of the ops id (generate --unique-id).
    std::optional<std::string> unique_id{};
    /// Version of this program; part of every build key.
    std::string tool_version{};
    /// Who gave the lock: "project" or "default".
    std::string lock_origin{};
    /// More lines for every build key: digest of the templates, of kernel-builder.toml.
    std::map<std::string, std::string> facts{};
};

/// What the finished library must hold and may need; the checks compare it with the facts.
struct Promises {
    backend::DeviceCode device_code = backend::DeviceCode::none;
    /// Exactly these, as in metadata: "8.0", "9.0a", "12.0+PTX".
    std::vector<std::string> archs{};
    /// "manylinux_2_28"; "" off Linux.
    std::string libc_policy{};
    /// Limited API of Python: 3.9.
    Version python_abi{};
    /// Set for stable-ABI variants ...
    std::optional<Version> torch_stable_abi{};
    /// ... and for those of one torch version.
    std::optional<Version> torch{};
    /// Libraries that it needs besides the C and C++ runtime, by file name without version:
    /// "libtorch_cpu.so", "libcudart.so".
    Words libraries{};

    bool operator==(const Promises&) const = default;
};

struct PlannedVariant {
    VariantName name{};
    /// "_<module>_<backend>_<unique id>"; noarch variants have one too (_ops.py).
    std::string ops_id{};
    Version torch{};
    std::vector<SectionArchs> sections{};
    /// Ids of its TUs in link order; none for noarch.
    Words tus{};
    /// Output "" for noarch: nothing is linked.
    Link link{};
    Promises promises{};
    BuildKey key{};

    /// What it is built with, sorted by id: those that its build key names.
    [[nodiscard]] std::vector<Requirement> requirements() const;
};

struct Plan {
    /// Module name of the kernel: "my_kernel".
    std::string kernel{};
    std::string unique_id{};
    std::string tool_version{};
    std::string lock_origin{};
    digest::Digest lock_digest{};
    /// Distinct, sorted by source, then id.
    std::vector<Tu> tus{};
    /// In plan order.
    std::vector<PlannedVariant> variants{};
    /// Of all variants, sorted.
    std::vector<Requirement> requirements{};
    /// Those that the lock does not hold: `lock` has to be run before a build.
    std::vector<Requirement> missing{};

    [[nodiscard]] const PlannedVariant* find(const VariantName& name) const;
    /// `id` is one of a variant of this plan.
    [[nodiscard]] const Tu& tu(std::string_view id) const;
};

/// Decides everything. Pure, and independent of the order of lists in the snapshot, the lock and
/// the matrix. Reports what is wrong for the chosen variants: a source that is missing
/// ("missing-source") or that the backend cannot compile ("wrong-source-kind"), a section without
/// an architecture left ("no-architecture"), a backend without section ("missing-section"), a
/// native dependency that cannot be had ("unavailable-dependency"), nothing selected
/// ("nothing-selected"). Nothing when there was an error.
[[nodiscard]] std::optional<Plan> make(const PlanInput& input, Diagnostics& diagnostics);

/// What the chosen variants need, sorted, each once: what `lock` pins. Needs no snapshot: a native
/// dependency counts for every variant of its section.
[[nodiscard]] std::vector<Requirement>
requirements(const config::Config& config, const SupportMatrix& matrix, const Selection& selection);

/// Warnings about what a toolkit leaves out of the chosen variants ("refused-architecture"), an
/// error where nothing is left ("no-architecture"). For check-config.
void report_architectures(const config::Config& config,
                          const VariantChoice& choice,
                          Diagnostics& diagnostics);

/// Unique part of the ops id: ten hex digits of the digest of all sources, package files and what
/// build.toml says about them. Of the content only, so equal sources have equal ids.
[[nodiscard]] std::string unique_id(const config::Config& config, const SourceSnapshot& snapshot);
/// "_<module>_<backend>_<unique id>"
[[nodiscard]] std::string
ops_id(const config::Config& config, BackendId backend, std::string_view unique_id);

struct PlanCounts {
    std::size_t variants = 0;
    /// As if nothing were shared / really compiled.
    std::size_t tus_in_all = 0;
    std::size_t tus_distinct = 0;
    /// Device compilations: the sum of architectures over the distinct TUs.
    std::size_t arch_compiles = 0;
    std::size_t links = 0;
};

[[nodiscard]] PlanCounts count(const Plan& plan);

/// plan.json, "kernel-builder/plan/1": canonical.
[[nodiscard]] std::string write_plan(const Plan& plan);
/// Reads what write_plan() wrote; `corrupt` otherwise.
[[nodiscard]] Result<Plan> parse_plan(std::string_view json);

} // namespace kb::plan
