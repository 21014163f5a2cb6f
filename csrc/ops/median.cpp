// median: the middle element along a dimension, and its position.
#include "kernels/median/median.h"

#include "core/range.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

struct Options {
  int64_t dim;
};

void run(const Call<Options>& call) {
  const Tensor view = along_axis(call.inputs[0], call.options.dim);
  const Shape &sizes = view.shape(), &strides = view.strides();
  run_rung(kernels::median_ladder, call,
           kernels::MedianArgs{view.data(), call.outputs[0].data(), call.outputs[1].data<int64_t>(), sizes[0], sizes[1],
                               sizes[2], strides[0], strides[1], strides[2], 1, false, view.dtype()});
}

const Op<Options> kOp("median", run);

}  // namespace

ValuesAndIndices median(const Tensor& x, int64_t dim, bool keepdim, std::string_view variant) {
  if (is_the_only_element(dim, x.ndim())) return median(view(x, {1}), 0, false, variant);
  const OpScope scope("median");
  const int64_t along = normalize_dim(dim, x.ndim(), "median");
  RL_CHECK(x.dtype() != DType::kBool, "median", "x: expected a numeric dtype, got bool");
  RL_CHECK(x.size(along) > 0, "median", "x: expected elements along dimension ", dim, ", got ", x.shape());
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d)
    if (keepdim || d != along) shape.push_back(d == along ? 1 : x.shape()[d]);
  const Tensor indices = Tensor::empty(shape, DType::kInt64, x.device());
  Tensor values = Tensor::empty(shape, x.dtype(), x.device());
  const Cost cost{0, 0, compulsory_bytes({x}), values.nbytes() + indices.nbytes()};
  values = submit(Call(kOp, {x}, {values, indices}, {along}, cost, variant), autograd::saving(indices),
                  [along, keepdim, shape = x.shape()](const Tensor& dy, const Tensor& indices) {
                    if (keepdim) return scatter_into_zeros(shape, along, indices, dy);
                    return scatter_into_zeros(shape, along, indices.unsqueeze(along), dy.unsqueeze(along));
                  });
  return {std::move(values), indices};
}

}  // namespace rooflab
