// What the CUDA rungs of attention and its backward share: one head's rows in memory, which pairs of query and key see
// each other, and the explicit mask.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

constexpr int kVector = 8;  // 16-bit elements in 16 bytes

// The rows of one head of one batch, in q, k, v, out or a gradient.
template <class T>
struct HeadRows {
  __device__ HeadRows(T* tensor, const AttentionStrides& strides, int64_t batch, int64_t head, int64_t rows,
                      int64_t columns)
      : data(tensor + batch * strides.batch + head * strides.head),
        stride(strides.token),
        rows(static_cast<int>(rows)),
        columns(static_cast<int>(columns)) {}

  __device__ __forceinline__ T* at(int row, int column) const { return data + row * stride + column; }

  // True when vectors of kWidth elements are aligned, and lie wholly inside or wholly outside a row.
  template <int kWidth>
  __device__ __forceinline__ bool has_vectors() const {
    constexpr int kBytes = kWidth * sizeof(T);
    return columns % kWidth == 0 && reinterpret_cast<uintptr_t>(data) % kBytes == 0 && stride * sizeof(T) % kBytes == 0;
  }

  T* data;
  int64_t stride;
  int rows, columns;
};

// Which queries and keys see each other, apart from the explicit mask.
struct Visibility {
  struct Range {
    int begin, end;
  };

  __device__ explicit Visibility(const AttentionArgs& args)
      : q_length(static_cast<int>(args.q_length)),
        kv_length(static_cast<int>(held_keys(args))),
        window(static_cast<int>(args.window < args.q_length + args.kv_length ? args.window
                                                                             : args.q_length + args.kv_length)),
        reach(args.is_causal ? 1 : window),
        is_causal(args.is_causal) {}

  // The keys that query i sees; end <= begin when there are none.
  __device__ __forceinline__ Range keys(int i) const {
    const KeyRange range = visible_keys(i, q_length, kv_length, is_causal, window);
    return {static_cast<int>(range.begin), static_cast<int>(range.end)};
  }

  __device__ __forceinline__ bool sees(int i, int j) const {
    const int ahead = j - (i + kv_length - q_length);
    return j < kv_length && -ahead < window && ahead < reach;
  }

  // The queries that see key j: the same inequalities, solved for the query.
  __device__ __forceinline__ Range queries(int j) const {
    const int beside = j + q_length - kv_length;
    return {max(is_causal ? beside : beside - window + 1, 0), min(beside + window, q_length)};
  }

  // Both bounds of keys() and queries() grow with their argument, so the first and the last row give a tile's bounds.
  // Of `count` rows from `first` on, some may lie past the end.
  __device__ __forceinline__ Range keys_of_tile(int first, int count) const {
    return {keys(first).begin, min(keys(min(first + count, q_length) - 1).end, kv_length)};
  }
  __device__ __forceinline__ Range queries_of_tile(int first, int count) const {
    return {queries(first).begin, queries(min(first + count, kv_length) - 1).end};
  }
  __device__ __forceinline__ bool all_visible(int query, int queries, int key, int keys_count) const {
    return key >= keys(min(query + queries, q_length) - 1).begin && key + keys_count <= keys(query).end;
  }

  int q_length, kv_length, window;
  int reach;  // how many keys a query may see from its own position on, counting that one
  bool is_causal;
};

// The explicit mask of one head of one batch.
template <class T>
struct ExplicitMask {
  __device__ ExplicitMask(const AttentionArgs& args, int64_t batch, int64_t head)
      : data(args.mask), is_bool(args.mask_is_bool), row_stride(args.mask_strides[2]), stride(args.mask_strides[3]) {
    const int64_t offset = batch * args.mask_strides[0] + head * args.mask_strides[1];
    if (data != nullptr) data = static_cast<const char*>(data) + offset * (is_bool ? 1 : sizeof(T));
  }

  __device__ __forceinline__ bool exists() const { return data != nullptr; }

  // The score of a pair inside the matrix, after the mask has hidden it or was added to it.
  __device__ __forceinline__ float apply(float score, int query, int key) const {
    if (data == nullptr) return score;
    const int64_t at = query * row_stride + key * stride;
    if (is_bool) return static_cast<const uint8_t*>(data)[at] ? score : -INFINITY;
    const float bias = to_float(static_cast<const T*>(data)[at]);
    return bias == -INFINITY ? bias : score + bias;  // hides even a score that is NaN
  }

  // What is added to the score of a pair, where there is a mask.
  __device__ __forceinline__ float bias(int query, int key) const {
    const int64_t at = query * row_stride + key * stride;
    if (is_bool) return static_cast<const uint8_t*>(data)[at] ? 0 : -INFINITY;
    return to_float(static_cast<const T*>(data)[at]);
  }

  const void* data;
  bool is_bool;
  int64_t row_stride, stride;
};

__device__ __forceinline__ float exp2_approximate(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// exp(score - shift) in base 2. The difference comes first: both may be near the lowest finite number.
__device__ __forceinline__ float exp_difference(float score, float shift) { return exp2f((score - shift) * kLog2E); }

// A score from a product of rows. The compiler may not fuse this into a later sum: forward and backward must get the
// same number.
__device__ __forceinline__ float scaled(float product, float scale) { return __fmul_rn(product, scale); }

// The row's lse and its rest. Its largest score is `product` times `scale`, and `log_sum` is relative to that.
__device__ __forceinline__ void store_lse(const AttentionArgs& args, int64_t row, float product, float scale,
                                          float log_sum) {
  const float lse = log_sum == -INFINITY ? log_sum : fmaf(product, scale, log_sum);
  args.lse[row] = lse;
  if (args.lse_rest != nullptr) args.lse_rest[row] = isinf(lse) ? 0 : fmaf(product, scale, -lse) + log_sum;
}

// Where exp2(score to_base_2 - shift) has the maximum in base 2 as its shift, the rounding of the shift is an error of
// the row's sum. Above this it would matter, so the maximum is subtracted from the scores themselves.
constexpr float kLargeShift = 1 << 10;

// The log of that error.
__device__ __forceinline__ float rounding_of_shift(float maximum, float to_base_2) {
  const float shift = __fmul_rn(maximum, to_base_2);
  return fabsf(shift) <= kLargeShift ? fmaf(maximum, to_base_2, -shift) * kLn2 : 0;
}

// How the backward pass turns a score into a weight: exp(score - lse - rest), 0 where the query sees no key.
struct WeightShift {
  WeightShift() = default;
  __device__ __forceinline__ WeightShift(float lse, float rest)
      : lse(lse == -INFINITY ? 0 : lse), rest_log2(lse == -INFINITY ? INFINITY : rest * kLog2E) {}

  __device__ __forceinline__ float exponent(float product, float scale) const {
    return fmaf(fmaf(product, scale, -lse), kLog2E, -rest_log2);
  }

  float lse, rest_log2;
};

// Scores stay as the product gives them where possible: then the multiplication that changes to base 2 scales them too.
// An added mask, or a scale that would reverse their order, is applied first.
struct ScoreUnit {
  __device__ explicit ScoreUnit(const AttentionArgs& args)
      : scaled_first((args.mask != nullptr && !args.mask_is_bool) || !(args.scale > 0)),
        first(scaled_first ? args.scale : 1),
        left(scaled_first ? 1 : args.scale),
        to_base_2(left * kLog2E) {}

  bool scaled_first;
  float first, left;  // factors that make a score of a product: before the mask, and after the maximum
  float to_base_2;
};

}  // namespace rooflab::kernels
