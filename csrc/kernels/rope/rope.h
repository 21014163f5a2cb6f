// rope: rotary position embedding in its rotate-half form. The two halves of a head are the coordinates of D_h / 2
// points in the plane, and a token's position rotates each of them by its own angle. With h = D_h / 2, for i < h:
//
//   y[i]     = x[i] cos[i] - x[i + h] sin[i]
//   y[i + h] = x[i + h] cos[i + h] + x[i] sin[i + h]
//
// The tables of cos and sin are inputs, because all layers and heads of a model share them.
//
// FLOPs: 3 per element. Compulsory bytes: x, cos and sin read once, y written once. Roof: memory bandwidth.
// Source: Su et al., RoFormer (arXiv:2104.09864); the order of halves is that of GPT-NeoX and Hugging Face.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/attention/attention.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct RopeArgs {
  const void* x;    // (B, H, L, D_h), elements of a row adjacent
  const void* cos;  // (B, L, D_h), with a head stride of 0
  const void* sin;
  void* y;  // (B, H, L, D_h)
  int64_t batch, heads, length, head_size;
  AttentionStrides x_strides, cos_strides, sin_strides, y_strides;
  bool is_reverse;  // the transposed rotation, which the gradient needs
  DType dtype;
};

bool rope_cuda_v1_accepts(const RopeArgs&, const Target&);

// For one token of one head: what to read and where to write. Rows are counted as (batch, head, token).
template <class T>
struct RopeRow {
  const T *x, *cos, *sin;
  T* y;

  ROOFLAB_HOST_DEVICE RopeRow(const RopeArgs& args, int64_t row) {
    const int64_t token = row % args.length, head = row / args.length % args.heads, b = row / args.length / args.heads;
    const auto at = [&](const AttentionStrides& strides) {
      return b * strides.batch + head * strides.head + token * strides.token;
    };
    x = static_cast<const T*>(args.x) + at(args.x_strides);
    cos = static_cast<const T*>(args.cos) + at(args.cos_strides);
    sin = static_cast<const T*>(args.sin) + at(args.sin_strides);
    y = static_cast<T*>(args.y) + at(args.y_strides);
  }
};

// Rotates one point. S: the type computed in. The transposed rotation exchanges the two sines and their signs.
template <class S>
struct RopePoint {
  S first, second;
};
template <class S>
ROOFLAB_HOST_DEVICE RopePoint<S> rope_point(S a, S b, S cos_a, S cos_b, S sin_a, S sin_b, bool is_reverse) {
  if (is_reverse) return {a * cos_a + b * sin_b, b * cos_b - a * sin_a};
  return {a * cos_a - b * sin_a, b * cos_b + a * sin_b};
}

extern const Ladder<RopeArgs> rope_ladder;

}  // namespace rooflab::kernels
