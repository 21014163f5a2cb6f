// index_put: y[place(i) + index[i] * step] = values[i], the write of x[index] = values. place(i) is the offset of i in
// y along all dimensions but the one that the index counts. Numbers in [-limit, 0) count from the end. Where several
// numbers name one place, the last one's values stay.
// An index out of range raises an error, and nothing is written: on the CPU at once; a GPU tells by `first_outside`.
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
  int64_t* first_outside;       // a GPU's: where in the index the first number out of range is, else -1
  DType dtype;
};

extern const Ladder<IndexPutArgs> index_put_ladder;

}  // namespace rooflab::kernels
