// sum, mean, amax, amin, var, std, prod, any, all and logsumexp: checks and cost.
#include "kernels/reduce/reduce.h"

#include <array>

#include "core/range.h"
#include "core/tensor_check.h"
#include "kernels/logsumexp/logsumexp.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/fusible.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::ReduceArgs;
using kernels::ReduceOp;

// The dimensions to reduce, as flags: all if `dims` is empty.
std::array<bool, kMaxDims> flags_of(const char* op, const Tensor& x, const Shape& dims) {
  std::array<bool, kMaxDims> reduced{};
  for (int i = 0; i < x.ndim(); ++i) reduced[i] = dims.empty();
  for (int64_t dim : dims) {
    if (is_the_only_element(dim, x.ndim())) continue;
    bool& flag = reduced[normalize_dim(dim, x.ndim(), op)];
    RL_CHECK(!flag, op, "dim: ", dim, " appears twice in ", dims);
    flag = true;
  }
  return reduced;
}

// The dimensions of x in their order, but those to reduce behind the others.
Shape reduced_last(const Tensor& x, const std::array<bool, kMaxDims>& reduced) {
  Shape order;
  for (const bool flag : {false, true})
    for (int i = 0; i < x.ndim(); ++i)
      if (reduced[i] == flag) order.push_back(i);
  return order;
}

// x as (outer, reduced, inner) without a copy; if that is impossible, a copy with the reduced dimensions moved last.
Tensor as_outer_reduced_inner(const Tensor& x, const std::array<bool, kMaxDims>& reduced) {
  Shape order, sizes{1, 1, 1};  // indexed by the run of dimensions that a dimension belongs to
  int run = 0;
  bool adjacent = true;
  for (int i = 0; i < x.ndim(); ++i) {
    if (x.shape()[i] != 1) {
      if (run == 0 && reduced[i]) run = 1;
      if (run == 1 && !reduced[i]) run = 2;
      adjacent &= reduced[i] == (run == 1);
    }
    sizes[run] *= x.shape()[i];
    if (!reduced[i]) order.push_back(i);
  }
  if (sizes[1] == 1)  // outputs of one element each stand side by side
    if (const auto view = x.try_view({1, 1, x.numel()})) return *view;
  if (adjacent)
    if (const auto view = x.try_view(sizes)) return *view;
  sizes = {1, 1, 1};
  for (int i = 0; i < x.ndim(); ++i) {
    sizes[reduced[i] ? 1 : 0] *= x.shape()[i];
    if (reduced[i]) order.push_back(i);
  }
  const Tensor moved = x.permute(order);
  if (const auto view = moved.try_view(sizes)) return *view;
  return operand_as(x, copy(moved).view(sizes));
}

// The result's shape if reduced dimensions are kept, with size 1.
Shape kept_shape(const Tensor& x, const std::array<bool, kMaxDims>& reduced) {
  Shape shape = x.shape();
  for (int i = 0; i < x.ndim(); ++i)
    if (reduced[i]) shape[i] = 1;
  return shape;
}

// Elements that are equally extreme share the gradient evenly. 16 bits could not count them. Where y is NaN no element
// equals it, and the gradient is NaN.
Tensor extreme_gradient(const Tensor& dy, const Tensor& x, const Tensor& y) {
  const Tensor is_chosen = elementwise(ElementwiseOp::kEq, x, y);
  const Tensor wide = widen(dy), share = wide / sum_to(cast(is_chosen, wide.dtype()), dy.shape());
  return cast(share, dy.dtype()) * is_chosen;
}

// Of var, std, prod, any and all. Not ReduceOptions, which the fusing compiler takes.
struct UnfusedOptions {
  ReduceOp op;
  std::array<bool, kMaxDims> reduced;
  double correction;
};

template <class Options>
void run_reduction(const Call<Options>& call, ReduceOp op, double correction) {
  const Tensor& x = call.inputs[0];
  const Tensor view = as_outer_reduced_inner(x, call.options.reduced);
  const Shape &sizes = view.shape(), &strides = view.strides();
  run_rung(kernels::reduce_ladder, call,
           ReduceArgs{view.data(), call.outputs[0].data(), sizes[0], sizes[1], sizes[2], strides[0], strides[1],
                      strides[2], op, x.dtype(), correction});
}

void run(const Call<ReduceOptions>& call) { run_reduction(call, call.options.op, 0); }
void run_unfused(const Call<UnfusedOptions>& call) { run_reduction(call, call.options.op, call.options.correction); }

void run_logsumexp(const Call<UnfusedOptions>& call) {
  const Tensor& x = call.inputs[0];
  const Tensor view = as_outer_reduced_inner(x, call.options.reduced);
  const Shape &sizes = view.shape(), &strides = view.strides();
  run_rung(kernels::logsumexp_ladder, call,
           ReduceArgs{view.data(), call.outputs[0].data(), sizes[0], sizes[1], sizes[2], strides[0], strides[1],
                      strides[2], call.options.op, x.dtype()});
}

