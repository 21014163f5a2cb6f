// How threads of the CPU share what an index writes, in order: along a dimension in which no two elements meet.
#pragma once

#include <algorithm>

#include "kernels/gather/gather.h"

namespace rooflab::kernels {

// Calls part(dim, begin, end) for parts of the longest dimension along which y advances. Where there is none, all is
// one part.
template <class Part>
void share_places(const IndexLayout& at, const int64_t (&y_strides)[kMaxDims], Queue& queue, const Part& part) {
  constexpr int64_t kGrain = 4096;  // elements that are worth waking a thread for
  int dim = 0;
  int64_t longest = 0;
  for (int d = 0; d < at.ndim; ++d)
    if (y_strides[d] != 0 && at.sizes[d] > longest) longest = at.sizes[dim = d];
  const int64_t size = at.sizes[dim], grain = std::max<int64_t>(kGrain / (at.count / size), 1);
  queue.parallel(size, longest > 0 ? grain : size, [&](int64_t begin, int64_t end, int) { part(dim, begin, end); });
}

}  // namespace rooflab::kernels
