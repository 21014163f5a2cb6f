// matmul_cpu_v4_bf16_dot on aarch64: the loops of matmul_packed.h around BFMMLA (FEAT_BF16), which takes four steps of
// k at once and makes 2 x 2 sums: four times the products of an FMA, from operands half as large. Subnormals count as
// zero, because the instruction is defined that way.
//   A panel: for each 4 of k: kMr quads, one of each row      B panel: for each 4 of k: kNr quads, one of each column
// 24 registers of sums, 4 of A and one of B: ten loads for 24 instructions.
#define ROOFLAB_ISA isa_neon_bf16
#define ROOFLAB_SIMD "kernels/common/simd/neon.h"
#include "kernels/common/simd/neon_quads.h"
#include "kernels/matmul/matmul_packed.h"

namespace rooflab::kernels {
namespace ROOFLAB_ISA {
namespace {

struct MmlaKernel {
  using T = BFloat16;
  using Acc = float;
  using Packed = BFloat16;
  struct Session {};
  static constexpr bool kDirect = false;
  static constexpr int64_t kDirectRows = 0, kDirectColumns = 0;
  static constexpr int64_t kMr = 8, kNr = 12, kKStep = 4, kKc = 1024, kMc = 16 * kMr, kNc = 2048;

  static void pack_a(BFloat16* panel, const BFloat16* a, int64_t row, int64_t col, int64_t depth, int64_t rows) {
    pack<kMr>(panel, a, row, col, depth, rows);
  }
  static void pack_b(BFloat16* panel, const BFloat16* b, int64_t row, int64_t col, int64_t depth, int64_t columns) {
    pack<kNr>(panel, b, col, row, depth, columns);
  }

  // Quad i of four steps p of k is x[i * stride + p * step]; zeros beyond `width` and `depth`.
  template <int64_t kWidth>
  static void pack(BFloat16* panel, const BFloat16* x, int64_t stride, int64_t step, int64_t depth, int64_t width) {
    for (int64_t p = 0; p < depth; p += 4, x += 4 * step, panel += 4 * kWidth) {
      const int64_t steps = smaller(4, depth - p);
      int64_t i = 0;
      if (steps == 4 && step == 1)
        for (; i < width; ++i) __builtin_memcpy(static_cast<void*>(panel + 4 * i), x + i * stride, 8);
      else if (steps == 4 && stride == 1)
        for (; i + 4 <= width; i += 4) zip_4_rows(panel + 4 * i, x + i, step);
      for (; i < kWidth; ++i)
        for (int64_t q = 0; q < 4; ++q)
          panel[4 * i + q].bits = i < width && q < steps ? x[i * stride + q * step].bits : 0;
    }
  }

  static void tile(int64_t rows, int64_t, int64_t depth, const BFloat16* a, int64_t, int64_t, const BFloat16* b,
                   int64_t, float* c, int64_t c_step, bool) {
    if (rows > 4) return pairs_tile<4>(depth, a, b, c, c_step);
    if (rows > 2) return pairs_tile<2>(depth, a, b, c, c_step);
    pairs_tile<1>(depth, a, b, c, c_step);
  }

  template <int kPairs>
  static void pairs_tile(int64_t depth, const BFloat16* a, const BFloat16* b, float* c, int64_t c_step) {
    constexpr int kColumns = kNr / 2;
    Sums sums[kPairs][kColumns];
    for (auto& row : sums)
      for (Sums& sum : row) sum = no_sums();
    for (int64_t p = 0; p < depth; p += 4, a += 4 * kMr, b += 4 * kNr) {
      TwoQuads rows[kPairs];
      for (int i = 0; i < kPairs; ++i) rows[i] = load_quads(a + 8 * i);
#pragma GCC unroll 6
      for (int j = 0; j < kColumns; ++j) {
        const TwoQuads columns = load_quads(b + 8 * j);
        for (int i = 0; i < kPairs; ++i) sums[i][j] = add_products(sums[i][j], rows[i], columns);
      }
    }
    for (int i = 0; i < kPairs; ++i)
      for (int j = 0; j < kColumns; j += 2) store_sums(c + 2 * i * c_step + 2 * j, c_step, sums[i][j], sums[i][j + 1]);
  }
};

}  // namespace
}  // namespace ROOFLAB_ISA

void matmul_cpu_v4_bf16_dot(const MatmulArgs& args, Queue& queue) {
  ROOFLAB_ISA::PackedMatmul<ROOFLAB_ISA::MmlaKernel>::run(args, queue);
}

Footprint matmul_cpu_v4_footprint(const MatmulArgs& args, const Target& target) {
  return ROOFLAB_ISA::PackedMatmul<ROOFLAB_ISA::MmlaKernel>::footprint(args, target);
}

}  // namespace rooflab::kernels
