// arange and linspace: evenly spaced numbers.
#include "kernels/arange/arange.h"

#include <optional>

#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

struct Options {
  Scalar first, step;
  bool in_integers;
  std::optional<double> last;
};

void run(const Call<Options>& call) {
  const Tensor& y = call.outputs[0];
  const auto& [first, step, in_integers, last] = call.options;
  run_rung(kernels::arange_ladder, call,
           kernels::ArangeArgs{y.data(), y.numel(), first, step, in_integers, last.has_value(), last.value_or(0),
                               y.dtype()});
}

const Op<Options> kArange("arange", run), kLinspace("linspace", run);

}  // namespace

Tensor arange(int64_t count, Scalar first, Scalar step, bool in_integers, DType dtype, Device device) {
  const OpScope scope("arange");
  Tensor y = Tensor::empty({count}, dtype, device);
  submit(Call(kArange, {}, {y}, {first, step, in_integers, {}}, Cost{0, 0, 0, y.nbytes()}));
  return y;
}

Tensor linspace(double start, double end, int64_t steps, DType dtype, Device device) {
  const OpScope scope("linspace");
  const double step = (end - start) / static_cast<double>(std::max<int64_t>(steps - 1, 1));
  Tensor y = Tensor::empty({steps}, dtype, device);
  submit(Call(kLinspace, {}, {y}, {{start, 0}, {step, 0}, false, steps > 1 ? std::optional(end) : std::nullopt},
              Cost{0, 0, 0, y.nbytes()}));
  return y;
}

}  // namespace rooflab
