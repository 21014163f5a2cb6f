// For *_simd.cpp files: rows of (N, D) are distributed over the threads in the blocks of common/column_sums.h, each
// with its own sums over rows; a second stage adds the blocks' sums.
#pragma once

#include "kernels/common/column_sums.h"
#include "kernels/common/row_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Adds `value` to the sums from `sums` on.
ROOFLAB_INLINE void add_lanes(float* sums, F32x16 value, int64_t lanes) {
  if (lanes == F32x16::kLanes)
    store<float>(sums, load<float>(sums) + value);
  else
    store<float>(sums, load<float>(sums, lanes) + value, lanes);
}

// Calls row(n, sums) for each of n rows, on all threads. `sums` are those of the row's block, count x D columns, which
// the call adds to. `partial` (blocks, count x D) holds the sums of all blocks; if it is null, there are no sums.
template <class Row>
ROOFLAB_INLINE void for_each_row_of_blocks(Queue& queue, int64_t n, int64_t d, float* partial, int count, Row row) {
  const int64_t rows = cpu_block_rows(n), width = count * d, grain = row_grain(d) / rows;
  queue.parallel(cpu_blocks(n), grain > 1 ? grain : 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      float* sums = partial ? partial + block * width : nullptr;
      if (sums) std::memset(sums, 0, static_cast<size_t>(width) * sizeof(float));
      const int64_t last = (block + 1) * rows < n ? (block + 1) * rows : n;
      for (int64_t i = block * rows; i < last; ++i) row(i, sums);
    }
    fence();
  });
}

// out[c] = the sum over blocks of partial[block, first + c], for c < d.
template <class T>
ROOFLAB_INLINE void add_blocks(Queue& queue, const float* partial, int64_t n, int64_t d, int64_t first, int64_t width,
                               T* out) {
  constexpr int64_t kLanes = F32x16::kLanes;
  const int64_t blocks = cpu_blocks(n), vectors = (d + kLanes - 1) / kLanes;
  queue.parallel(vectors, 1 + 32768 / ((blocks + 1) * kLanes), [&](int64_t begin, int64_t end, int) {
    for (int64_t v = begin; v < end; ++v) {
      const int64_t c = v * kLanes, lanes = d - c < kLanes ? d - c : kLanes;
      PairwiseSum<F32x16> runs;
      F32x16 run = 0;
      for (int64_t block = 0; block < blocks; ++block) {
        run += load_lanes(partial + block * width + first + c, lanes);
        if (block % kRun < kRun - 1) continue;
        runs.add(run);
        run = 0;
      }
      store<T>(out + c, runs.total(run), lanes);
    }
  });
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
