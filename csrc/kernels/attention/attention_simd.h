// What attention's vectorised rungs share; included by files that are compiled per instruction set. All their products
// run through one register tile, and all their exponentials are powers of two.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/common/float_element_simd.h"
#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int64_t kLanes = kNativeBytes / 4, kVectors = 2, kWidth = kVectors * kLanes;  // floats in a row of sums
constexpr int64_t kTileRows = kRegisters == 32 ? 12 : 6;  // with kVectors registers each, they fill the register file
constexpr float kInfinity = __builtin_inff(), kLog2E = 1.44269504f;

// Hands out a worker's memory, each part starting on a cache line; without memory it only counts.
struct Scratch {
  float* data;
  int64_t floats = 0;

  float* take(int64_t count) {
    float* taken = data ? data + floats : nullptr;
    floats += round_up(count, 16);
    return taken;
  }
};

// One row of sums.
struct Row {
  NativeFloat vector[kVectors];
  ROOFLAB_INLINE NativeFloat& operator[](int64_t v) { return vector[v]; }
  ROOFLAB_INLINE const NativeFloat& operator[](int64_t v) const { return vector[v]; }
};

// One element as a float.
ROOFLAB_INLINE float element(const float* p) { return *p; }
template <class T>
ROOFLAB_INLINE float element(const T* p) {
  float value[F32x16::kLanes];
  store<float>(value, load<T>(p, 1));
  return value[0];
}

// y[i] = factor * x[i] for i < n.
template <class Y, class X>
ROOFLAB_INLINE void convert_row(Y* y, const X* x, int64_t n, float factor = 1) {
  int64_t i = 0;
  for (; i + F32x16::kLanes <= n; i += F32x16::kLanes) store<Y>(y + i, load<X>(x + i) * factor);
  if (i < n) store<Y>(y + i, load<X>(x + i, n - i) * factor, n - i);
}

// Loads a row of the mask, from element `at` on, as the numbers that masked() takes.
template <class T>
inline void load_mask(const AttentionArgs& args, int64_t at, int64_t keys, float* bias) {
  const int64_t step = args.mask_strides[3];
  if (args.mask_is_bool) {
    const char* mask = static_cast<const char*>(args.mask) + at;
    for (int64_t j = 0; j < keys; ++j) bias[j] = mask[j * step] ? 0.0f : -kInfinity;
  } else if (step == 1) {
    convert_row(bias, static_cast<const T*>(args.mask) + at, keys);
  } else {
    for (int64_t j = 0; j < keys; ++j) bias[j] = element(static_cast<const T*>(args.mask) + at + j * step);
  }
}
// The score of a pair plus the mask's number; -inf where the mask is -inf, whatever the score.
ROOFLAB_INLINE NativeFloat masked(NativeFloat score, NativeFloat bias) {
  const NativeFloat hidden = NativeFloat{} - kInfinity;
  return bias == hidden ? hidden : score + bias;
}

// Sets those of n numbers to -inf whose mask is -inf.
inline void hide_masked(float* x, const float* bias, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = bias[i] == -kInfinity ? -kInfinity : x[i];
}

// exp(score - shift). The difference comes first: both may be large, and then a product with one would be too coarse.
ROOFLAB_INLINE NativeFloat exp_difference(const Exp2& exp2, NativeFloat score, NativeFloat shift) {
  return exp2((score - shift) * kLog2E);
}

// Hides the pairs that causality or the window forbid in a row of scores. `distance` is the query's position minus the
// key's in the first lane; it grows by `step` from lane to lane.
inline void hide(const AttentionArgs& args, float* scores, int64_t distance, int step) {
  const int window = static_cast<int>(smaller(args.window, 1 << 30));
  for (int v = 0; v < kVectors; ++v) {
    NativeInt distances;
    for (int i = 0; i < kLanes; ++i)
      distances[i] = static_cast<int>(distance) + (v * static_cast<int>(kLanes) + i) * step;
    NativeInt hidden = (distances >= window) | (-distances >= window);
    if (args.is_causal) hidden |= distances < 0;
    NativeFloat score;
    read(scores + v * kLanes, score);
    write(scores + v * kLanes, hidden ? NativeFloat{} - kInfinity : score);
  }
}

