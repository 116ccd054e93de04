// SPDX-License-Identifier: Apache-2.0
//
// Sums over a row that several warps, or several blocks, share; copies into shared memory. A row
// too long for one block is cut into slices over a cluster of blocks (sm_90 and later), which write
// their partial sums into each other's shared memory.
#pragma once

#include "device.cuh"

#include <type_traits>

namespace rownorm {

// Partial sums of K values, one for each warp of the row, in two sets used in turns.
template <int K>
struct RowTotals {
    float part[2][K][32 * kMaxRanks];
    std::uint64_t barrier[2]; // of the cluster, for either set
};

// Shared memory is addressed by its 32-bit addresses: generic ones cost instructions.
__device__ __forceinline__ void copy_async(unsigned place, const Vector* global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(global) : "memory");
}

__device__ __forceinline__ Vector load_place(unsigned place) {
    Vector v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
                 : "r"(place));
    return v;
}

__device__ __forceinline__ void store_place(unsigned place, const Vector& v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(place),
                 "r"(v.word[0]),
                 "r"(v.word[1]),
                 "r"(v.word[2]),
                 "r"(v.word[3])
                 : "memory");
}

__device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most kPending of this thread's groups of copies are on their way.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

#if __CUDA_ARCH__ >= 900

// A barrier that counts bytes: a phase ends when its one arrival has come and so have all the
// bytes that the arrival announced.
__device__ __forceinline__ void start_barrier(std::uint64_t* barrier) {
    const auto place = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(place) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void announce_bytes(std::uint64_t* barrier, int bytes) {
    const auto place = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(place), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void wait_phase(std::uint64_t* barrier, int parity) {
    const auto place = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(place),
                 "r"(parity)
                 : "memory");
}

// Writes into the same place of another block of the cluster; its barrier counts the bytes.
__device__ __forceinline__ void
send(float* place, std::uint64_t* barrier, float value, unsigned rank) {
    unsigned there;
    unsigned there_barrier;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(place))), "r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there_barrier)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(barrier))), "r"(rank));
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there),
        "r"(__float_as_uint(value)),
        "r"(there_barrier)
        : "memory");
}

__device__ __forceinline__ void arrive_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void wait_cluster() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

#endif

template <int K>
__device__ __forceinline__ void sum_over_lanes(float (&value)[K], int lanes) {
    for (int offset = lanes / 2; offset > 0; offset /= 2) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            value[k] += __shfl_xor_sync(0xffffffffU, value[k], offset);
        }
    }
}

// The sums of a row, in two steps: post, then wait and collect. In a cluster a warp posts the sums
// of one turn after it has collected those of the turn before, so a set is free when it is written
// again; and it has received all that was sent to it before it ends. The order of additions depends
// on the launch's shape alone.
template <int K>
class RowSums {
public:
    __device__ RowSums(RowTotals<K>& totals, int ranks)
        : totals_(totals), ranks_(ranks), warps_(static_cast<int>(blockDim.x) / 32) {
#if __CUDA_ARCH__ >= 900
        if (ranks_ > 1) {
            if (threadIdx.x == 0) {
                start_barrier(&totals_.barrier[0]);
                start_barrier(&totals_.barrier[1]);
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

    __device__ __forceinline__ void post(float (&value)[K], int turn) const {
        if (warps_ == 0) {
            sum_over_lanes(value, static_cast<int>(blockDim.x));
            return;
        }
        sum_over_lanes(value, 32);
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        if (ranks_ == 1) {
            if (lane == 0 && warps_ > 1) {
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    totals_.part[turn & 1][k][static_cast<int>(threadIdx.y) * warps_ + warp] =
                        value[k];
                }
            }
            return;
        }
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0) {
            announce_bytes(&totals_.barrier[turn & 1],
                           ranks_ * warps_ * K * static_cast<int>(sizeof(float)));
        }
        if (lane < ranks_) {
            const int rank = static_cast<int>(blockIdx.x) & (ranks_ - 1);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                send(&totals_.part[turn & 1][k][rank * warps_ + warp],
                     &totals_.barrier[turn & 1],
                     value[k],
                     static_cast<unsigned>(lane));
            }
        }
#endif
    }

    // `round` counts the turns from 0.
    __device__ __forceinline__ void wait([[maybe_unused]] int turn,
                                         [[maybe_unused]] int round) const {
#if __CUDA_ARCH__ >= 900
        if (ranks_ > 1) {
            wait_phase(&totals_.barrier[turn & 1], (round >> 1) & 1);
            return;
        }
#endif
        if (warps_ > 1) {
            __syncthreads();
        }
    }

    __device__ __forceinline__ void collect(float (&value)[K], int turn) const {
        const int count = warps_ * ranks_;
        if (count <= 1) {
            return; // post left the sums in every thread
        }
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int first = static_cast<int>(threadIdx.y) * warps_;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const float* part = totals_.part[turn & 1][k] + first;
            value[k] = lane < count ? part[lane] : 0.0F;
            for (int i = lane + 32; i < count; i += 32) {
                value[k] += part[i];
            }
        }
        sum_over_lanes(value, 32);
    }

private:
    RowTotals<K>& totals_;
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
                packed_[n] = static_cast<const Vector*>(
                    data)[share.first + n * static_cast<int>(blockDim.x)];
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

private:
    const void* data_;
    float absent_;
    bool mixed_;
    bool is_f32_;
    Vector packed_[N == 0 ? 1 : N];
};

} // namespace rownorm
