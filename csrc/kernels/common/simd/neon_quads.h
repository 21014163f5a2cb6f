// Quads of bfloat16, neighbours along k, as NEON's BFMMLA multiplies them: two rows of four by two columns of four.
#pragma once

#include <arm_neon.h>

#include "core/dtype.h"
#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

using TwoQuads = bfloat16x8_t;
using Sums = float32x4_t;  // of rows 0, 0, 1, 1 and columns 0, 1, 0, 1

ROOFLAB_INLINE Sums no_sums() { return vdupq_n_f32(0); }
ROOFLAB_INLINE TwoQuads load_quads(const BFloat16* p) {
  return vreinterpretq_bf16_u16(vld1q_u16(reinterpret_cast<const uint16_t*>(p)));
}
ROOFLAB_INLINE Sums add_products(Sums sums, TwoQuads rows, TwoQuads columns) {
  return vbfmmlaq_f32(sums, rows, columns);
}
// Writes two rows of four sums.
ROOFLAB_INLINE void store_sums(float* to, int64_t step, Sums left, Sums right) {
  vst1q_f32(to, vcombine_f32(vget_low_f32(left), vget_low_f32(right)));
  vst1q_f32(to + step, vcombine_f32(vget_high_f32(left), vget_high_f32(right)));
}

// to[4 i + q] = x[i + q step] for i, q < 4.
ROOFLAB_INLINE void zip_4_rows(BFloat16* to, const BFloat16* x, int64_t step) {
  const auto* bits = reinterpret_cast<const uint16_t*>(x);
  const uint16x4x4_t rows = {
      {vld1_u16(bits), vld1_u16(bits + step), vld1_u16(bits + 2 * step), vld1_u16(bits + 3 * step)}};
  vst4_u16(reinterpret_cast<uint16_t*>(to), rows);
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
