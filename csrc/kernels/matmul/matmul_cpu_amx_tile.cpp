// matmul_cpu_v5_amx_tile: the loops of matmul_packed.h around AMX, whose registers are tiles of 16 rows of 64 bytes.
// One tdpbf16ps multiplies 16 x 32 by 32 x 16 bfloat16: 8192 products in 16 cycles, 16 times the rate of the FMA units.
// Four tiles hold 32 x 32 sums, so that each loaded tile is used twice. Compiled with -mamx-tile -mamx-bf16; subnormals
// count as zero.
#define ROOFLAB_ISA isa_amx_bf16
#define ROOFLAB_SIMD "kernels/common/simd/avx512.h"
#include "kernels/matmul/matmul_bf16_panels.h"

namespace rooflab::kernels {
namespace ROOFLAB_ISA {
namespace {

struct AmxKernel {
  using T = BFloat16;
  using Acc = float;
  using Packed = BFloat16;
  static constexpr bool kDirect = false;
  static constexpr int64_t kDirectRows = 0, kDirectColumns = 0;
  static constexpr int64_t kMr = 32, kNr = 32, kKStep = 32, kKc = 2048, kMc = 8 * kMr, kNc = 2048;

  // The tile shapes are state of the thread. If they were not released, every switch to another thread would save them.
  struct Session {
    Session() {
      static const struct alignas(64) {
        uint8_t palette = 1, start_row = 0, reserved[14] = {};
        uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
      } config;
      _tile_loadconfig(&config);
    }
    ~Session() { _tile_release(); }
  };

  static void pack_a(BFloat16* panel, const BFloat16* a, int64_t row, int64_t col, int64_t depth, int64_t rows) {
    pack_a_pairs<kMr>(panel, a, row, col, depth, rows);
  }
  static void pack_b(BFloat16* panel, const BFloat16* b, int64_t row, int64_t col, int64_t depth, int64_t columns) {
    pack_b_pairs(panel, b, row, col, depth, columns);
  }

  // Tiles 0-3: sums; 4, 5: upper and lower rows of A; 6, 7: left and right columns of B.
  static void tile(int64_t rows, int64_t, int64_t depth, const BFloat16* a, int64_t, int64_t, const BFloat16* b,
                   int64_t, float* c, int64_t c_step, bool) {
    asm volatile("" ::: "memory");  // GCC is not told that a tile load reads memory
    _tile_zero(0);
    _tile_zero(1);
    if (rows <= 16) {
      for (int64_t p = 0; p < depth; p += 32, a += 32 * kMr, b += 32 * kNr) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 128);
        _tile_loadd(7, b + 32, 128);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
      }
    } else {
      _tile_zero(2);
      _tile_zero(3);
      for (int64_t p = 0; p < depth; p += 32, a += 32 * kMr, b += 32 * kNr) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 128);
        _tile_loadd(7, b + 32, 128);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + 16 * 32, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      _tile_stored(2, c + 16 * c_step, c_step * 4);
      _tile_stored(3, c + 16 * c_step + 16, c_step * 4);
    }
    _tile_stored(0, c, c_step * 4);
    _tile_stored(1, c + 16, c_step * 4);
    asm volatile("" ::: "memory");
  }
};

}  // namespace
}  // namespace ROOFLAB_ISA

void matmul_cpu_v5_amx_tile(const MatmulArgs& args, Queue& queue) {
  ROOFLAB_ISA::PackedMatmul<ROOFLAB_ISA::AmxKernel>::run(args, queue);
}

Footprint matmul_cpu_v5_footprint(const MatmulArgs& args, const Target& target) {
  return ROOFLAB_ISA::PackedMatmul<ROOFLAB_ISA::AmxKernel>::footprint(args, target);
}

}  // namespace rooflab::kernels
