// 16 pairs of bfloat16 in a register of AVX-512, as the bfloat16 instructions multiply them.
#pragma once

#include <immintrin.h>

#include "core/dtype.h"
#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

using Pairs = __m512i;  // 16 pairs of bfloat16

// out[i] = 16 pairs along k of row i; zeros beyond `rows` and `depth` (<= 16 and <= 32).
ROOFLAB_INLINE void load_rows(Pairs* out, const BFloat16* x, int64_t row, int64_t rows, int64_t depth) {
  const __mmask32 mask = depth >= 32 ? ~0u : (1u << depth) - 1;
  for (int64_t i = 0; i < 16; ++i) out[i] = i < rows ? _mm512_maskz_loadu_epi16(mask, x + i * row) : Pairs{};
}

// out[q] = for each of 16 columns the pair of rows 2q and 2q + 1 of k; zeros beyond `depth` and `columns`.
ROOFLAB_INLINE void zip_rows(Pairs* out, const BFloat16* x, int64_t row, int64_t depth, int64_t columns) {
  const __mmask16 mask = static_cast<__mmask16>(columns >= 16 ? 0xffffu : (1u << columns) - 1);
  const auto line = [&](int64_t p) __attribute__((always_inline)) {
    if (p >= depth) return Pairs{};
    return _mm512_maskz_cvtepu16_epi32(-1, _mm256_maskz_loadu_epi16(mask, x + p * row));
  };
  for (int64_t q = 0; q < 16; ++q)
    out[q] = _mm512_or_si512(line(2 * q), _mm512_maskz_slli_epi32(-1, line(2 * q + 1), 16));
}

// block[i][j] <-> block[j][i]: four rounds, each swapping one bit of the row's number with the same bit of the lane's.
ROOFLAB_INLINE void transpose(Pairs* block) {
  alignas(64) static constexpr int kLane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Pairs lane = _mm512_load_si512(kLane);
#pragma GCC unroll 4
  for (int bit = 1; bit < 16; bit *= 2) {
    const __mmask16 high = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(bit));
    const Pairs up = _mm512_add_epi32(lane, _mm512_set1_epi32(bit));
    const Pairs down = _mm512_add_epi32(lane, _mm512_set1_epi32(16 - bit));  // from the other row
    const Pairs first = _mm512_mask_blend_epi32(high, lane, down);
    const Pairs second = _mm512_mask_blend_epi32(high, up, _mm512_add_epi32(lane, _mm512_set1_epi32(16)));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i & bit) continue;
      const Pairs a = block[i], b = block[i + bit];
      block[i] = _mm512_permutex2var_epi32(a, first, b);
      block[i + bit] = _mm512_permutex2var_epi32(a, second, b);
    }
  }
}

ROOFLAB_INLINE void store_pairs(BFloat16* to, Pairs x) { _mm512_storeu_si512(to, x); }

#if defined(__AVX512BF16__)
using Sums = __m512;
ROOFLAB_INLINE Sums no_sums() { return _mm512_setzero_ps(); }
ROOFLAB_INLINE void store_sums(float* to, Sums sums) { _mm512_storeu_ps(to, sums); }
ROOFLAB_INLINE Pairs load_pairs(const BFloat16* p) { return _mm512_loadu_si512(p); }
ROOFLAB_INLINE Pairs everywhere(const BFloat16* pair) {
  int bits;
  __builtin_memcpy(&bits, pair, 4);
  return _mm512_set1_epi32(bits);
}
// sums + both products of each pair
ROOFLAB_INLINE Sums add_products(Sums sums, Pairs a, Pairs b) {
  return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
}
#endif

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
