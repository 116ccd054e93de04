// SPDX-License-Identifier: Apache-2.0
//
// The loops for AVX-512. No flag is needed, so that the file is empty elsewhere.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")

// The intrinsics of g++ 12 use values that they leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <cstdint>
#include <immintrin.h>

namespace activation {
namespace {

constexpr int kWidth = 16;
typedef float Floats __attribute__((vector_size(4 * kWidth)));
typedef std::uint32_t Words __attribute__((vector_size(4 * kWidth)));

inline Floats multiply_add(Floats a, Floats b, Floats c) {
    return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

inline Floats widen_half(const std::uint16_t* p) {
    return (Floats)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

inline void narrow_half(std::uint16_t* p, Floats v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline Floats round_half(Floats v) {
    return (Floats)_mm512_cvtph_ps(
        _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline Words widen_words(const std::uint16_t* p) {
    return (Words)_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// The lower halves of words whose upper halves are 0.
inline void narrow_words(std::uint16_t* p, Words v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16((__m512i)v));
}

} // namespace
} // namespace activation

#include "loops_simd.h"

const activation::Loops& activation::loops_avx512() {
    return kLoops;
}
#endif
