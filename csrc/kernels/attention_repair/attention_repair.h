// attention_repair: y = x, where x = a b is a product in which some pairs are hidden. Where x is NaN, y is the sum over
// the visible pairs alone.
//
// A hidden pair has weight 0 in a. That is not enough where b is NaN or infinite, because 0 times that is NaN.
//
// FLOPs: none are counted; how many sums are repeated depends on the values. Compulsory bytes: x read, y written.
// Roof: memory bandwidth.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/host_device.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/strided.h"

namespace rooflab::kernels {

struct AttentionRepairArgs {
  const void* x;       // (B, H, M, N), contiguous
  const void* a;       // (B, H, M, K)
  const void* b;       // (B, H, K, N)
  const bool* hidden;  // (B, H, M, K)
  void* y;             // (B, H, M, N), contiguous
  int64_t sizes[4];    // B, H, M, N
  int64_t k;
  int64_t a_strides[4], b_strides[4], hidden_strides[4];  // in elements
  DType dtype;
};

// Element i of y.
template <class T>
ROOFLAB_HOST_DEVICE T repaired_element(const AttentionRepairArgs& args, int64_t i) {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const T x = static_cast<const T*>(args.x)[i];
  if (static_cast<Sum>(x) == static_cast<Sum>(x)) return x;  // not NaN
  const int64_t a_row[4] = {args.a_strides[0], args.a_strides[1], args.a_strides[2], 0};
  const int64_t b_column[4] = {args.b_strides[0], args.b_strides[1], 0, args.b_strides[3]};
  const int64_t hidden_row[4] = {args.hidden_strides[0], args.hidden_strides[1], args.hidden_strides[2], 0};
  int64_t at[3] = {};
  add_offsets(i, 4, args.sizes, {a_row, b_column, hidden_row}, at);
  const T* a = static_cast<const T*>(args.a) + at[0];
  const T* b = static_cast<const T*>(args.b) + at[1];
  const bool* hidden = args.hidden + at[2];
  Sum sum = 0;
  for (int64_t k = 0; k < args.k; ++k)
    if (!hidden[k * args.hidden_strides[3]])
      sum += static_cast<Sum>(a[k * args.a_strides[3]]) * static_cast<Sum>(b[k * args.b_strides[2]]);
  return static_cast<T>(sum);
}

extern const Ladder<AttentionRepairArgs> attention_repair_ladder;

}  // namespace rooflab::kernels
