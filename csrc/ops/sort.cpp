// sort and topk: elements in order along a dimension, and their positions unless only values are asked for.
#include "kernels/sort/sort.h"

#include "core/range.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::SortArgs;

struct Options {
  int64_t dim;
  bool descending;
};

void run(const Call<Options>& call) {
  const Tensor& values = call.outputs[0];
  const int64_t dim = call.options.dim;
  const bool has_indices = call.outputs.size() == 2;
  const Tensor view = along_axis(call.inputs[0], dim);
  const Shape &sizes = view.shape(), &strides = view.strides();
  run_rung(kernels::sort_ladder, call,
           SortArgs{view.data(), values.data(), has_indices ? call.outputs[1].data<int64_t>() : nullptr, sizes[0],
                    sizes[1], sizes[2], strides[0], strides[1], strides[2], values.size(dim), call.options.descending,
                    values.dtype()});
}

const Op<Options> kSort("sort", run), kTopk("topk", run);

// The first `keep` elements in order.
ValuesAndIndices in_order(const Op<Options>& op, const Tensor& x, int64_t keep, int64_t dim, bool descending,
                          std::string_view variant) {
  Shape shape = x.shape();
  shape[dim] = keep;
  const Tensor indices = Tensor::empty(shape, DType::kInt64, x.device());
  Tensor values = Tensor::empty(shape, x.dtype(), x.device());
  const Cost cost{0, 0, compulsory_bytes({x}), values.nbytes() + indices.nbytes()};
  values = submit(Call(op, {x}, {values, indices}, {dim, descending}, cost, variant), autograd::saving(indices),
                  [dim, shape = x.shape()](const Tensor& dy, const Tensor& indices) {
                    return scatter_into_zeros(shape, dim, indices, dy);
                  });
  return {std::move(values), indices};
}

}  // namespace

ValuesAndIndices sort(const Tensor& x, int64_t dim, bool descending, std::string_view variant) {
  const OpScope scope("sort");
  const int64_t along = normalize_dim(dim, x.ndim(), "sort");
  return in_order(kSort, x, x.size(along), along, descending, variant);
}

Tensor sort_values(const Tensor& x, std::string_view variant) {
  const OpScope scope("sort");
  Tensor values = Tensor::empty(x.shape(), x.dtype(), x.device());
  const Cost cost{0, 0, compulsory_bytes({x}), values.nbytes()};
  submit(Call(kSort, {x}, {values}, {normalize_dim(-1, x.ndim(), "sort"), false}, cost, variant));
  return values;
}

ValuesAndIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, std::string_view variant) {
  const OpScope scope("topk");
  const int64_t along = normalize_dim(dim, x.ndim(), "topk");
  RL_CHECK(k >= 0 && k <= x.size(along), "topk", "k: expected in [0, ", x.size(along), "], got ", k);
  return in_order(kTopk, x, k, along, largest, variant);
}

}  // namespace rooflab
