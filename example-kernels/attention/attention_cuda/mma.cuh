// SPDX-License-Identifier: Apache-2.0
//
// The instructions of sm_80 that the forward kernel is made of, and who holds which element.
// With g = lane / 4 and t = lane % 4, a warp's product of 16x16 by 16x8 keeps
//   A   a[0]: row g,     columns 2t 2t+1      a[2]: row g,     columns 2t+8 2t+9
//       a[1]: row g + 8, columns 2t 2t+1      a[3]: row g + 8, columns 2t+8 2t+9
//   B   b[0]: rows 2t 2t+1, column g          b[1]: rows 2t+8 2t+9, column g
//   C   c[0] c[1]: row g, columns 2t 2t+1     c[2] c[3]: row g + 8, the same columns
// so two neighbouring C tiles, converted to 16 bits, are the A of a following product.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace attention {

struct Float16 {
    using Storage = __half;

    static __device__ __forceinline__ std::uint32_t pack(float low, float high) {
        const __half2 pair = __floats2half2_rn(low, high);
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }

    static __device__ __forceinline__ float2 unpack(std::uint32_t pair) {
        return __half22float2(*reinterpret_cast<const __half2*>(&pair));
    }

    static __device__ __forceinline__ Storage narrow(float value) { return __float2half_rn(value); }

    static __device__ __forceinline__ Storage zero() { return __float2half_rn(0.0F); }

    static __device__ __forceinline__ void
    multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

struct BFloat16 {
    using Storage = __nv_bfloat16;

    static __device__ __forceinline__ std::uint32_t pack(float low, float high) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }

    static __device__ __forceinline__ float2 unpack(std::uint32_t pair) {
        return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000U));
    }

    static __device__ __forceinline__ Storage narrow(float value) {
        return __float2bfloat16_rn(value);
    }

    static __device__ __forceinline__ Storage zero() { return __float2bfloat16_rn(0.0F); }

    static __device__ __forceinline__ void
    multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Four 8x8 matrices of 2-byte elements; lane 8 m + r gives the address of row r of matrix m.
__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// The transposed of one 8x8 matrix of 2-byte elements, of which lane (g, t) has row g, columns 2t
// 2t+1.
__device__ __forceinline__ std::uint32_t transposed(std::uint32_t r) {
    std::uint32_t result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(r));
    return result;
}

// 2^x; what is below 2^-126 is 0.
__device__ __forceinline__ float fast_exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// 16 bytes from global to shared memory without a register; writes zeros if !valid.
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(shared)), "l"(global), "r"(valid ? 16 : 0)
                 : "memory");
}

// The same for data that is read once, from end to end; kPrefetch bytes come to the L2 cache at
// once.
template <int kPrefetch>
__device__ __forceinline__ void copy_async_stream(void* shared, const void* global, bool valid) {
    if constexpr (kPrefetch == 256) {
        asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;"
                     :
                     : "r"(shared_address(shared)), "l"(global), "r"(valid ? 16 : 0)
                     : "memory");
    } else {
        static_assert(kPrefetch == 128);
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                     :
                     : "r"(shared_address(shared)), "l"(global), "r"(valid ? 16 : 0)
                     : "memory");
    }
}

// The same for 4 bytes, by the lanes that are `active`.
__device__ __forceinline__ void
copy_async_word(void* shared, const void* global, bool valid, bool active) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0;"
                 "@p cp.async.ca.shared.global [%0], [%1], 4, %2; }"
                 :
                 : "r"(shared_address(shared)),
                   "l"(global),
                   "r"(valid ? 4 : 0),
                   "r"(static_cast<std::uint32_t>(active))
                 : "memory");
}

__device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most N of the newest groups are unfinished.
template <int N>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

} // namespace attention
