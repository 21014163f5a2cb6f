// attention_mask: checks, cost and ladder.
#include "kernels/attention_mask/attention_mask.h"

#include "core/range.h"
#include "ops/ops.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::AttentionMaskArgs;
using enum Device::Type;

const Ladder<AttentionMaskArgs> kLadder("attention_mask", {{"v0_reference", kCuda, "one element per thread", nullptr,
                                                            kernels::attention_mask_cuda_v0_reference},
                                                           {"v0_reference", kCpu, "one thread", nullptr,
                                                            kernels::attention_mask_cpu_v0_reference}});

void run(const Call& call) {
  const Tensor& y = call.outputs[0];
  kLadder.run(call, AttentionMaskArgs{y.data<bool>(), y.size(0), y.size(1), call.get<bool>("is_causal"),
                                      call.get<int64_t>("window")});
}

const Op kOp("attention_mask", run);

}  // namespace

Tensor attention_mask(int64_t q_length, int64_t kv_length, bool is_causal, std::optional<int64_t> window,
                      Device device) {
  const OpScope scope("attention_mask");
  RL_CHECK(!window || *window > 0, "attention_mask", "window: expected > 0, got ", window.value_or(0));
  Tensor y = Tensor::empty({q_length, kv_length}, DType::kBool, device);
  const int64_t unlimited = q_length + kv_length;
  const int64_t seen = std::min(window.value_or(unlimited), unlimited);
  submit({&kOp, {}, {y}, {{"is_causal", is_causal}, {"window", seen}}, Cost{0, 0, 0, y.nbytes()}, {}});
  return y;
}

}  // namespace rooflab
