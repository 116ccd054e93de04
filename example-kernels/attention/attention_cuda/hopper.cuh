// SPDX-License-Identifier: Apache-2.0
//
// The instructions of sm_90a that the Hopper kernels are made of: barriers in shared memory, the
// tensor copy engine, the warpgroup's matrix product, and the layouts that these agree on.
//
// Tiles of 2-byte elements lie in panels of 64 columns, a row of a panel is 128 bytes, the 16-byte
// pieces of 8 rows are swizzled: the copy engine writes this and the product reads it. A panel
// begins at a multiple of 1024 bytes.
#pragma once

#include "mma.cuh"

#include <cuda.h>
#include <cudaTypedefs.h>

namespace attention {

constexpr int kPanel = 64;
constexpr int kPanelRowBytes = kPanel * 2;

// ------------------------------------------------------------------------- barriers

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and announces `bytes` that the copy engine is going to write.
__device__ __forceinline__ void barrier_expect(std::uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// Waits for the end of the phase of this parity; a barrier begins in phase 0.
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, int parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// The 16 barriers of the block, for groups of whole warps.
__device__ __forceinline__ void group_wait(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void group_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Ordinary writes to shared memory become visible to the copy engine and the product.
__device__ __forceinline__ void publish_shared() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ------------------------------------------------------------------------- copies

// One box of a tensor [batch, head, row, column] to shared memory; what lies outside the tensor
// arrives as zeros.
__device__ __forceinline__ void copy_box(std::uint32_t shared,
                                         const CUtensorMap& map,
                                         std::uint32_t barrier,
                                         int column,
                                         int row,
                                         int head,
                                         int batch) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
                 "l"(&map),
                 "r"(barrier),
                 "r"(column),
                 "r"(row),
                 "r"(head),
                 "r"(batch)
                 : "memory");
}

// Contiguous bytes, a multiple of 16, to shared memory.
__device__ __forceinline__ void
copy_bytes(std::uint32_t shared, const void* global, std::uint32_t barrier, int bytes) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared),
                 "l"(global),
                 "r"(bytes),
                 "r"(barrier)
                 : "memory");
}

// From shared memory: written, or added as fp32. A thread's copies form groups.
__device__ __forceinline__ void write_bytes(void* global, std::uint32_t shared, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
                 "r"(shared),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void add_floats(void* global, std::uint32_t shared, int bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                     global),
                 "r"(shared),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void writes_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Of all groups of this thread: shared memory has been read; then: the results are visible.
__device__ __forceinline__ void writes_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void writes_wait() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Four 8x8 matrices of 2-byte elements; lane 8 m + r gives the address of row r of matrix m.
__device__ __forceinline__ void store_matrices(std::uint32_t address, const std::uint32_t* r) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(r[0]),
                 "r"(r[1]),
                 "r"(r[2]),
                 "r"(r[3])
                 : "memory");
}

// ------------------------------------------------------------------------- products

// Where an operand lies: the address, the distance of 64-column panels (only for an operand whose
// columns are not the summed dimension), the distance of 8-row groups, all in units of 16 bytes.
__device__ __forceinline__ std::uint64_t operand(std::uint32_t address, int panel_bytes) {
    constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
    constexpr std::uint64_t kGroup = std::uint64_t{8 * kPanelRowBytes / 16} << 32;
    return kSwizzle128 | kGroup | static_cast<std::uint64_t>(panel_bytes / 16) << 16 |
           (address & 0x3ffffU) >> 4;
}

__device__ __forceinline__ void product_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void product_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most N of the newest groups are unfinished.
template <int N>
__device__ __forceinline__ void product_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// The compiler may not move uses of these registers across this point.
template <int N>
__device__ __forceinline__ void pin(float (&values)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
        asm volatile("" : "+f"(values[i])::"memory");
    }
}

template <int N>
__device__ __forceinline__ void pin(std::uint32_t (&values)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
        asm volatile("" : "+r"(values[i])::"memory");
    }
}

// A warpgroup's product of 64 x 16 by 16 x N is added to c, or replaces it if !add. Warp w holds
// rows 16 w ... 16 w + 15; with g = lane / 4 and t = lane % 4
//   c[4 j], c[4 j + 1]: row g, columns 8 j + 2 t and the next; c[4 j + 2], c[4 j + 3]: row g + 8
// so c, converted, is the register operand of a following product, as with mma.sync.
template <typename Number, int N>
struct Product;

#define ATTENTION_R8(A, B, C, D, E, F, G, H)                                                       \
    "%" #A ", %" #B ", %" #C ", %" #D ", %" #E ", %" #F ", %" #G ", %" #H
#define ATTENTION_R32                                                                              \
    ATTENTION_R8(0, 1, 2, 3, 4, 5, 6, 7)                                                           \
    ", " ATTENTION_R8(8, 9, 10, 11, 12, 13, 14, 15) ", " ATTENTION_R8(                             \
        16, 17, 18, 19, 20, 21, 22, 23) ", " ATTENTION_R8(24, 25, 26, 27, 28, 29, 30, 31)
#define ATTENTION_R40 ATTENTION_R32 ", " ATTENTION_R8(32, 33, 34, 35, 36, 37, 38, 39)
#define ATTENTION_R64                                                                              \
    ATTENTION_R40 ", " ATTENTION_R8(40, 41, 42, 43, 44, 45, 46, 47) ", " ATTENTION_R8(             \
        48, 49, 50, 51, 52, 53, 54, 55) ", " ATTENTION_R8(56, 57, 58, 59, 60, 61, 62, 63)
