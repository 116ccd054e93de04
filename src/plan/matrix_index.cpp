// SPDX-License-Identifier: Apache-2.0
#include "plan/matrix_index.hpp"

#include <utility>

namespace kb::plan {

namespace {

/// Two components are all that rows are told apart by.
std::uint64_t key_of(const Version& version) {
    return (version.major() << 24U) ^ version.minor();
}

std::uint64_t key_of(BackendId backend, const Version& version) {
    return (std::uint64_t{std::to_underlying(backend)} << 56U) ^ key_of(version);
}

template <typename Row>
const Row* find(const std::unordered_map<std::uint64_t, const Row*>& rows, std::uint64_t key) {
    const auto found = rows.find(key);
    return found == rows.end() ? nullptr : found->second;
}

} // namespace

MatrixIndex::MatrixIndex(const SupportMatrix& matrix) : matrix_{matrix} {
    for (const ToolkitRow& row : matrix.toolkits) {
        toolkits_.emplace(key_of(row.backend, row.version), &row);
    }
    for (const FrameworkRow& row : matrix.torch) {
        torch_.emplace(key_of(row.version), &row);
    }
    for (const FrameworkRow& row : matrix.tvm_ffi) {
        tvm_ffi_.emplace(key_of(row.version), &row);
    }
}

const ToolkitRow* MatrixIndex::toolkit(BackendId backend, const Version& version) const {
    return find(toolkits_, key_of(backend, version));
}

const FrameworkRow* MatrixIndex::torch(const Version& version) const {
    return find(torch_, key_of(version));
}

const FrameworkRow* MatrixIndex::tvm_ffi(const Version& version) const {
    return find(tvm_ffi_, key_of(version));
}

const HostRow* MatrixIndex::host(const Platform& platform) const {
    return find_host(matrix_, platform);
}

} // namespace kb::plan
