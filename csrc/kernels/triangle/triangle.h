// triangle: a matrix, or a batch of them, in which everything above (tril) or below (triu) a diagonal is zero.
//
// FLOPs: none. Compulsory bytes: the kept elements read once, all elements written once. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/shape.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

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

inline bool is_contiguous(const TriangleArgs& args) {  // x
  int64_t stride = 1;
  bool is_contiguous = true;
  for (int d = args.ndim - 1; d >= 0; stride *= args.sizes[d--])
    is_contiguous &= args.sizes[d] == 1 || args.strides[d] == stride;
  return is_contiguous;
}

extern const Ladder<TriangleArgs> triangle_ladder;

}  // namespace rooflab::kernels
