// Views that gradients go through. A view's gradient is viewed back, or summed if the view repeats elements.
#include "autograd/tape.h"
#include "core/range.h"
#include "ops/arithmetic.h"

namespace rooflab {
namespace {

using autograd::record;
using autograd::recording;

// y, a view of all elements of x in their order.
Tensor same_elements(const char* op, const Tensor& x, Tensor y) {
  if (recording(x)) record(op, y, {x}, [shape = x.shape()](const Tensor& dy) { return reshape(dy, shape); });
  return y;
}

}  // namespace

Tensor view(const Tensor& x, const Shape& shape) { return same_elements("view", x, x.view(shape)); }

Tensor reshape(const Tensor& x, const Shape& shape) {
  if (std::optional<Tensor> viewed = x.try_view(shape)) return same_elements("reshape", x, *viewed);
  return view(copy(x), shape);
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  const int ndim = std::max(x.ndim(), 1);
  const int first = normalize_dim(start_dim, ndim, "flatten"), last = normalize_dim(end_dim, ndim, "flatten");
  RL_CHECK(first <= last, "flatten", "start_dim: expected <= end_dim, got ", start_dim, " and ", end_dim);
  Shape shape;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i <= first || i > last)
      shape.push_back(x.shape()[i]);
    else
      shape[first] *= x.shape()[i];
  }
  return reshape(x, x.ndim() ? shape : Shape{1});
}

Tensor unsqueeze(const Tensor& x, int64_t dim) { return same_elements("unsqueeze", x, x.unsqueeze(dim)); }
Tensor squeeze(const Tensor& x, std::optional<int64_t> dim) { return same_elements("squeeze", x, x.squeeze(dim)); }

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  Tensor y = x.transpose(dim0, dim1);
  if (recording(x)) record("transpose", y, {x}, [dim0, dim1](const Tensor& dy) { return dy.transpose(dim0, dim1); });
  return y;
}

Tensor permute(const Tensor& x, const Shape& dims) {
  Tensor y = x.permute(dims);
  if (recording(x))
    record("permute", y, {x}, [dims](const Tensor& dy) {
      Shape inverse = dims;
      for (int i = 0; i < dims.size(); ++i) inverse[normalize_dim(dims[i], dims.size(), "permute")] = i;
      return dy.permute(inverse);
    });
  return y;
}

Tensor expand(const Tensor& x, const Shape& shape) {
  Tensor y = x.expand(shape);
  if (recording(x)) record("expand", y, {x}, [from = x.shape()](const Tensor& dy) { return sum_to(dy, from); });
  return y;
}

Tensor diagonal(const Tensor& x, int dim0, int dim1) {
  const auto view_of = [dim0, dim1](const Tensor& x) {
    Shape shape, strides;
    for (int d = 0; d < x.ndim(); ++d) {
      if (d == dim1) continue;
      shape.push_back(x.shape()[d]);
      strides.push_back(x.strides()[d] + (d == dim0 ? x.strides()[dim1] : 0));
    }
    return x.as_strided(shape, strides, 0);
  };
  Tensor y = view_of(x);
  if (recording(x))
    record("diagonal", y, {x}, [view_of, shape = x.shape()](const Tensor& dy) {
      const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
      fill(dx, {0, 0});
      copy_into(view_of(dx), dy);
      return dx;
    });
  return y;
}

}  // namespace rooflab
