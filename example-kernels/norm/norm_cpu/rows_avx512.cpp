// SPDX-License-Identifier: Apache-2.0
//
// The row loops for AVX-512. No flag is needed, so that the file is empty elsewhere.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")

// The intrinsics of g++ 12 use values that they leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <cstdint>
#include <immintrin.h>

namespace rownorm {
namespace {

constexpr int kWidth = 16;

inline __m512 widen_half(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

template <typename Floats>
inline void narrow_half(std::uint16_t* p, const Floats& v) {
    const __m256i half = _mm512_cvtps_ph(reinterpret_cast<const __m512&>(v),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), half);
}

inline __m512 widen_bfloat(const std::uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
}

// The lower halves of words whose upper halves are 0.
template <typename Words>
inline void narrow_words(std::uint16_t* p, const Words& v) {
    const __m256i half = _mm512_cvtepi32_epi16(reinterpret_cast<const __m512i&>(v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), half);
}

} // namespace
} // namespace rownorm

#include "rows_simd.h"

const rownorm::RowLoops& rownorm::row_loops_avx512() {
    return kLoops;
}
#endif
