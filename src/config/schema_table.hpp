// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kb::config {

/// The tables of build.toml. `kernel_dependency` is an item of kernel-depends, `kernel` a section.
enum class TableId : std::uint8_t {
    root,
    general,
    general_cuda,
    general_neuron,
    general_tpu,
    general_xpu,
    general_hub,
    kernel_dependency,
    torch,
    torch_noarch,
    tvm_ffi,
    kernel
};

enum class Need : std::uint8_t { optional, required };

/// One key of one table in a range of editions. The only place that says which keys exist.
struct KeyRow {
    TableId table = TableId::root;
    std::string_view key{};
    Edition since = Edition::v1;
    Edition until = Edition::v5;
    Need need = Need::optional;
    /// A key of [kernel.*] that only sections of this backend have.
    std::optional<BackendId> only{};
};

[[nodiscard]] std::span<const KeyRow> key_rows();
/// Keys of a table. For `kernel`: those of the backend, or of all backends when none is given.
[[nodiscard]] std::vector<std::string_view>
keys_of(TableId table, Edition edition, std::optional<BackendId> backend = std::nullopt);
[[nodiscard]] std::vector<std::string_view> required_keys_of(TableId table, Edition edition);

/// Spellings of `depends`, in the order of the format.
[[nodiscard]] std::span<const std::string_view> native_dependency_names();

} // namespace kb::config