const Op<ReduceOptions> kSumOp("sum", run), kMeanOp("mean", run), kAmaxOp("amax", run), kAminOp("amin", run);
const Op<UnfusedOptions> kVarOp("var", run_unfused), kStdOp("std", run_unfused), kProdOp("prod", run_unfused);
const Op<UnfusedOptions> kAnyOp("any", run_unfused), kAllOp("all", run_unfused);
const Op<UnfusedOptions> kLogsumexpOp("logsumexp", run_logsumexp);

// The call of a reduction of x over the dimensions that the options name.
template <class Options>
Call<Options> plan(const Op<Options>& op, Options options, DType result, const Tensor& x, bool keepdim,
                   std::string_view variant, int64_t flops_per_element = 1) {
  Shape shape;
  for (int i = 0; i < x.ndim(); ++i) {
    if (!options.reduced[i])
      shape.push_back(x.shape()[i]);
    else if (keepdim)
      shape.push_back(1);
  }
  Tensor y = Tensor::empty(shape, result, x.device());
  const Cost cost{0, flops_per_element * x.numel(), compulsory_bytes({x}), y.nbytes()};
  return {op, {x}, {y}, std::move(options), cost, variant};
}

Call<ReduceOptions> plan(const Op<ReduceOptions>& op, ReduceOp reduction, DType result, const Tensor& x,
                         const Shape& dims, bool keepdim, std::string_view variant) {
  return plan(op, ReduceOptions{reduction, flags_of(op.name, x, dims)}, result, x, keepdim, variant);
}

Call<UnfusedOptions> plan_spread(const Op<UnfusedOptions>& op, ReduceOp reduction, const Tensor& x, const Shape& dims,
                                 double correction, bool keepdim, std::string_view variant) {
  check_floating(op.name, "x", x);
  return plan(op, UnfusedOptions{reduction, flags_of(op.name, x, dims), correction}, x.dtype(), x, keepdim, variant, 4);
}

// Taken twice, because where numbers are large and alike, the rounded mean is too coarse.
Tensor distances_from_mean(const Tensor& x, const Shape& dims) {
  const Tensor wide = widen(x), distances = wide - mean(wide, dims, true);
  return distances - mean(distances, dims, true);
}

// Of the variance of x, whose shape becomes `kept`.
double divisor_of(const Tensor& x, const Shape& kept, double correction) {
  const double count = static_cast<double>(x.numel()) / static_cast<double>(std::max<int64_t>(numel(kept), 1));
  return std::max(count - correction, 0.0);
}

// Each element gets the product of the others, which is 0 where one of them is: zeros are counted and left out. Double
// keeps products that leave the range of the dtype on the way. 0 times another's infinity or NaN is NaN; an element's
// own does not count.
Tensor product_gradient(const Tensor& dy, const Tensor& x, const Shape& dims, const Shape& kept) {
  using enum ElementwiseOp;
  const Tensor wide = cast(x, DType::kFloat64), is_zero = elementwise(kEq, wide, Scalar{});
  const Tensor filled = where(is_zero, Scalar{1.0, 1}, wide), product = prod(filled, dims, true);
  constexpr Scalar kMany{0x1p32, int64_t{1} << 32};  // counts for one infinity or NaN: an int64 holds both counts
  const Tensor is_infinite = elementwise(kNe, filled - filled, Scalar{});
  const Tensor own = where(is_infinite, kMany, cast(is_zero, DType::kInt64));
  const Tensor counts = sum_to(own, kept) - own, zeros = elementwise(kRemainder, counts, kMany);
  const Tensor has_only_zeros = elementwise(kGt, zeros, Scalar{}) * elementwise(kEq, counts, zeros);
  const Tensor others = where(has_only_zeros, Scalar{}, product / filled * elementwise(kEq, zeros, Scalar{}));
  return cast(others * cast(dy, DType::kFloat64).view(kept), x.dtype());
}

// dy times the softmax over the reduced dimensions, which is exact however far from 0 the elements are.
Tensor logsumexp_gradient(const Tensor& dy, const Tensor& x, const std::array<bool, kMaxDims>& reduced) {
  const Shape order = reduced_last(x, reduced), kept = kept_shape(x, reduced);
  Shape back = order;
  for (int i = 0; i < x.ndim(); ++i) back[order[i]] = i;
  const Tensor moved = x.permute(order);
  const int64_t outer = numel(kept);
  const Tensor shares = softmax(reshape(moved, {outer, outer > 0 ? x.numel() / outer : 0}), 1);
  return shares.view(moved.shape()).permute(back) * dy.view(kept);
}

template <class Options>
Shape kept_shape(const Call<Options>& call) {
  return kept_shape(call.inputs[0], call.options.reduced);
}

Tensor extreme(const Op<ReduceOptions>& op, ReduceOp reduction, const Tensor& x, const Shape& dims, bool keepdim,
               std::string_view variant) {
  const OpScope scope(op.name);
  Call call = plan(op, reduction, x.dtype(), x, dims, keepdim, variant);
  const Tensor y = call.outputs[0];
  for (int i = 0; i < x.ndim(); ++i)  // also where the result is empty
    RL_CHECK(!call.options.reduced[i] || x.shape()[i] > 0, op.name,
             "x: expected at least one element to choose from, got ", x.shape());
  return submit(std::move(call), autograd::saving(x, y),
                [kept = kept_shape(call)](const Tensor& dy, const Tensor& x, const Tensor& y) {
                  return extreme_gradient(reshape(dy, kept), x, y.view(kept));
                });
}

