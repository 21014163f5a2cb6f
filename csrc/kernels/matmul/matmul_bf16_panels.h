// Packing for the bfloat16 instructions, which multiply pairs of neighbours along k and add both products to one float.
//   A panel: for each 32 of k: kMr rows of 32 elements (64 bytes)     the pairs of a row in order
//   B panel: for each 2 of k:  kNr = 32 columns of one pair (128 bytes)
// Both consist of blocks of 16 x 16 pairs. A block is read either with its pairs already adjacent along k (load_rows),
// or by zipping two rows of k together (zip_rows). If that has the wrong orientation for the panel, it is transposed.
#pragma once

#include "kernels/common/simd/avx512_pairs.h"
#include "kernels/matmul/matmul_packed.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Any strides, one element at a time.
ROOFLAB_INLINE void gather_rows(Pairs* out, const BFloat16* x, int64_t row, int64_t col, int64_t rows, int64_t depth) {
  alignas(64) BFloat16 block[16 * 32];
  __builtin_memset(static_cast<void*>(block), 0, sizeof(block));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t p = 0; p < depth; ++p) block[i * 32 + p].bits = x[i * row + p * col].bits;
  load_rows(out, block, 32, 16, 32);
}

// block[i] = the pairs along k of row (or column) i, for up to 16 of them and 32 of k.
ROOFLAB_INLINE void read_block(Pairs* block, const BFloat16* x, int64_t stride, int64_t step, int64_t width,
                               int64_t depth) {
  if (step == 1) return load_rows(block, x, stride, width, depth);
  if (stride != 1) return gather_rows(block, x, stride, step, width, depth);
  zip_rows(block, x, step, depth, width);
  transpose(block);
}

template <int64_t kMr>
void pack_a_pairs(BFloat16* panel, const BFloat16* a, int64_t row, int64_t col, int64_t depth, int64_t rows) {
  Pairs block[16];
  for (int64_t p = 0; p < depth; p += 32)
    for (int64_t i = 0; i < kMr; i += 16) {
      read_block(block, a + i * row + p * col, row, col, larger(0, smaller(16, rows - i)), smaller(32, depth - p));
      for (int64_t r = 0; r < smaller(16, kMr - i); ++r) store_pairs(panel + p * kMr + (i + r) * 32, block[r]);
    }
}

inline void pack_b_pairs(BFloat16* panel, const BFloat16* b, int64_t row, int64_t col, int64_t depth, int64_t columns) {
  Pairs block[16];
  for (int64_t p = 0; p < depth; p += 32)
    for (int64_t j = 0; j < 32; j += 16) {
      const BFloat16* x = b + p * row + j * col;
      const int64_t width = larger(0, smaller(16, columns - j));
      if (col == 1) {
        zip_rows(block, x, row, smaller(32, depth - p), width);
      } else {
        read_block(block, x, col, row, width, smaller(32, depth - p));
        transpose(block);
      }
      for (int64_t q = 0; q < 16; ++q) store_pairs(panel + (p + 2 * q) * 32 + j * 2, block[q]);
    }
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
