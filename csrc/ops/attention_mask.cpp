// attention_mask: checks and cost.
#include "kernels/attention_mask/attention_mask.h"

#include "core/range.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::AttentionMaskArgs;

struct Options {
  bool is_causal;
  int64_t window;
};

void run(const Call<Options>& call) {
  const Tensor& y = call.outputs[0];
  run_rung(kernels::attention_mask_ladder, call,
           AttentionMaskArgs{y.data<bool>(), y.size(0), y.size(1), call.options.is_causal, call.options.window});
}

const Op<Options> kOp("attention_mask", run);

}  // namespace

Tensor attention_mask(int64_t q_length, int64_t kv_length, bool is_causal, std::optional<int64_t> window,
                      Device device) {
  const OpScope scope("attention_mask");
  RL_CHECK(!window || *window > 0, "attention_mask", "window: expected > 0, got ", window.value_or(0));
  Tensor y = Tensor::empty({q_length, kv_length}, DType::kBool, device);
  const int64_t unlimited = q_length + kv_length;
  const int64_t seen = std::min(window.value_or(unlimited), unlimited);
  submit(Call(kOp, {}, {y}, {is_causal, seen}, Cost{0, 0, 0, y.nbytes()}));
  return y;
}

}  // namespace rooflab
