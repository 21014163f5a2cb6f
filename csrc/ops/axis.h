// A tensor viewed along one dimension, for ops that walk along it.
#pragma once

#include "ops/ops.h"

namespace rooflab {

// x as (outer, size of `dim`, inner): a view, or a copy if the strides do not allow one.
inline Tensor along_axis(const Tensor& x, int64_t dim) {
  Shape sizes{1, x.size(dim), 1};
  for (int d = 0; d < x.ndim(); ++d)
    if (d != dim) sizes[d < dim ? 0 : 2] *= x.shape()[d];
  if (const auto view = x.try_view(sizes)) return *view;
  return operand_as(x, copy(x.detach()).view(sizes));
}

// The gradient of gather: zeros of `shape`, with src added where `index`, of src's shape, says along `dim`.
Tensor scatter_into_zeros(const Shape& shape, int64_t dim, const Tensor& index, const Tensor& src);

}  // namespace rooflab
