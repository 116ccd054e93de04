// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/support_matrix.hpp"

#include <cstdint>
#include <unordered_map>

namespace kb::plan {

/// Rows of a matrix by version, for callers that ask once a variant. Refers to the matrix.
class MatrixIndex {
public:
    explicit MatrixIndex(const SupportMatrix& matrix);

    /// As find_toolkit() and so on; nullptr when there is no row.
    [[nodiscard]] const ToolkitRow* toolkit(BackendId backend, const Version& version) const;
    [[nodiscard]] const FrameworkRow* torch(const Version& version) const;
    [[nodiscard]] const FrameworkRow* tvm_ffi(const Version& version) const;
    [[nodiscard]] const HostRow* host(const Platform& platform) const;

private:
    template <typename Row>
    using Rows = std::unordered_map<std::uint64_t, const Row*>;

    const SupportMatrix& matrix_;
    Rows<ToolkitRow> toolkits_;
    Rows<FrameworkRow> torch_;
    Rows<FrameworkRow> tvm_ffi_;
};

} // namespace kb::plan
