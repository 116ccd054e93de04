// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binfmt/byte_reader.hpp"

#include <string>
#include <vector>

namespace kb::binfmt {

/// Texts in the file that read as schemas of torch's operators ("norm(Tensor x, float eps=1e-5) ->
/// Tensor"), each once, sorted. Only whole NUL-terminated texts of at most 8 KiB count; a schema
/// that a program puts together when it runs is not seen. Block by block: memory does not grow with
/// the file.
[[nodiscard]] Result<std::vector<std::string>> find_op_schemas(const ByteSource& source);

} // namespace kb::binfmt
