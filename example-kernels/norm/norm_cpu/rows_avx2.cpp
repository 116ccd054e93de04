// SPDX-License-Identifier: Apache-2.0
//
// The row loops for AVX2 (with F16C). No flag is needed, so that the file is empty elsewhere.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,f16c")

// The intrinsics of g++ 12 use values that they leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <cstdint>
#include <immintrin.h>

namespace rownorm {
namespace {

constexpr int kWidth = 8;

inline __m256 widen_half(const std::uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

template <typename Floats>
inline void narrow_half(std::uint16_t* p, const Floats& v) {
    const __m128i half = _mm256_cvtps_ph(reinterpret_cast<const __m256&>(v),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), half);
}

inline __m256 widen_bfloat(const std::uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}

// The lower halves of words whose upper halves are 0.
template <typename Words>
inline void narrow_words(std::uint16_t* p, const Words& v) {
    const __m256i pairs = _mm256_packus_epi32(reinterpret_cast<const __m256i&>(v), __m256i{});
    const __m128i half = _mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), half);
}

} // namespace
} // namespace rownorm

#include "rows_simd.h"

const rownorm::RowLoops& rownorm::row_loops_avx2() {
    return kLoops;
}
#endif
