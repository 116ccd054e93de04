// SPDX-License-Identifier: Apache-2.0
//
// The loops for AVX2. No flag is needed, so that the file is empty elsewhere.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,fma,f16c")

#include <cstdint>
#include <immintrin.h>

namespace activation {
namespace {

constexpr int kWidth = 8;
typedef float Floats __attribute__((vector_size(4 * kWidth)));
typedef std::uint32_t Words __attribute__((vector_size(4 * kWidth)));

inline Floats multiply_add(Floats a, Floats b, Floats c) {
    return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

inline Floats widen_half(const std::uint16_t* p) {
    return (Floats)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

inline void narrow_half(std::uint16_t* p, Floats v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline Floats round_half(Floats v) {
    return (Floats)_mm256_cvtph_ps(
        _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline Words widen_words(const std::uint16_t* p) {
    return (Words)_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

// The lower halves of words whose upper halves are 0.
inline void narrow_words(std::uint16_t* p, Words v) {
    const __m256i pairs = _mm256_packus_epi32((__m256i)v, __m256i{});
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08)));
}

} // namespace
} // namespace activation

#include "loops_simd.h"

const activation::Loops& activation::loops_avx2() {
    return kLoops;
}
#endif
