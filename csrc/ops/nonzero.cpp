// nonzero: where the elements are that are not 0. The size of the result depends on them, so they are counted first,
// and the counts are read from the device.
#include "kernels/nonzero/nonzero.h"

#include <algorithm>
#include <numeric>

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/graph.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::NonzeroArgs;

void run(const Call<NoOptions>& call) {
  const Tensor& mask = call.inputs[0];
  const bool counts_only = call.inputs.size() == 1;
  const Tensor& counts = counts_only ? call.outputs[0] : call.inputs[1];
  const Tensor places = counts_only ? Tensor() : call.outputs[0];
  NonzeroArgs args{};
  args.mask = mask.data<bool>();
  args.counts = counts.data<int64_t>();
  args.count = mask.numel();
  args.portions = counts.numel();
  args.portion = kernels::nonzero_portion(mask.numel(), mask.device().is_cuda());
  if (places.defined()) {
    args.places = places.data<int64_t>();
    args.found = places.size(0);
  }
  args.ndim = mask.ndim();
  std::copy(mask.shape().begin(), mask.shape().end(), args.sizes);
  run_rung(kernels::nonzero_ladder, call, args);
}

const Op<NoOptions> kNonzero("nonzero", run);

}  // namespace

Tensor nonzero(const Tensor& x, std::string_view variant) {
  const OpScope scope("nonzero");
  const autograd::GradMode off(false);
  RL_CHECK(!Graph::capturing(), "nonzero", "the size of the result depends on x, so a graph cannot capture it");
  RL_CHECK_AS(WithoutMemory, !x.device().is_meta(), "nonzero", "x: on ", to_string(x.device()),
              " it has no values, which the size of the result depends on");
  if (x.numel() == 0) return Tensor::empty({0, x.ndim()}, DType::kInt64, x.device());
  const Tensor mask = contiguous(x.dtype() == DType::kBool ? x.detach() : elementwise(ElementwiseOp::kNe, x, Scalar{}));
  const int64_t portion = kernels::nonzero_portion(mask.numel(), x.device().is_cuda());
  const Tensor counts = Tensor::empty({(mask.numel() + portion - 1) / portion}, DType::kInt64, x.device());
  submit(Call(kNonzero, {mask}, {counts}, {}, Cost{0, 0, mask.nbytes(), counts.nbytes()}, variant));
  const Tensor host = to_device(counts, Device{});
  const int64_t found = std::accumulate(host.data<int64_t>(), host.data<int64_t>() + host.numel(), int64_t{0});
  const Tensor places = Tensor::empty({found, x.ndim()}, DType::kInt64, x.device());
  if (places.numel() == 0) return places;
  submit(Call(kNonzero, {mask, counts}, {places}, {}, Cost{0, 0, mask.nbytes() + counts.nbytes(), places.nbytes()},
              variant));
  return places;
}

}  // namespace rooflab
