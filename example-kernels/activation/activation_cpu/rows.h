// SPDX-License-Identifier: Apache-2.0
//
// Where the operands of an output element lie.
#pragma once

#include "../activation_common/activation.h"

namespace activation {
namespace { // several instruction sets include this: no symbol may be shared between them

// Splits the element range [begin, end) into pieces that stay inside one row and calls
// piece(row, first column, last column + 1).
template <typename Piece>
void for_each_row_piece(Shape shape, std::int64_t begin, std::int64_t end, const Piece& piece) {
    for (std::int64_t at = begin; at < end;) {
        const std::int64_t row = at / shape.cols;
        const std::int64_t from = at - row * shape.cols;
        const std::int64_t to = shape.cols < from + (end - at) ? shape.cols : from + (end - at);
        piece(row, from, to);
        at += to - from;
    }
}

template <Form M>
constexpr std::int64_t kHalves = M == Form::unary ? 1 : 2;

// From one output column to the next, in the input.
template <Form M>
constexpr std::int64_t kStep = M == Form::interleaved ? 2 : 1;

// Where the second part of an input row begins.
template <Form M>
std::int64_t second_operand(Shape shape) {
    switch (M) {
    case Form::unary:
        return 0;
    case Form::interleaved:
        return 1;
    default:
        return shape.cols;
    }
}

} // namespace
} // namespace activation
