// matmul_cpu_v4_bf16_dot: the loops of matmul_packed.h around vdpbf16ps (AVX512_BF16), which takes two steps of k at
// once: twice the products of an FMA, from operands half as large. Compiled with -mavx512bf16; subnormals count as
// zero, because the instruction is defined that way.
#define ROOFLAB_ISA isa_avx512_bf16
#define ROOFLAB_SIMD "kernels/common/simd/avx512.h"
#include "kernels/matmul/matmul_bf16_panels.h"

namespace rooflab::kernels {
namespace ROOFLAB_ISA {
namespace {

struct DotKernel {
  using T = BFloat16;
  using Acc = float;
  using Packed = BFloat16;
  struct Session {};
  static constexpr bool kDirect = false;
  static constexpr int64_t kDirectRows = 0, kDirectColumns = 0;
  static constexpr int64_t kMr = 14, kNr = 32, kKStep = 32, kKc = 512, kMc = 24 * kMr, kNc = 2048;

  static void pack_a(BFloat16* panel, const BFloat16* a, int64_t row, int64_t col, int64_t depth, int64_t rows) {
    pack_a_pairs<kMr>(panel, a, row, col, depth, rows);
  }
  static void pack_b(BFloat16* panel, const BFloat16* b, int64_t row, int64_t col, int64_t depth, int64_t columns) {
    pack_b_pairs(panel, b, row, col, depth, columns);
  }

  // Columns that fit into one vector take one.
  static void tile(int64_t rows, int64_t columns, int64_t depth, const BFloat16* a, int64_t, int64_t, const BFloat16* b,
                   int64_t, float* c, int64_t c_step, bool) {
    if (columns <= 16) return tile_of<1>(rows, depth, a, b, c, c_step);
    tile_of<2>(rows, depth, a, b, c, c_step);
  }

  template <int kUsed>
  static void tile_of(int64_t rows, int64_t depth, const BFloat16* a, const BFloat16* b, float* c, int64_t c_step) {
    if (rows > 8) return rows_tile<14, kUsed>(depth, a, b, c, c_step);
    if (rows > 4) return rows_tile<8, kUsed>(depth, a, b, c, c_step);
    rows_tile<4, kUsed>(depth, a, b, c, c_step);
  }

  template <int kRows, int kUsed>
  static void rows_tile(int64_t depth, const BFloat16* a, const BFloat16* b, float* c, int64_t c_step) {
    Sums sums[kRows][kUsed];
    for (auto& row : sums)
      for (Sums& sum : row) sum = no_sums();
    for (int64_t p = 0; p < depth; p += 32, a += 32 * kMr)
      for (int64_t q = 0; q < 32; q += 2, b += 64) {
        Pairs columns[kUsed];
        for (int j = 0; j < kUsed; ++j) columns[j] = load_pairs(b + 32 * j);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
          const Pairs both = everywhere(a + i * 32 + q);
          for (int j = 0; j < kUsed; ++j) sums[i][j] = add_products(sums[i][j], both, columns[j]);
        }
      }
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kUsed; ++j) store_sums(c + i * c_step + 16 * j, sums[i][j]);
  }
};

}  // namespace
}  // namespace ROOFLAB_ISA

void matmul_cpu_v4_bf16_dot(const MatmulArgs& args, Queue& queue) {
  ROOFLAB_ISA::PackedMatmul<ROOFLAB_ISA::DotKernel>::run(args, queue);
}

Footprint matmul_cpu_v4_footprint(const MatmulArgs& args, const Target& target) {
  return ROOFLAB_ISA::PackedMatmul<ROOFLAB_ISA::DotKernel>::footprint(args, target);
}

}  // namespace rooflab::kernels