Tensor truth(const Op<UnfusedOptions>& op, ReduceOp reduction, const Tensor& x, const Shape& dims, bool keepdim,
             std::string_view variant) {
  const OpScope scope(op.name);
  const Tensor from = x.detach();
  Call call =
      plan(op, UnfusedOptions{reduction, flags_of(op.name, from, dims), 0}, DType::kBool, from, keepdim, variant);
  const Tensor y = call.outputs[0];
  submit(std::move(call));
  return y;
}

}  // namespace

Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  if (const auto dtype = autocast::wanted("sum", {&x})) return sum(autocast::in(*dtype, x), dims, keepdim, variant);
  const OpScope scope("sum");
  Call call =
      plan(kSumOp, ReduceOp::kSum, is_floating(x.dtype()) ? x.dtype() : DType::kInt64, x, dims, keepdim, variant);
  return submit(std::move(call), autograd::saving(),
                [from = x.shape(), kept = kept_shape(call)](const Tensor& dy) { return dy.view(kept).expand(from); });
}

Tensor mean(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  if (const auto dtype = autocast::wanted("mean", {&x})) return mean(autocast::in(*dtype, x), dims, keepdim, variant);
  const OpScope scope("mean");
  check_floating("mean", "x", x);
  Call call = plan(kMeanOp, ReduceOp::kMean, x.dtype(), x, dims, keepdim, variant);
  return submit(std::move(call), autograd::saving(), [from = x.shape(), kept = kept_shape(call)](const Tensor& dy) {
    return (dy * (static_cast<double>(numel(kept)) / numel(from))).view(kept).expand(from);
  });
}

Tensor amax(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  return extreme(kAmaxOp, ReduceOp::kMax, x, dims, keepdim, variant);
}
Tensor amin(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  return extreme(kAminOp, ReduceOp::kMin, x, dims, keepdim, variant);
}

Tensor var(const Tensor& x, const Shape& dims, double correction, bool keepdim, std::string_view variant) {
  const OpScope scope("var");
  Call call = plan_spread(kVarOp, ReduceOp::kVar, x, dims, correction, keepdim, variant);
  return submit(std::move(call), autograd::saving(x),
                [dims, correction, kept = kept_shape(call)](const Tensor& dy, const Tensor& x) {
                  const Tensor slopes = distances_from_mean(x, dims) * (2 / divisor_of(x, kept, correction));
                  return cast(slopes * widen(dy).view(kept), x.dtype());
                });
}

Tensor std(const Tensor& x, const Shape& dims, double correction, bool keepdim, std::string_view variant) {
  const OpScope scope("std");
  Call call = plan_spread(kStdOp, ReduceOp::kStd, x, dims, correction, keepdim, variant);
  const Tensor y = call.outputs[0];
  return submit(std::move(call), autograd::saving(x, y),
                [dims, correction, kept = kept_shape(call)](const Tensor& dy, const Tensor& x, const Tensor& y) {
                  const Tensor root = widen(y).view(kept);
                  const Tensor slopes = distances_from_mean(x, dims) / root * (1 / divisor_of(x, kept, correction));
                  // Where all numbers are equal, any step leads up: 0 is the slope in the middle.
                  const Tensor dx = where(elementwise(ElementwiseOp::kEq, root, Scalar{}), Scalar{}, slopes);
                  return cast(dx * widen(dy).view(kept), x.dtype());
                });
}

Tensor any(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  return truth(kAnyOp, ReduceOp::kAny, x, dims, keepdim, variant);
}
Tensor all(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  return truth(kAllOp, ReduceOp::kAll, x, dims, keepdim, variant);
}

Tensor logsumexp(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  const OpScope scope("logsumexp");
  check_floating("logsumexp", "x", x);
  Call call = plan(kLogsumexpOp, UnfusedOptions{ReduceOp::kMax, flags_of("logsumexp", x, dims), 0}, x.dtype(), x,
                   keepdim, variant, 4);
  return submit(std::move(call), autograd::saving(x),
                [reduced = call.options.reduced](const Tensor& dy, const Tensor& x) {
                  return logsumexp_gradient(dy, x, reduced);
                });
}

Tensor prod(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  const OpScope scope("prod");
  Call call = plan(kProdOp, UnfusedOptions{ReduceOp::kProd, flags_of("prod", x, dims), 0},
                   is_floating(x.dtype()) ? x.dtype() : DType::kInt64, x, keepdim, variant);
  return submit(std::move(call), autograd::saving(x),
                [dims, kept = kept_shape(call)](const Tensor& dy, const Tensor& x) {
                  return product_gradient(dy, x, dims, kept);
                });
}

}  // namespace rooflab
