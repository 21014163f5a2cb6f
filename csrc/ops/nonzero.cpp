// nonzero: where the elements are that are not 0. The size of the result depends on them, so they are counted first.
#include "kernels/nonzero/nonzero.h"

#include <algorithm>

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/graph.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::NonzeroArgs;

void run(const Call<NoOptions>& call) {
  const Tensor &mask = call.inputs[0], &places = call.outputs[0];
  NonzeroArgs args{mask.data<bool>(), places.data<int64_t>(), mask.numel(), places.size(0), mask.ndim(), {}};
  std::copy(mask.shape().begin(), mask.shape().end(), args.sizes);
  run_rung(kernels::nonzero_ladder, call, args);
}

const Op<NoOptions> kNonzero("nonzero", run);

}  // namespace

Tensor nonzero(const Tensor& x, std::string_view variant) {
  const OpScope scope("nonzero");
  const autograd::GradMode off(false);
  RL_CHECK(!Graph::capturing(), "nonzero", "the size of the result depends on x, so a graph cannot capture it");
  RL_CHECK(!x.device().is_meta(), "nonzero", "x: on ", to_string(x.device()),
           " it has no values, which the size of the result depends on");
  if (x.numel() == 0) return Tensor::empty({0, x.ndim()}, DType::kInt64, x.device());
  const Tensor mask = contiguous(x.dtype() == DType::kBool ? x.detach() : elementwise(ElementwiseOp::kNe, x, Scalar{}));
  const Tensor count = to_device(sum(reshape(mask, {mask.numel()}), {0}, false), Device{});
  Tensor places = Tensor::empty({*count.data<int64_t>(), x.ndim()}, DType::kInt64, x.device());
  if (places.numel() == 0) return places;
  submit(Call(kNonzero, {mask}, {places}, {}, Cost{0, 0, mask.nbytes(), places.nbytes()}, variant));
  return places;
}

}  // namespace rooflab
