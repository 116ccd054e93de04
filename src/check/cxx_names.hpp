// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kb::check {

/// A mangled C++ name as a person wrote it; nothing for other names and for those over 4 KiB.
[[nodiscard]] std::optional<std::string> demangle(std::string_view name);
/// The same, or the name itself.
[[nodiscard]] std::string readable(std::string_view name);

/// Cheap and without false negatives: a mangled name in which torch's C++ interface may occur.
[[nodiscard]] bool may_be_torch(std::string_view name);

enum class TorchUse : std::uint8_t { none, stable, unstable };

/// How a mangled name uses torch's C++ interface. What may be torch's and cannot be read is
/// `unstable`.
[[nodiscard]] TorchUse torch_use(std::string_view name);

} // namespace kb::check
