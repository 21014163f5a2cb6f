// sort: the elements along one axis in order, and their places; topk: the first of them alone. The input is viewed as
// (outer, n, inner). Equal elements keep their order; a NaN is larger than any number.
//
// Ladder, CPU:
//   v0_reference   one thread, a line at a time
//   v1_parallel    all threads, a line each
// Ladder, CUDA:
//   v0_reference   a thread an element, which counts the elements before its own: n^2 comparisons a line
//   v1_select      a block a line finds the next element in each of its rounds: n * keep comparisons; keep <= n / 8
//
// FLOPs: none are counted; n log2 n comparisons a line would do. Compulsory bytes: each input element read once, each
// output written once. Roof: memory bandwidth, for what a GPU sorts by radix; these rungs compare.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"

namespace rooflab::kernels {

struct SortArgs {
  const void* x;     // (outer, n, inner)
  void* values;      // (outer, keep, inner), contiguous
  int64_t* indices;  // (outer, keep, inner), contiguous
  int64_t outer, n, inner;
  int64_t outer_stride, n_stride, inner_stride;  // of x, in elements
  int64_t keep;                                  // <= n
  bool descending;
  DType dtype;
};

Footprint sort_cpu_v0_footprint(const SortArgs&, const Target&);
Footprint sort_cpu_v1_footprint(const SortArgs&, const Target&);
bool sort_cuda_v1_accepts(const SortArgs&, const Target&);

void sort_cpu_v0_reference(const SortArgs&, Queue&);
void sort_cpu_v1_parallel(const SortArgs&, Queue&);
[[gnu::weak]] void sort_cuda_v0_reference(const SortArgs&, Queue&);
[[gnu::weak]] void sort_cuda_v1_select(const SortArgs&, Queue&);

}  // namespace rooflab::kernels
