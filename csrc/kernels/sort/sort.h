// sort: the elements along one axis in order, and their positions; topk: only the first of them. The input is viewed as
// (outer, n, inner). Equal elements keep their order; a NaN is larger than any number.
//
// Ladder, CPU:
//   v0_reference   one thread, one line at a time
//   v1_parallel    all threads, one line each
// Ladder, CUDA:
//   v0_reference   one thread per element, which counts the elements that come before its own: n^2 comparisons per line
//   v1_select      one block per line finds the next element in each round: n * keep comparisons; keep <= n / 8
//
// FLOPs: none are counted; n log2 n comparisons per line would be enough. Compulsory bytes: each input element read
// once, each output written once. Roof: memory bandwidth, for a radix sort; these rungs compare.
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
