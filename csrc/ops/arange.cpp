// arange: evenly spaced numbers.
#include "kernels/arange/arange.h"

#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

struct Options {
  Scalar first, step;
  bool in_integers;
};

void run(const Call<Options>& call) {
  const Tensor& y = call.outputs[0];
  const auto& [first, step, in_integers] = call.options;
  run_rung(kernels::arange_ladder, call, kernels::ArangeArgs{y.data(), y.numel(), first, step, in_integers, y.dtype()});
}

const Op<Options> kArange("arange", run);

}  // namespace

Tensor arange(int64_t count, Scalar first, Scalar step, bool in_integers, DType dtype, Device device) {
  const OpScope scope("arange");
  Tensor y = Tensor::empty({count}, dtype, device);
  submit(Call(kArange, {}, {y}, {first, step, in_integers}, Cost{0, 0, 0, y.nbytes()}));
  return y;
}

}  // namespace rooflab
