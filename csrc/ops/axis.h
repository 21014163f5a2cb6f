// A tensor seen along one dimension, for ops that walk along it.
#pragma once

#include "ops/ops.h"

namespace rooflab {

// x as (outer, size of `dim`, inner): a view, or a copy where the strides are of no use.
inline Tensor along_axis(const Tensor& x, int64_t dim) {
  Shape sizes{1, x.size(dim), 1};
  for (int d = 0; d < x.ndim(); ++d)
    if (d != dim) sizes[d < dim ? 0 : 2] *= x.shape()[d];
  if (const auto view = x.try_view(sizes)) return *view;
  return copy(x.detach()).view(sizes);
}

// src added to zeros of `shape` where an index of its shape says, along `dim`: the gradient of gather.
Tensor scatter_into_zeros(const Shape& shape, int64_t dim, const Tensor& index, const Tensor& src);

}  // namespace rooflab
