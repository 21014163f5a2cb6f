// index_put: y[place(i) + index[i] * step] = values[i], the write of x[index] = values. place(i) is the offset of i in
// y along all dimensions but the one that the index counts. Numbers in [-limit, 0) count from the end. Where several
// numbers name one place, the last one's values stay.
// An index out of range raises an error, and nothing is written: on the CPU at once, on a GPU when the host next waits
// for it.
//
// FLOPs: none. Compulsory bytes: the index and the values read once, what they write once. Roof: memory bandwidth.
#pragma once

#include "kernels/common/ladder_declaration.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {

struct IndexPutArgs {
  IndexLayout at;      // of the values; the index is one vector, of adjacent numbers
  int64_t count;       // of the index
  bool distinct;       // no two numbers name one place, and all are in range, as those of a mask
  const void* values;  // of at.sizes
  int64_t value_strides[kMaxDims];
  void* y;
  int64_t y_strides[kMaxDims];  // 0 along the dimension that the index counts
  DType dtype;
};

// Of a short index, a block of a GPU keeps all places in shared memory.
inline constexpr int64_t kShortIndex = 512;
inline bool is_short(const IndexPutArgs& args) { return args.count <= kShortIndex; }

// Rows of one index, whose elements are adjacent.
inline bool are_rows(const IndexPutArgs& args) {
  const int last = args.at.ndim - 1;
  return args.at.strides[last] == 0 && args.value_strides[last] == 1 && args.y_strides[last] == 1;
}

extern const Ladder<IndexPutArgs> index_put_ladder;

}  // namespace rooflab::kernels
