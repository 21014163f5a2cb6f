// triangle: a matrix, or a batch of them, in which everything above (tril) or below (triu) a diagonal is zero.
//
// Ladder, CPU:
//   v0_reference   one thread, one element at a time
//   v1_parallel    all threads, one row each; the kept part is copied at once where it is contiguous
// Ladder, CUDA:
//   v0_reference   one thread per element
//
// FLOPs: none. Compulsory bytes: the kept elements read once, all elements written once. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/shape.h"

namespace rooflab::kernels {

struct TriangleArgs {
  const void* x;
  void* y;  // contiguous
  int64_t count;
  int ndim;  // the last two dimensions are rows and columns
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];  // of x, in elements
  int64_t diagonal;           // the columns up to row + diagonal are kept, or those from there on
  bool upper;
  DType dtype;
};

void triangle_cpu_v0_reference(const TriangleArgs&, Queue&);
void triangle_cpu_v1_parallel(const TriangleArgs&, Queue&);
[[gnu::weak]] void triangle_cuda_v0_reference(const TriangleArgs&, Queue&);

}  // namespace rooflab::kernels
