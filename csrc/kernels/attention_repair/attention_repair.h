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
  int64_t a_row = 0, b_column = 0, hidden_row = 0;
  for_each_digit(i, 4, args.sizes, [&](int d, int64_t digit) {
    if (d != 3) a_row += digit * args.a_strides[d];
    if (d != 2) b_column += digit * args.b_strides[d];
    if (d != 3) hidden_row += digit * args.hidden_strides[d];
  });
  const T* a = static_cast<const T*>(args.a) + a_row;
  const T* b = static_cast<const T*>(args.b) + b_column;
  const bool* hidden = args.hidden + hidden_row;
  Sum sum = 0;
  for (int64_t k = 0; k < args.k; ++k)
    if (!hidden[k * args.hidden_strides[3]])
      sum += static_cast<Sum>(a[k * args.a_strides[3]]) * static_cast<Sum>(b[k * args.b_strides[2]]);
  return static_cast<T>(sum);
}

extern const Ladder<AttentionRepairArgs> attention_repair_ladder;

}  // namespace rooflab::kernels