#define ATTENTION_R128                                                                                                                   \
    ATTENTION_R64 ", " ATTENTION_R8(64, 65, 66, 67, 68, 69, 70, 71) ", " ATTENTION_R8(72, 73, 74, 75, 76, 77, 78, 79) ", " ATTENTION_R8( \
        80,                                                                                                                              \
        81,                                                                                                                              \
        82,                                                                                                                              \
        83,                                                                                                                              \
        84,                                                                                                                              \
        85,                                                                                                                              \
        86,                                                                                                                              \
        87) ", " ATTENTION_R8(88,                                                                                                        \
                              89,                                                                                                        \
                              90,                                                                                                        \
                              91,                                                                                                        \
                              92,                                                                                                        \
                              93,                                                                                                        \
                              94,                                                                                                        \
                              95) ", " ATTENTION_R8(96,                                                                                  \
                                                    97,                                                                                  \
                                                    98,                                                                                  \
                                                    99,                                                                                  \
                                                    100,                                                                                 \
                                                    101,                                                                                 \
                                                    102,                                                                                 \
                                                    103) ", " ATTENTION_R8(104,                                                          \
                                                                           105,                                                          \
                                                                           106,                                                          \
                                                                           107,                                                          \
                                                                           108,                                                          \
                                                                           109,                                                          \
                                                                           110,                                                          \
                                                                           111) ", " ATTENTION_R8(112,                                   \
                                                                                                  113,                                   \
                                                                                                  114,                                   \
                                                                                                  115,                                   \
                                                                                                  116,                                   \
                                                                                                  117,                                   \
                                                                                                  118,                                   \
                                                                                                  119) ", " ATTENTION_R8(120,            \
                                                                                                                         121,            \
                                                                                                                         122,            \
                                                                                                                         123,            \
                                                                                                                         124,            \
                                                                                                                         125,            \
                                                                                                                         126,            \
                                                                                                                         127)

#define ATTENTION_C8(I)                                                                            \
    "+f"(c[I]), "+f"(c[I + 1]), "+f"(c[I + 2]), "+f"(c[I + 3]), "+f"(c[I + 4]), "+f"(c[I + 5]),    \
        "+f"(c[I + 6]), "+f"(c[I + 7])
#define ATTENTION_C32 ATTENTION_C8(0), ATTENTION_C8(8), ATTENTION_C8(16), ATTENTION_C8(24)
#define ATTENTION_C40 ATTENTION_C32, ATTENTION_C8(32)
#define ATTENTION_C64 ATTENTION_C40, ATTENTION_C8(40), ATTENTION_C8(48), ATTENTION_C8(56)
#define ATTENTION_C128                                                                             \
    ATTENTION_C64, ATTENTION_C8(64), ATTENTION_C8(72), ATTENTION_C8(80), ATTENTION_C8(88),         \
        ATTENTION_C8(96), ATTENTION_C8(104), ATTENTION_C8(112), ATTENTION_C8(120)

// P0 ... P4 are the numbers of the operands after the REGS accumulators. The right operand is
// [column, k] for two tiles in shared memory and [k, column] for a left one in registers; both
// tiles begin with k for a product of columns.
#define ATTENTION_PRODUCT(NUMBER, TYPE, N, REGS, P0, P1, P2, P3, P4, P5)                           \
    template <>                                                                                    \
    struct Product<NUMBER, N> {                                                                    \
        static __device__ __forceinline__ void                                                     \
        shared_by_shared(float (&c)[REGS], std::uint64_t a, std::uint64_t b, int add) {            \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P2 ", 0;\n"                         \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE           \
                         " {" ATTENTION_R##REGS "}, %" #P0 ", %" #P1 ", p, 1, 1, 0, 0;\n}"         \
                         : ATTENTION_C##REGS                                                       \
                         : "l"(a), "l"(b), "r"(add)                                                \
                         : "memory");                                                              \
        }                                                                                          \
        static __device__ __forceinline__ void                                                     \
        columns_by_columns(float (&c)[REGS], std::uint64_t a, std::uint64_t b, int add) {          \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P2 ", 0;\n"                         \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE           \
                         " {" ATTENTION_R##REGS "}, %" #P0 ", %" #P1 ", p, 1, 1, 1, 1;\n}"         \
                         : ATTENTION_C##REGS                                                       \
                         : "l"(a), "l"(b), "r"(add)                                                \
                         : "memory");                                                              \
        }                                                                                          \
        static __device__ __forceinline__ void                                                     \
        registers_by_shared(float (&c)[REGS], const std::uint32_t* a, std::uint64_t b, int add) {  \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P5 ", 0;\n"                         \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE           \
                         " {" ATTENTION_R##REGS "}, {%" #P0 ", %" #P1 ", %" #P2 ", %" #P3          \
                                                "}, %" #P4 ", p, 1, 1, 1;\n}"                      \
                         : ATTENTION_C##REGS                                                       \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add)            \
                         : "memory");                                                              \
        }                                                                                          \
    };

#define ATTENTION_PRODUCTS(NUMBER, TYPE)                                                           \
    ATTENTION_PRODUCT(NUMBER, TYPE, 64, 32, 32, 33, 34, 35, 36, 37)                                \
    ATTENTION_PRODUCT(NUMBER, TYPE, 80, 40, 40, 41, 42, 43, 44, 45)                                \
    ATTENTION_PRODUCT(NUMBER, TYPE, 128, 64, 64, 65, 66, 67, 68, 69)                               \
    ATTENTION_PRODUCT(NUMBER, TYPE, 256, 128, 128, 129, 130, 131, 132, 133)

ATTENTION_PRODUCTS(Float16, "f16")
ATTENTION_PRODUCTS(BFloat16, "bf16")

template <int kRegisters>
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

} // namespace attention
