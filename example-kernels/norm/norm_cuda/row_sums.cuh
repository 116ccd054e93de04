// SPDX-License-Identifier: Apache-2.0
//
// Sums over a row that several warps, or several blocks, share. A row too long for one block is cut
// into slices over a cluster of blocks (sm_90 and later), which write their partial sums into each
// other's shared memory.
#pragma once

#include "async.cuh"

#include <type_traits>

namespace rownorm {

// Partial sums of K values, one for each warp of the row, in sets used in turns (a power of two).
template <int K, int kSets>
struct RowTotals {
    alignas(8) float part[kSets][32 * kMaxRanks][K];
    std::uint64_t barrier[kSets]; // of the cluster, for every set
};

// How values are put together; 0 is the start of either, as the largest are those of absolute
// values.
struct Add {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

struct Largest {
    __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <int K, typename Combine>
__device__ __forceinline__ void over_lanes(float (&value)[K], int lanes, const Combine& combine) {
    for (int offset = lanes / 2; offset > 0; offset /= 2) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            value[k] = combine(value[k], __shfl_xor_sync(0xffffffffU, value[k], offset));
        }
    }
}

// Two values over a warp in half the steps: each half of the lanes takes one of them. Lanes below
// 16 return what becomes of the first, the others what becomes of the second.
template <typename Combine>
__device__ __forceinline__ float pair_over_warp(const float (&value)[2], const Combine& combine) {
    const bool upper = (threadIdx.x & 16) != 0;
    float mine[1] = {upper ? value[1] : value[0]};
    const float other = upper ? value[0] : value[1];
    mine[0] = combine(mine[0], __shfl_xor_sync(0xffffffffU, other, 16));
    over_lanes(mine, 16, combine);
    return mine[0];
}

// The sums of rows (or what `Combine` makes of them), in two steps: post, then wait and collect.
// Turns count from 0. The caller posts turn t + lag after it has collected turn t - 1 at the
// latest, and kSets is 2 * lag at least: other warps, and other blocks of the cluster, are a lag
// behind at most, so a set is free when it is written again. A block has received all that was sent
// to it before it ends. The order of additions depends on the launch's shape alone.
template <int K, int kSets>
class RowSums {
public:
    __device__ RowSums(RowTotals<K, kSets>& totals, int ranks)
        : totals_(totals), ranks_(ranks), warps_(static_cast<int>(blockDim.x) / 32) {
#if __CUDA_ARCH__ >= 900
        if (ranks_ > 1) {
            if (threadIdx.x == 0) {
#pragma unroll
                for (int set = 0; set < kSets; ++set) {
                    start_barrier(&totals_.barrier[set]);
                }
            }
            arrive_cluster();
        }
#endif
    }

    // To be called once before the first post: every block's barriers are there.
    __device__ __forceinline__ void ready() const {
#if __CUDA_ARCH__ >= 900
        if (ranks_ > 1) {
            wait_cluster();
        }
#endif
    }

    template <typename Combine = Add>
    __device__ __forceinline__ void
    post(float (&value)[K], int turn, const Combine& combine = {}) const {
        if (warps_ == 0) {
            over_lanes(value, static_cast<int>(blockDim.x), combine);
            return;
        }
        if (warps_ == 1 && ranks_ == 1) {
            over_lanes(value, 32, combine);
            return;
        }
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if constexpr (K == 2) {
            deliver(pair_over_warp(value, combine), turn, warp, lane / 16, lane % 16);
        } else {
            over_lanes(value, 32, combine);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                deliver(value[k], turn, warp, k, lane);
            }
        }
    }

    __device__ __forceinline__ void wait([[maybe_unused]] int turn) const {
#if __CUDA_ARCH__ >= 900
        if (ranks_ > 1) {
            wait_phase(&totals_.barrier[turn & (kSets - 1)], turn / kSets & 1);
            return;
        }
#endif
        if (warps_ > 1) {
            __syncthreads();
        }
    }

    template <typename Combine = Add>
    __device__ __forceinline__ void
    collect(float (&value)[K], int turn, const Combine& combine = {}) const {
        const int count = warps_ * ranks_;
        if (count <= 1) {
            return; // post left the sums in every thread
        }
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const float(*part)[K] =
            totals_.part[turn & (kSets - 1)] + static_cast<int>(threadIdx.y) * warps_;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            value[k] = lane < count ? part[lane][k] : 0.0F;
        }
#pragma unroll 1
        for (int i = lane + 32; i < count; i += 32) {
#pragma unroll
            for (int k = 0; k < K; ++k) {
                value[k] = combine(value[k], part[i][k]);
            }
        }
        if constexpr (K == 2) {
            const float mine = pair_over_warp(value, combine);
            value[0] = __shfl_sync(0xffffffffU, mine, 0);
            value[1] = __shfl_sync(0xffffffffU, mine, 16);
        } else {
            over_lanes(value, 32, combine);
        }
    }

