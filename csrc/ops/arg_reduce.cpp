// argmax, argmin, and max and min along a dimension: the position of an extreme element, and the element itself.
#include "kernels/arg_reduce/arg_reduce.h"

#include "core/range.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::ArgReduceArgs;

constexpr int64_t kAll = -1;  // as dim: over all elements

struct Options {
  int64_t dim;
  bool largest;
};

// The positions are the last output.
void run(const Call<Options>& call) {
  const Tensor& x = call.inputs[0];
  const int64_t dim = call.options.dim;
  const Tensor view = dim == kAll ? operand_as(x, contiguous(x.detach())).view({1, x.numel(), 1}) : along_axis(x, dim);
  const Shape &sizes = view.shape(), &strides = view.strides();
  const bool has_values = call.outputs.size() == 2;
  run_rung(
      kernels::arg_reduce_ladder, call,
      ArgReduceArgs{view.data(), has_values ? call.outputs[0].data() : nullptr, call.outputs.back().data<int64_t>(),
                    sizes[0], sizes[1], sizes[2], strides[0], strides[1], strides[2], call.options.largest, x.dtype()});
}

const Op<Options> kArgmax("argmax", run), kArgmin("argmin", run), kMax("max", run), kMin("min", run);

// The plan without outputs, which differ between the ops.
Call<Options> plan(const Op<Options>& op, const Tensor& x, int64_t dim, std::string_view variant) {
  const bool largest = &op == &kArgmax || &op == &kMax;
  return {op, {x}, {}, {dim, largest}, {0, x.numel(), compulsory_bytes({x}), 0}, variant};
}

Tensor empty_result(const AnyOp& op, const Tensor& x, int64_t dim, bool keepdim, DType dtype) {
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d) {
    if (dim != kAll && d != dim)
      shape.push_back(x.shape()[d]);
    else if (keepdim)
      shape.push_back(1);
  }
  Tensor y = Tensor::empty(shape, dtype, x.device());
  RL_CHECK((dim == kAll ? x.numel() : x.shape()[dim]) > 0, op.name,  // also where the result is empty
           "x: expected at least one element to choose from, got ", x.shape());
  return y;
}

Tensor place(const Op<Options>& op, const Tensor& x, std::optional<int64_t> dim, bool keepdim,
             std::string_view variant) {
  const OpScope scope(op.name);
  const bool all = !dim || is_the_only_element(*dim, x.ndim());
  const int64_t along = all ? kAll : normalize_dim(*dim, x.ndim(), op.name);
  Call call = plan(op, x, along, variant);
  const Tensor y = empty_result(op, x, along, keepdim, DType::kInt64);
  call.outputs = {y};
  call.cost.bytes_written = y.nbytes();
  submit(call);
  return y;
}

ValuesAndIndices extreme(const Op<Options>& op, const Tensor& x, int64_t dim, bool keepdim, std::string_view variant) {
  if (is_the_only_element(dim, x.ndim())) return extreme(op, view(x, {1}), 0, false, variant);
  const OpScope scope(op.name);
  const int64_t along = normalize_dim(dim, x.ndim(), op.name);
  Call call = plan(op, x, along, variant);
  const Tensor indices = empty_result(op, x, along, keepdim, DType::kInt64);
  call.outputs = {Tensor::empty(indices.shape(), x.dtype(), x.device()), indices};
  call.cost.bytes_written = call.outputs[0].nbytes() + indices.nbytes();
  Tensor values = submit(std::move(call), autograd::saving(indices),
                         [along, keepdim, shape = x.shape()](const Tensor& dy, const Tensor& indices) {
                           if (keepdim) return scatter_into_zeros(shape, along, indices, dy);
                           return scatter_into_zeros(shape, along, indices.unsqueeze(along), dy.unsqueeze(along));
                         });
  return {std::move(values), indices};
}

}  // namespace

Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim, std::string_view variant) {
  return place(kArgmax, x, dim, keepdim, variant);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim, std::string_view variant) {
  return place(kArgmin, x, dim, keepdim, variant);
}
ValuesAndIndices max(const Tensor& x, int64_t dim, bool keepdim, std::string_view variant) {
  return extreme(kMax, x, dim, keepdim, variant);
}
ValuesAndIndices min(const Tensor& x, int64_t dim, bool keepdim, std::string_view variant) {
  return extreme(kMin, x, dim, keepdim, variant);
}

}  // namespace rooflab
