// SPDX-License-Identifier: Apache-2.0
//
// Copies into shared memory that run by themselves; barriers that count bytes, and writes into the
// shared memory of another block of the cluster (sm_90 and later).
#pragma once

#include "device.cuh"

namespace rownorm {

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

__device__ __forceinline__ unsigned place_in(const void* place, unsigned rank) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(place))), "r"(rank));
    return there;
}

// Writes into the same place of another block of the cluster; its barrier counts the bytes.
__device__ __forceinline__ void
send(float* place, std::uint64_t* barrier, float value, unsigned rank) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                     place_in(place, rank)),
                 "r"(__float_as_uint(value)),
                 "r"(place_in(barrier, rank))
                 : "memory");
}

__device__ __forceinline__ void arrive_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void wait_cluster() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

#endif

} // namespace rownorm
