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
  static constexpr int64_t kMr = 14, kNr = 32, kKStep = 32, kKc = 512, kMc = 24 * kMr, kNc = 2048;

  static void pack_a(BFloat16* panel, const BFloat16* a, int64_t row, int64_t col, int64_t depth, int64_t rows) {
    pack_a_pairs<kMr>(panel, a, row, col, depth, rows);
  }
  static void pack_b(BFloat16* panel, const BFloat16* b, int64_t row, int64_t col, int64_t depth, int64_t columns) {
    pack_b_pairs(panel, b, row, col, depth, columns);
  }

  static void tile(int64_t rows, int64_t depth, const BFloat16* a, int64_t, int64_t, const BFloat16* b, int64_t,
                   float* c, int64_t c_step, bool) {
    if (rows > 8) return rows_tile<14>(depth, a, b, c, c_step);
    if (rows > 4) return rows_tile<8>(depth, a, b, c, c_step);
    rows_tile<4>(depth, a, b, c, c_step);
  }

  template <int kRows>
  static void rows_tile(int64_t depth, const BFloat16* a, const BFloat16* b, float* c, int64_t c_step) {
    Sums sums[kRows][2];
    for (int i = 0; i < kRows; ++i) sums[i][0] = sums[i][1] = no_sums();
    for (int64_t p = 0; p < depth; p += 32, a += 32 * kMr)
      for (int64_t q = 0; q < 32; q += 2, b += 64) {
        const Pairs left = load_pairs(b), right = load_pairs(b + 32);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
          const Pairs both = everywhere(a + i * 32 + q);
          sums[i][0] = add_products(sums[i][0], both, left);
          sums[i][1] = add_products(sums[i][1], both, right);
        }
      }
    for (int i = 0; i < kRows; ++i) {
      store_sums(c + i * c_step, sums[i][0]);
      store_sums(c + i * c_step + 16, sums[i][1]);
    }
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
