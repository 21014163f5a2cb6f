// gelu: checks and cost.
#include "kernels/gelu/gelu.h"

#include <algorithm>

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/activation_backward.h"
#include "ops/elementwise.h"
#include "ops/fusible.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::GeluArgs;

constexpr int64_t kFlops = 8;  // per element

void run(const Call<GeluOptions>& call) {
  const Tensor &x = call.inputs[0], &y = call.outputs[0];
  GeluArgs args;
  args.x = x.data();
  args.y = y.data();
  args.dtype = x.dtype();
  args.count = x.numel();
  args.ndim = std::max(x.ndim(), 1);
  if (x.is_contiguous() || !y.is_contiguous()) {  // y lies in memory as x does
    args.ndim = 1;
    args.sizes[0] = x.numel();
    args.strides[0] = 1;
  } else {
    std::copy(x.shape().begin(), x.shape().end(), args.sizes);
    std::copy(x.strides().begin(), x.strides().end(), args.strides);
  }
  run_rung(kernels::gelu_ladder, call, args);
}

const Op<GeluOptions> kOp("gelu", run);

}  // namespace

Tensor gelu(const Tensor& x, std::string_view variant) {
  const OpScope scope("gelu");
  check_floating("gelu", "x", x);
  Tensor y = empty_beside({x}, x.shape(), x.dtype(), x.device());
  const Cost cost{0, kFlops * x.numel(), compulsory_bytes({x}), y.nbytes()};
  return submit(Call(kOp, {x}, {y}, {}, cost, variant), autograd::saving(x), [](const Tensor& dy, const Tensor& x) {
    return activation_gradient(kernels::Activation::kGelu, dy, x);
  });
}

}  // namespace rooflab
