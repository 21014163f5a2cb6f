// scatter_add: y[place(i) + index[i] * step] += src[i], the reverse of gather and its gradient. y holds what is added
// to before. A kernel adds 16-bit numbers into float32; the op rounds the sums at the end.
// An index outside [0, limit) is refused on the CPU; a GPU leaves its element out.
//
// Ladder, CPU (elements that meet are added in their order: the same bits on every run):
//   v0_reference   one thread, an element at a time
//   v1_parallel    all threads; they share a dimension along which no two elements meet
// Ladder, CUDA:
//   v0_reference   a thread an element, atomic additions: the order, and so the last bits, may differ between runs
//
// FLOPs: 1 an element of src. Compulsory bytes: what is added to, the index and src read once, y written once.
// Roof: memory bandwidth; atomics on one place where many indices are equal.
#pragma once

#include "kernels/gather/gather.h"

namespace rooflab::kernels {

struct ScatterAddArgs {
  IndexLayout at;
  const void* src;
  int64_t src_strides[kMaxDims];
  void* y;
  int64_t y_strides[kMaxDims];  // 0 along the scattered dimension
  DType dtype;                  // of src: floating, int64 or int32; y is float32 for 16 bits, else of dtype
};

void scatter_add_cpu_v0_reference(const ScatterAddArgs&, Queue&);
void scatter_add_cpu_v1_parallel(const ScatterAddArgs&, Queue&);
[[gnu::weak]] void scatter_add_cuda_v0_reference(const ScatterAddArgs&, Queue&);

}  // namespace rooflab::kernels
