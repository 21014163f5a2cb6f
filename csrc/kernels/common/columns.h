// Work along one axis of an array (outer, n, inner), distributed over the threads: neighbours along the inner axis are
// processed together, so that memory is read in order. Files compiled for several instruction sets include this: it
// instantiates no std:: template.
#pragma once

#include "core/queue.h"

namespace rooflab::kernels {

constexpr int64_t kColumns = 64;  // neighbours that are processed together

// Calls columns(outer, first, count) for columns [first, first + count) of each outer position; count <= kColumns.
template <class F>
void for_columns(Queue& queue, int64_t outer, int64_t n, int64_t inner, F columns) {
  constexpr int64_t kGrain = 16384;  // elements that are worth waking a thread for
  const int64_t width = inner < kColumns ? inner : kColumns, tiles = (inner + kColumns - 1) / kColumns;
  const int64_t elements = n * width;  // of a tile; none where the axis has none
  const int64_t grain = elements < kGrain ? kGrain / (elements > 0 ? elements : 1) : 1;
  queue.parallel(outer * tiles, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tiles == 1 ? tile : tile / tiles, first = (tile - row * tiles) * kColumns;
      columns(row, first, inner - first < kColumns ? inner - first : kColumns);
    }
  });
}

}  // namespace rooflab::kernels
