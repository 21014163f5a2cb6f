// cumsum: running sums along a dimension.
#include "kernels/cumsum/cumsum.h"

#include "core/range.h"
#include "ops/autocast.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::CumsumArgs;

struct Options {
  int64_t dim;
  bool from_the_end;
};

void run(const Call<Options>& call) {
  const Tensor& y = call.outputs[0];
  const int64_t dim = call.options.dim;
  const Tensor from = along_axis(call.inputs[0], dim), to = along_axis(y, dim);
  CumsumArgs args{from.data(),    to.data(),      from.size(0), from.size(1), from.size(2), from.stride(0),
                  from.stride(1), from.stride(2), to.stride(0), to.stride(1), to.stride(2), from.dtype()};
  if (call.options.from_the_end) {
    const int64_t last = args.n - 1;
    args.x = static_cast<const char*>(args.x) + last * args.x_stride * size_of(from.dtype());
    args.y = static_cast<char*>(args.y) + last * args.y_stride * size_of(y.dtype());
    args.x_stride = -args.x_stride;
    args.y_stride = -args.y_stride;
  }
  run_rung(kernels::cumsum_ladder, call, args);
}

const Op<Options> kOp("cumsum", run);

// The gradient of sums from the beginning is sums from the end, and vice versa.
Tensor running_sum(const Tensor& x, int64_t dim, bool from_the_end, std::string_view variant = {}) {
  const OpScope scope("cumsum");
  Tensor y = Tensor::empty(x.shape(), is_floating(x.dtype()) ? x.dtype() : DType::kInt64, x.device());
  const Cost cost{0, x.numel(), compulsory_bytes({x}), y.nbytes()};
  return submit(Call(kOp, {x}, {y}, {dim, from_the_end}, cost, variant), autograd::saving(),
                [dim, from_the_end](const Tensor& dy) { return running_sum(dy, dim, !from_the_end); });
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim, std::string_view variant) {
  if (const auto dtype = autocast::wanted("cumsum", {&x})) return cumsum(autocast::in(*dtype, x), dim, variant);
  return running_sum(x, normalize_dim(dim, x.ndim(), "cumsum"), false, variant);
}

}  // namespace rooflab
