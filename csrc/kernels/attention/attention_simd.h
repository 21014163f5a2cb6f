// What attention's vectorised rungs share; included by files that are compiled per instruction set. All their products
// run through one register tile (multiply), and all their exponentials are powers of two: scores are kept in units of
// log 2, so exp(x) needs no multiplication.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int64_t kLanes = kNativeBytes / 4, kVectors = 2, kWidth = kVectors * kLanes;  // floats of a row of sums
constexpr int64_t kTileRows = kNativeBytes == 64 ? 12 : 6;  // with kVectors registers each, they fill the register file
constexpr float kInfinity = __builtin_inff(), kLog2E = 1.44269504f, kLn2 = 0.693147181f;

inline int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
inline int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }
inline int64_t parts_of(int64_t total, int64_t limit) { return (total + limit - 1) / limit; }
inline int64_t round_up(int64_t x, int64_t multiple) { return parts_of(x, multiple) * multiple; }

// 2^x for x <= 0, to 2 ulp; 0 for x < -125, -inf too. A polynomial on [-1/2, 1/2], fitted by weighted minimax.
ROOFLAB_INLINE NativeFloat exp2_negative(NativeFloat x) {
  const NativeFloat zero = {};
  const NativeFloat shifted = x + 0x1.8p23f;  // rounds to an integer, held in the low bits
  const NativeFloat r = x - (shifted - 0x1.8p23f);
  NativeFloat p = zero + 0.00132647273f;
  p = native_fma(p, r, zero + 0.00967151299f);
  p = native_fma(p, r, zero + 0.0555073358f);
  p = native_fma(p, r, zero + 0.240222424f);
  p = native_fma(p, r, zero + 0.693147004f);
  p = native_fma(p, r, zero + 1.0f);
  const NativeFloat power = (NativeFloat)((NativeInt)p + ((NativeInt)shifted << 23));
  return x < zero - 125.0f ? zero : power;
}

// One element as a float.
ROOFLAB_INLINE float element(const float* p) { return *p; }
template <class T>
ROOFLAB_INLINE float element(const T* p) {
  float value[F32x16::kLanes];
  store<float>(value, load<T>(p, 1));
  return value[0];
}

// y[i] = factor * x[i] for i < n.
template <class T>
ROOFLAB_INLINE void convert_row(float* y, const T* x, int64_t n, float factor = 1) {
  int64_t i = 0;
  for (; i + F32x16::kLanes <= n; i += F32x16::kLanes) store<float>(y + i, load<T>(x + i) * factor);
  if (i < n) store<float>(y + i, load<T>(x + i, n - i) * factor, n - i);
}

// y[i][j] = x[j][i] for i < rows, j < columns.
inline void transpose(float* y, int64_t y_step, const float* x, int64_t x_step, int64_t rows, int64_t columns) {
  typedef float Quad __attribute__((vector_size(16)));
  const int64_t whole_rows = rows & ~int64_t{3}, whole_columns = columns & ~int64_t{3};
  for (int64_t j = 0; j < whole_columns; j += 4)
    for (int64_t i = 0; i < whole_rows; i += 4) {
      Quad in[4], out[4];
      for (int k = 0; k < 4; ++k) __builtin_memcpy(&in[k], x + (j + k) * x_step + i, sizeof(Quad));
      const Quad low02 = __builtin_shufflevector(in[0], in[2], 0, 4, 1, 5);
      const Quad low13 = __builtin_shufflevector(in[1], in[3], 0, 4, 1, 5);
      const Quad high02 = __builtin_shufflevector(in[0], in[2], 2, 6, 3, 7);
      const Quad high13 = __builtin_shufflevector(in[1], in[3], 2, 6, 3, 7);
      out[0] = __builtin_shufflevector(low02, low13, 0, 4, 1, 5);
      out[1] = __builtin_shufflevector(low02, low13, 2, 6, 3, 7);
      out[2] = __builtin_shufflevector(high02, high13, 0, 4, 1, 5);
      out[3] = __builtin_shufflevector(high02, high13, 2, 6, 3, 7);
      for (int k = 0; k < 4; ++k) __builtin_memcpy(y + (i + k) * y_step + j, &out[k], sizeof(Quad));
    }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) y[i * y_step + j] = x[j * x_step + i];
}

// Calls f.operator()<n>(first) for the groups of n <= kTileRows rows, as even as can be, that make up [0, rows).
template <int kRows = kTileRows, class F>
ROOFLAB_INLINE void with_rows(int64_t rows, F f) {
  if constexpr (kRows > 1)
    if (rows < kRows) return with_rows<kRows - 1>(rows, f);
  f.template operator()<kRows>();
}
template <class F>
ROOFLAB_INLINE void for_row_groups(int64_t rows, F f) {
  const int64_t groups = parts_of(rows, kTileRows);
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = rows * g / groups, end = rows * (g + 1) / groups;
    with_rows(
        end - first, [&]<int kRows>() __attribute__((always_inline)) { f.template operator()<kRows>(first); });
  }
}

// c[i][0 : kWidth) = old(c[i]) + sum over p < depth of a(i, p) b[p * b_step + (0 : kWidth)) for i < kRows. a(i, p) is
// a[i * a_step + p] or, where kColumns says that a column of it is contiguous, a[i + p * a_step].
template <int kRows, bool kColumns, class Old>
ROOFLAB_INLINE void register_tile(int64_t depth, const float* a, int64_t a_step, const float* b, int64_t b_step,
                                  float* c, int64_t c_step, Old old) {
  NativeFloat sums[kRows][kVectors] = {};
  const int64_t row = kColumns ? 1 : a_step, step = kColumns ? a_step : 1;
  for (int64_t p = 0; p < depth; ++p, a += step, b += b_step) {
    NativeFloat columns[kVectors];
    for (int v = 0; v < kVectors; ++v) read(b + v * kLanes, columns[v]);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
      for (int v = 0; v < kVectors; ++v) sums[i][v] += a[i * row] * columns[v];
  }
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) {
      float* out = c + i * c_step + v * kLanes;
      write(out, old(out, v) + sums[i][v]);
    }
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