private:
    // Value k of a warp, which some lanes hold: lane `rank` of them sends it to that block.
    __device__ __forceinline__ void
    deliver(float value, int turn, int warp, int k, int rank) const {
        const int set = turn & (kSets - 1);
        if (ranks_ == 1) {
            if (rank == 0) {
                totals_.part[set][static_cast<int>(threadIdx.y) * warps_ + warp][k] = value;
            }
            return;
        }
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0 && k == 0) {
            announce_bytes(&totals_.barrier[set],
                           ranks_ * warps_ * K * static_cast<int>(sizeof(float)));
        }
        if (rank < ranks_) {
            const int own = static_cast<int>(blockIdx.x) & (ranks_ - 1);
            send(&totals_.part[set][own * warps_ + warp][k],
                 &totals_.barrier[set],
                 value,
                 static_cast<unsigned>(rank));
        }
#endif
    }

    RowTotals<K, kSets>& totals_;
    int ranks_;
    int warps_;
};

// The vectors of a row that a thread holds: for n < count, vector first + n * blockDim.x.
struct Share {
    int first;
    int count;
};

__device__ __forceinline__ Share share_of(int ranks, int slice, int vectors, int most) {
    const int begin = (static_cast<int>(blockIdx.x) & (ranks - 1)) * slice;
    const int end = begin + slice < vectors ? begin + slice : vectors;
    Share share{begin + static_cast<int>(threadIdx.x), 0};
    while (share.count < most && share.first + share.count * static_cast<int>(blockDim.x) < end) {
        ++share.count;
    }
    return share;
}

// A thread's places in the ring: [warp][slot][tensor][n][lane], so that within a slot the offsets
// are constants.
template <int kSlots, int kTensors, int N>
struct Places {
    static constexpr unsigned kPlace = 32 * kVectorBytes;
    static constexpr unsigned kSlot = kTensors * N * kPlace;
    unsigned first;

    __device__ explicit Places(const Vector* memory) {
        const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
        first = static_cast<unsigned>(__cvta_generic_to_shared(memory)) +
                thread / 32 * (kSlots * kSlot) + thread % 32 * kVectorBytes;
    }

    // The slot after `slot`.
    __device__ __forceinline__ unsigned next(unsigned slot) const {
        const unsigned after = slot + kSlot;
        return after == first + kSlots * kSlot ? first : after;
    }

    static __device__ __forceinline__ unsigned at(unsigned slot, int tensor, int n) {
        return slot + static_cast<unsigned>(tensor * N + n) * kPlace;
    }
};

// The weights or biases of a thread, packed in registers. With N = 0, and if they are of another
// type than the rows, they are read where they are used.
template <typename Number, int N>
class Parameters {
public:
    __device__ Parameters(const void* data, bool is_f32, float absent, const Share& share)
        : data_(data), absent_(absent) {
        mixed_ = is_f32 && !std::is_same_v<Number, Float32>;
        is_f32_ = is_f32;
        float filler[kVector<Number>];
#pragma unroll
        for (int i = 0; i < kVector<Number>; ++i) {
            filler[i] = absent;
        }
#pragma unroll
        for (int n = 0; n < N; ++n) {
            packed_[n] = pack<Number>(filler);
            if (data != nullptr && !mixed_ && n < share.count) {
                packed_[n] = load_parameters(static_cast<const Vector*>(data) + share.first +
                                             n * static_cast<int>(blockDim.x));
            }
        }
    }

    __device__ __forceinline__ void
    get(int n, std::int64_t v, float (&out)[kVector<Number>]) const {
        if (N == 0 || mixed_) {
            load_parameter<Number>(data_, is_f32_, v * kVector<Number>, absent_, out);
        } else {
            unpack<Number>(packed_[n], out);
        }
    }

    // Whether they are of another type than the rows: then they have no packed form.
    __device__ __forceinline__ bool mixed() const {
        return mixed_;
    }

    __device__ __forceinline__ Vector packed(int n, std::int64_t v) const {
        if (N != 0) {
            return packed_[n];
        }
        if (data_ != nullptr) {
            return load_parameters(static_cast<const Vector*>(data_) + v);
        }
        float filler[kVector<Number>];
#pragma unroll
        for (int i = 0; i < kVector<Number>; ++i) {
            filler[i] = absent_;
        }
        return pack<Number>(filler);
    }

private:
    const void* data_;
    float absent_;
    bool mixed_;
    bool is_f32_;
    Vector packed_[N == 0 ? 1 : N];
};

} // namespace rownorm
