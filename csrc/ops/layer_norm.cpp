// layer_norm: checks, cost and ladder.
#include "kernels/layer_norm/layer_norm.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/compulsory_bytes.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::LayerNormArgs;
using enum Device::Type;

const Ladder<LayerNormArgs> kLadder(
    "layer_norm",
    {
        {"v2_one_pass", kCuda, "the row waits in registers, 16-byte accesses; aligned rows of up to 32768 elements",
         kernels::layer_norm_cuda_v2_accepts, kernels::layer_norm_cuda_v2_one_pass},
        {"v1_block_per_row", kCuda, "a block a row, neighbours on neighbours", nullptr,
         kernels::layer_norm_cuda_v1_block_per_row},
        {"v0_reference", kCuda, "a thread a row, in double", nullptr, kernels::layer_norm_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads, a row at a time through L1", nullptr, kernels::layer_norm_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, in double", nullptr, kernels::layer_norm_cpu_v0_reference},
    });

constexpr int64_t kFlops = 7;  // an element

}  // namespace

Tensor layer_norm(const Tensor& x, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, double eps,
                  std::string_view variant) {
  const OpScope scope("layer_norm");
  check_floating("layer_norm", "x", x);
  RL_CHECK(x.ndim() > 0, "layer_norm", "x: expected (..., D), got ()");
  const std::optional<Tensor> gain = check_parameter("layer_norm", "weight", x, weight);
  const std::optional<Tensor> offset = check_parameter("layer_norm", "bias", x, bias);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (y.numel() == 0) return y;
  const Rows rows = as_rows(x);
  const LayerNormArgs args{rows.x.data(),
                           gain ? gain->data() : nullptr,
                           offset ? offset->data() : nullptr,
                           y.data(),
                           rows.n,
                           rows.d,
                           rows.stride,
                           eps,
                           x.dtype()};
  const int64_t read =
      compulsory_bytes(x) + (weight ? compulsory_bytes(*weight) : 0) + (bias ? compulsory_bytes(*bias) : 0);
  kLadder.run(x.device(), args, Cost{0, kFlops * x.numel(), read, y.nbytes()}, variant);
  return y;
}

}  // namespace rooflab
