// sum, mean and max: checks, cost and the ladder that they share.
#include "kernels/reduce/reduce.h"

#include <array>

#include "autograd/tape.h"
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/compulsory_bytes.h"
#include "ops/ops.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::ReduceArgs;
using kernels::ReduceOp;
using enum Device::Type;

const Ladder<ReduceArgs> kLadder(
    "reduce",
    {
        {"v2_vectorised", kCuda, "as v1 with 16-byte loads; float32 and 16-bit, aligned and contiguous on either axis",
         kernels::reduce_cuda_v2_accepts, kernels::reduce_cuda_v2_vectorised},
        {"v1_block_tree", kCuda, "blocks share the reduced axis and fold in shared memory", nullptr,
         kernels::reduce_cuda_v1_block_tree},
        {"v0_reference", kCuda, "a thread an output, in double", nullptr, kernels::reduce_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads, pieces folded in order", nullptr, kernels::reduce_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, in double", nullptr, kernels::reduce_cpu_v0_reference},
    },
    {"sum", "mean", "max"});

// The dimensions to reduce as flags: all when `dims` is empty.
std::array<bool, kMaxDims> flags_of(const char* op, const Tensor& x, const Shape& dims) {
  std::array<bool, kMaxDims> reduced{};
  for (int i = 0; i < x.ndim(); ++i) reduced[i] = dims.empty();
  for (int64_t dim : dims) {
    bool& flag = reduced[normalize_dim(dim, x.ndim(), op)];
    RL_CHECK(!flag, op, "dim: ", dim, " appears twice in ", dims);
    flag = true;
  }
  return reduced;
}

// x as (outer, reduced, inner) without a copy, or else a copy with the reduced dimensions moved last.
Tensor as_outer_reduced_inner(const Tensor& x, const std::array<bool, kMaxDims>& reduced) {
  Shape order, sizes{1, 1, 1};  // by the run of dimensions that a dimension belongs to
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
  if (adjacent)
    if (const auto view = x.try_view(sizes)) return *view;
  sizes = {1, 1, 1};
  for (int i = 0; i < x.ndim(); ++i) {
    sizes[reduced[i] ? 1 : 0] *= x.shape()[i];
    if (reduced[i]) order.push_back(i);
  }
  const Tensor moved = x.permute(order);
  if (const auto view = moved.try_view(sizes)) return *view;
  return copy(moved).view(sizes);
}

// A result's shape when reduced dimensions stay, with size 1.
Shape kept_shape(const Tensor& x, const std::array<bool, kMaxDims>& reduced) {
  Shape shape = x.shape();
  for (int i = 0; i < x.ndim(); ++i)
    if (reduced[i]) shape[i] = 1;
  return shape;
}

// The largest elements of a row share its gradient evenly.
Tensor max_gradient(const Tensor& dy, const Tensor& x, const Tensor& y) {
  const Tensor is_largest = elementwise(ElementwiseOp::kEq, x, y);
  const Tensor count = sum_to(cast(is_largest, DType::kInt32), dy.shape());
  return where(is_largest, dy / cast(count, dy.dtype()), Scalar{});
}

void record_reduction(const char* name, ReduceOp op, const Tensor& x, Tensor& y, const Shape& kept) {
  const Shape& from = x.shape();
  switch (op) {
    case ReduceOp::kSum:
      return autograd::record(name, y, {x}, [from, kept](const Tensor& dy) { return dy.view(kept).expand(from); });
    case ReduceOp::kMean:
      return autograd::record(name, y, {x}, [from, kept](const Tensor& dy) {
        return (dy * (static_cast<double>(numel(kept)) / numel(from))).view(kept).expand(from);
      });
    case ReduceOp::kMax:
      return autograd::record(name, y, {x}, autograd::saving(x, y),
                              [kept](const Tensor& dy, const Tensor& x, const Tensor& y) {
                                return max_gradient(reshape(dy, kept), x, y.view(kept));
                              });
  }
}

Tensor reduce(const char* name, ReduceOp op, DType result, const Tensor& x, const Shape& dims, bool keepdim,
              std::string_view variant) {
  const std::array<bool, kMaxDims> reduced = flags_of(name, x, dims);
  Shape shape;
  for (int i = 0; i < x.ndim(); ++i) {
    if (!reduced[i])
      shape.push_back(x.shape()[i]);
    else if (keepdim)
      shape.push_back(1);
  }
  Tensor y = Tensor::empty(shape, result, x.device());
  if (autograd::recording(x)) record_reduction(name, op, x, y, kept_shape(x, reduced));
  if (y.numel() == 0) return y;
  RL_CHECK(op != ReduceOp::kMax || x.numel() > 0, name, "x: expected at least one element to choose from, got ",
           x.shape());
  const Tensor view = as_outer_reduced_inner(x, reduced);
  const Shape &sizes = view.shape(), &strides = view.strides();
  const ReduceArgs args{view.data(), y.data(),   sizes[0],   sizes[1], sizes[2],
                        strides[0],  strides[1], strides[2], op,       x.dtype()};
  kLadder.run(x.device(), args, Cost{0, x.numel(), compulsory_bytes(x), y.nbytes()}, variant, name);
  return y;
}

}  // namespace

Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  const OpScope scope("sum");
  return reduce("sum", ReduceOp::kSum, is_floating(x.dtype()) ? x.dtype() : DType::kInt64, x, dims, keepdim, variant);
}

Tensor mean(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  const OpScope scope("mean");
  check_floating("mean", "x", x);
  return reduce("mean", ReduceOp::kMean, x.dtype(), x, dims, keepdim, variant);
}

Tensor max(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant) {
  const OpScope scope("max");
  return reduce("max", ReduceOp::kMax, x.dtype(), x, dims, keepdim, variant);
}

}  // namespace rooflab
