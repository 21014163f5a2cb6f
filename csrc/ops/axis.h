// A tensor viewed along one dimension, for ops that walk along it.
#pragma once

#include "ops/ops.h"
#include "ops/rows.h"

namespace rooflab {

// The sizes of x as (outer, size of `dim`, inner).
inline Shape axis_sizes(const Tensor& x, int64_t dim) {
  Shape sizes{1, x.size(dim), 1};
  for (int d = 0; d < x.ndim(); ++d)
    if (d != dim) sizes[d < dim ? 0 : 2] *= x.shape()[d];
  return sizes;
}

// x of these sizes, if its rows along `dim` are columns that lie side by side in memory, and not adjacent in
// themselves.
inline std::optional<Tensor> as_columns(const Tensor& x, int64_t dim) {
  if (planned_rows(x.transpose(dim, -1)).x.defined()) return std::nullopt;
  const auto columns = x.try_view(axis_sizes(x, dim));
  return columns && columns->stride(2) == 1 ? columns : std::nullopt;
}

// x of these sizes: a view, or a copy if the strides do not allow one.
inline Tensor along_axis(const Tensor& x, int64_t dim) {
  const Shape sizes = axis_sizes(x, dim);
  if (const auto view = x.try_view(sizes)) return *view;
  return operand_as(x, copy(x.detach()).view(sizes));
}

// index_select by a vector whose numbers below 0 count from the end. One out of range is an IndexError.
Tensor choose_slices(const Tensor& x, int64_t dim, const Tensor& index);

// y[..., index, ...] = values along `dim`, in place, where numbers below 0 count from the end, and the last one for a
// place stays. `distinct`: no two numbers are alike, and all are in range. Otherwise one out of range is an IndexError,
// and nothing is written.
void put_slices(const Tensor& y, int64_t dim, const Tensor& index, const Tensor& values, bool distinct);

// The gradient of gather: zeros of `shape`, with src added where `index`, of src's shape, says along `dim`.
Tensor scatter_into_zeros(const Shape& shape, int64_t dim, const Tensor& index, const Tensor& src);

}  // namespace rooflab
