// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.hpp"

#include <utility>

namespace kb::backend {

namespace {

struct Row {
    BackendId id;
    std::string_view name;
    bool kernel_sections;
    bool versioned;
};

constexpr std::array<Row, 8> kRows{{
    {BackendId::cann, "cann", false, true},
    {BackendId::cpu, "cpu", true, false},
    {BackendId::cuda, "cuda", true, true},
    {BackendId::metal, "metal", true, false},
    {BackendId::neuron, "neuron", false, false},
    {BackendId::rocm, "rocm", true, true},
    {BackendId::tpu, "tpu", false, false},
    {BackendId::xpu, "xpu", true, true},
}};

const Row& row_of(BackendId id) {
    return kRows[std::to_underlying(id)];
}

} // namespace

std::string_view to_text(BackendId id) {
    return row_of(id).name;
}

std::optional<BackendId> parse_backend(std::string_view text) {
    for (const Row& row : kRows) {
        if (row.name == text) {
            return row.id;
        }
    }
    return std::nullopt;
}

bool has_kernel_sections(BackendId id) {
    return row_of(id).kernel_sections;
}

bool is_versioned(BackendId id) {
    return row_of(id).versioned;
}

} // namespace kb::backend
