// SPDX-License-Identifier: Apache-2.0
//
// Tile sizes as data, by the padded head dimension. Measured on sm_90 only.
#pragma once

namespace attention {

constexpr int kWarps = 4;
constexpr int kRowsPerWarp = 16; // of the tensor core's 16 x 8 x 16 product
constexpr int kQueries = kWarps * kRowsPerWarp;
constexpr int kThreads = kWarps * 32;

// Rows of shared memory are 16 bytes longer than the data: no bank conflict with ldmatrix.
constexpr int kPadding = 8;

template <int kDim, int kKeysPerStep, bool kQueriesInRegisters>
struct Tile {
    static constexpr int head_dim = kDim; // the head dimension is padded with zeros to this
    static constexpr int keys = kKeysPerStep;
    static constexpr bool queries_in_registers = kQueriesInRegisters;
    // One tile of queries (the result leaves through it), keys and values of 2-byte elements.
    static constexpr int shared_bytes = (kQueries + 2 * keys) * (head_dim + kPadding) * 2;
};

using Tile64 = Tile<64, 64, true>;
using Tile128 = Tile<128, 64, true>;
using Tile256 = Tile<256, 32, false>;

// Forward on sm_90a. A block: `groups` consumer warpgroups of 64 queries each, one more that loads.
template <int kDim,
          int kKeysPerStep,
          int kGroups,
          int kProducerRegisters,
          int kConsumerRegisters,
          bool kTurns,
          int kQueryTiles>
struct HopperTile {
    static constexpr int head_dim = kDim;
    static constexpr int keys = kKeysPerStep;
    static constexpr int groups = kGroups;
    static constexpr int queries = 64 * groups;
    static constexpr int threads = 128 * (groups + 1);
    static constexpr int producer_registers = kProducerRegisters;
    static constexpr int consumer_registers = kConsumerRegisters;
    static_assert(128 * (producer_registers + groups * consumer_registers) <= 65536);
    // The warpgroups take turns at the tensor cores, so that the softmax of one runs beside the
    // products of another. The products of the widest heads take longer than the softmax anyway.
    static constexpr bool turns = kTurns;
    // In flight: with two, the queries of the next tile come while the last steps are computed.
    static constexpr int query_tiles = kQueryTiles;
    // The queries, two steps of keys and of values, barriers; all of it aligned to 1024 bytes.
    static constexpr int shared_bytes =
        (query_tiles * queries + 4 * keys) * head_dim * 2 + 192 + 1024;
    static_assert(shared_bytes <= 227 * 1024);
};

using HopperTile64 = HopperTile<64, 128, 3, 32, 160, true, 2>;
using HopperTile64Short = HopperTile<64, 128, 2, 40, 232, false, 2>;
using HopperTile128 = HopperTile<128, 128, 2, 40, 232, true, 2>;
using HopperTile256 = HopperTile<256, 80, 2, 40, 232, false, 1>;

// Backward on sm_90a. A block: two consumer warpgroups of 64 keys each, which step over queries;
// one more that loads and that adds up grad_q.
template <int kDim, int kQueriesPerStep>
struct HopperBackwardTile {
    static constexpr int head_dim = kDim;
    static constexpr int queries = kQueriesPerStep;
    static constexpr int groups = 2;
    static constexpr int keys = 64 * groups;
    static constexpr int threads = 128 * (groups + 1);
    static constexpr int producer_registers = 24;
    static constexpr int consumer_registers = 240;
    static_assert(128 * (producer_registers + groups * consumer_registers) <= 65536);
    static constexpr int key_bytes = keys * head_dim * 2;
    static constexpr int query_bytes = queries * head_dim * 2;
    static constexpr int weight_bytes = queries * keys * 2;
    static constexpr int sum_bytes = queries * head_dim * 4;
    static constexpr int statistic_bytes = 2 * queries * 4;
    static constexpr int query_stages = 3; // with two the products wait for the copy engine
    // Keys, values; some steps of queries and their statistics; two of grad_out and of score
    // gradients; one of grad_q; barriers; all of it aligned to 1024 bytes.
    static constexpr int shared_bytes = 2 * key_bytes +
                                        query_stages * (query_bytes + statistic_bytes) +
                                        2 * query_bytes + 2 * weight_bytes + sum_bytes + 256 + 1024;
    static_assert(shared_bytes <= 227 * 1024);
    // A warpgroup's part of grad_q is 64 x 64: of a step of 64 queries half of the columns, of one
    // of 128 half of the rows.
    static_assert(queries * head_dim == 64 * 64 * groups);
};

using HopperBackwardTile64 = HopperBackwardTile<64, 128>;
using HopperBackwardTile128 = HopperBackwardTile<128, 64>;

// Backward. A block holds kQueries queries (of grad_q) or kKeys keys (of grad_k, grad_v) and steps
// over the others.
constexpr int kKeys = kQueries;

template <int kDim, int kRowsPerStep, bool kBothAtOnce>
struct BackwardTile {
    static constexpr int head_dim = kDim;
    static constexpr int step = kRowsPerStep;
    // grad_k and grad_v by one kernel; else their accumulators would not fit in the registers.
    static constexpr bool both_at_once = kBothAtOnce;
    // Two tensors of the block's rows, two of a step's. At most 99 KiB: sm_86 and sm_89 have no
    // more.
    static constexpr int shared_bytes = 2 * (kQueries + step) * (head_dim + kPadding) * 2;
    static_assert(shared_bytes <= 99 * 1024);
};

using BackwardTile64 = BackwardTile<64, 64, true>;
using BackwardTile128 = BackwardTile<128, 32, true>;
using BackwardTile256 = BackwardTile<256, 32, false>;

// fp32: no tensor core. A warp owns kF32RowsPerWarp queries, a lane one of 32 keys.
constexpr int kF32RowsPerWarp = 4;
constexpr int kF32Queries = kWarps * kF32RowsPerWarp;
constexpr int kF32Keys = 32;

constexpr int f32_shared_bytes(int head_dim) {
    return (kF32Queries * head_dim + kF32Keys * (head_dim + 1) + kF32Keys * head_dim) * 4;
}

// Backward: two tensors of the block's rows, two of a step's 32 rows.
constexpr int f32_backward_shared_bytes(int head_dim) {
    return (2 * kF32Queries * head_dim + 2 * kF32Keys * (head_dim + 1)) * 4;
}

} // namespace attention
