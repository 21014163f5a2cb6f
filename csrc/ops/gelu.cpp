// gelu: checks, cost and ladder.
#include "kernels/gelu/gelu.h"

#include <algorithm>

#include "autograd/tape.h"
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/compulsory_bytes.h"
#include "ops/ops.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::GeluArgs;
using enum Device::Type;

const Ladder<GeluArgs> kLadder(
    "gelu",
    {
        {"v2_vectorised", kCuda, "16-byte accesses; contiguous and aligned", kernels::gelu_cuda_v2_accepts,
         kernels::gelu_cuda_v2_vectorised},
        {"v1_fused", kCuda, "one element a thread, in float, any strides", nullptr, kernels::gelu_cuda_v1_fused},
        {"v0_reference", kCuda, "one element a thread, in double", nullptr, kernels::gelu_cuda_v0_reference},
        {"v2_streaming", kCpu, "stores go around the cache; more than fits in it", kernels::gelu_cpu_v2_accepts,
         kernels::gelu_cpu_v2_streaming},
        {"v1_simd", kCpu, "SIMD, all threads, any strides", nullptr, kernels::gelu_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, in double", nullptr, kernels::gelu_cpu_v0_reference},
    });

constexpr int64_t kFlops = 8;  // an element

// y = x (1 + tanh u) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3). Beyond 10, tanh is 1 in every dtype and powers of x
// would overflow.
Tensor gradient(const Tensor& dy, const Tensor& x_in) {
  using enum ElementwiseOp;
  constexpr double kSlope = 0.7978845608028654, kCube = 0.044715;
  const Tensor x = elementwise(kMinimum, elementwise(kMaximum, widen(x_in), Scalar{-10}), Scalar{10});
  const Tensor x2 = x * x;
  const Tensor t = elementwise(kTanh, kSlope * x * (1 + kCube * x2));
  const Tensor du = kSlope * (1 + 3 * kCube * x2);
  return dy * cast(0.5 * (1 + t) * (1 + x * (1 - t) * du), x_in.dtype());
}

}  // namespace

Tensor gelu(const Tensor& x, std::string_view variant) {
  const OpScope scope("gelu");
  check_floating("gelu", "x", x);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (autograd::recording(x)) autograd::record("gelu", y, {x}, autograd::saving(x), gradient);
  if (y.numel() == 0) return y;
  GeluArgs args;
  args.x = x.data();
  args.y = y.data();
  args.dtype = x.dtype();
  args.count = x.numel();
  args.ndim = std::max(x.ndim(), 1);
  if (x.is_contiguous()) {
    args.ndim = 1;
    args.sizes[0] = x.numel();
    args.strides[0] = 1;
  } else {
    std::copy(x.shape().begin(), x.shape().end(), args.sizes);
    std::copy(x.strides().begin(), x.strides().end(), args.strides);
  }
  kLadder.run(x.device(), args, Cost{0, kFlops * x.numel(), compulsory_bytes(x), y.nbytes()}, variant);
  return y;
}

}  // namespace rooflab
