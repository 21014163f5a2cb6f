// scatter_add: y[place(i) + index[i] * step] += src[i], the reverse of gather and its gradient. At first y holds the
// tensor that is added to. Sums may be kept in a wider dtype than the elements; the op rounds them at the end.
// An index outside [0, limit) raises an error: on the CPU at once, on a GPU, which ignores its element, when the host
// next waits for it. In the gradient of x[index], numbers in [-limit, 0) count from the end.
//
// FLOPs: 1 per element of src. Compulsory bytes: the tensor added to, the index and src read once, y written once.
// Roof: memory bandwidth; where many indices are equal, the atomics on one address bind.
#pragma once

#include "kernels/common/ladder_declaration.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {

struct ScatterAddArgs {
  IndexLayout at;
  const void* src;
  int64_t src_strides[kMaxDims];
  void* y;                      // contiguous
  void* rounded;                // CPU: in place of what y holds, of dtype; sums that change are put back there; or null
  int64_t places;               // the elements of y
  int64_t y_strides[kMaxDims];  // 0 along the scattered dimension
  DType dtype;                  // of src: floating, int64 or int32
  DType sums;                   // of y: for 16 bits float32 or float64, for float32 it or float64, else dtype
};

inline constexpr int64_t kScatterAddShared = 2048;  // the most sums that a GPU's block keeps

extern const Ladder<ScatterAddArgs> scatter_add_ladder;

}  // namespace rooflab::kernels