// Whether x[0 : n) has no infinity and no NaN: then no exponent has all its bits set.
ROOFLAB_INLINE bool all_finite(const float* x, int64_t n) {
  constexpr int kExponent = 0x7f800000;
  int wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong |= (__builtin_bit_cast(int, x[i]) & kExponent) == kExponent;
  return !wrong;
}
template <class T>
ROOFLAB_INLINE bool all_finite(const T* x, int64_t n) {
  constexpr uint16_t kExponent = __is_same(T, Half) ? 0x7c00 : 0x7f80;
  uint16_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong |= (x[i].bits & kExponent) == kExponent;
  return !wrong;
}

template <class T>
bool all_finite(const T* rows, int64_t step, int64_t count, int64_t n) {
  for (int64_t r = 0; r < count; ++r)
    if (!all_finite(rows + r * step, n)) return false;
  return true;
}

// Prefetches a row into L2.
template <class T>
ROOFLAB_INLINE void prefetch_row(const T* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 64 / sizeof(T)) __builtin_prefetch(x + i, 0, 2);
}

// y[i][j] = x[j][i] for i < rows, j < columns.
inline void transpose(float* y, int64_t y_step, const float* x, int64_t x_step, int64_t rows, int64_t columns) {
  typedef float Quad __attribute__((vector_size(16)));
  const int64_t whole_rows = rows & ~int64_t{3}, whole_columns = columns & ~int64_t{3};
  for (int64_t j = 0; j < whole_columns; j += 4)
    for (int64_t i = 0; i < whole_rows; i += 4) {
      Quad in[4], out[4];
      for (int k = 0; k < 4; ++k) __builtin_memcpy(&in[k], x + (j + k) * x_step + i, sizeof(Quad));
      transpose_quads(in, out);
      for (int k = 0; k < 4; ++k) __builtin_memcpy(y + (i + k) * y_step + j, &out[k], sizeof(Quad));
    }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) y[i * y_step + j] = x[j * x_step + i];
}

// Calls f.operator()<n>(first) for groups of n <= kTileRows rows, as equal as possible, that make up [0, rows).
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

// What a register tile's sums are added to: nothing, or the sums already in memory.
struct Overwrite {
  ROOFLAB_INLINE NativeFloat operator()(const float*, int) const { return NativeFloat{}; }
};
struct Accumulate {
  ROOFLAB_INLINE NativeFloat operator()(const float* c, int) const {
    NativeFloat old;
    read(c, old);
    return old;
  }
};
struct Rescale {
  const Row& factor;
  ROOFLAB_INLINE NativeFloat operator()(const float* c, int v) const { return Accumulate{}(c, v) * factor[v]; }
};

// c[i][0 : kWidth) = old(c[i]) + sum over p < depth of a(i, p) b[p * b_step + (0 : kWidth)) for i < kRows. a(i, p) is
// a[i * a_step + p], or a[i + p * a_step] with kColumns, where a column of it is contiguous. Each FMA waits for the one
// before it on the same register. So with few rows, kChains sums take turns along the depth.
template <int kRows, bool kColumns, class B, class Old>
ROOFLAB_INLINE void register_tile(int64_t depth, const float* a, int64_t a_step, const B* b, int64_t b_step, float* c,
                                  int64_t c_step, Old old) {
  constexpr int kChains = kRows == 1 ? 4 : kRows <= 3 ? 2 : 1;
  NativeFloat sums[kChains][kRows][kVectors] = {};
  const int64_t row = kColumns ? 1 : a_step, step = kColumns ? a_step : 1;
  const auto add = [&](int64_t p, auto& chain) __attribute__((always_inline)) {
    NativeFloat columns[kVectors];
    for (int v = 0; v < kVectors; ++v) read(b + p * b_step + v * kLanes, columns[v]);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
      for (int v = 0; v < kVectors; ++v) chain[i][v] += a[i * row + p * step] * columns[v];
  };
  int64_t p = 0;
  for (; p + kChains <= depth; p += kChains)
#pragma GCC unroll 4
    for (int n = 0; n < kChains; ++n) add(p + n, sums[n]);
  for (; p < depth; ++p) add(p, sums[0]);
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) {
      for (int n = 1; n < kChains; ++n) sums[0][i][v] += sums[n][i][v];
      float* out = c + i * c_step + v * kLanes;
      write(out, old(out, v) + sums[0][i][v]);
    }
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
