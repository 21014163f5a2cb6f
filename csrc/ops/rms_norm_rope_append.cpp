// rms_norm_rope_append: checks and cost; and the version that is composed of other ops.
#include "kernels/rms_norm_rope_append/rms_norm_rope_append.h"

#include <algorithm>

#include "autograd/tape.h"
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/attention_operands.h"
#include "ops/autocast.h"
#include "ops/kv_append.h"
#include "ops/ops.h"
#include "ops/rope_operands.h"
#include "ops/rows.h"
#include "ops/rung.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

constexpr const char* kName = "rms_norm_rope_append";
constexpr int64_t kFlops = 3 + 1 + 3;  // per element of q and k: the norm, the weight, rope

enum Input { kQ, kK, kV, kQWeight, kKWeight, kCos, kSin, kPosition };

struct Options {
  double eps;
  bool zero_centered;
};

struct Operands {
  RopeOperands q;
  Tensor k, v, q_weight, k_weight;
  kernels::RmsNormRopeAppendArgs args;

  explicit Operands(const Call<Options>& call)
      : q(call.inputs[kQ], call.inputs[kCos], call.inputs[kSin], call.outputs[0], false),
        k(operand_as(call.inputs[kK], as_heads(call.inputs[kK]))),
        v(operand_as(call.inputs[kV], as_heads(call.inputs[kV]))),
        q_weight(as_parameter(call.inputs[kQWeight])),
        k_weight(as_parameter(call.inputs[kKWeight])),
        args{{q.args, q_weight.data(), call.options.eps, call.options.zero_centered},
             append_args(call.outputs[1], call.outputs[2], k, v, call.inputs[kPosition]),
             k_weight.data()} {}
};

void run(const Call<Options>& call) { run_rung(kernels::rms_norm_rope_append_ladder, call, Operands(call).args); }

const Op<Options> kOp(kName, run, kLooks);

}  // namespace

Tensor rms_norm_rope_append(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& q_weight,
                            const Tensor& k_weight, const Tensor& cos, const Tensor& sin, const Tensor& k_cache,
                            const Tensor& v_cache, const Tensor& position, double eps, bool zero_centered,
                            std::string_view variant) {
  const OpScope scope(kName);
  Trace::refuse(kName, "a write of some tokens of a cache cannot be recorded; call it outside of the function");
  check_rope(kName, q, cos, sin);
  check_rope(kName, k, cos, sin);
  check_parameter(kName, "q_weight", q, q_weight);
  check_parameter(kName, "k_weight", k, k_weight);
  check_eps(kName, eps);
  check_append(kName, k_cache, v_cache, k, v, position);
  RL_CHECK(q.ndim() == 4 && q.size(0) == k.size(0), kName, "q: expected (B=", k.size(0), ", H, L=", k.size(2),
           ", D_h=", k.size(3), "), got ", q.shape());

  Tensors inputs{q, k, v, q_weight, k_weight, cos, sin, position};
  for (Tensor& x : inputs)
    if (x.overlaps(k_cache) || x.overlaps(v_cache)) x = copy(x);
  const Cost cost{0, (kFlops + zero_centered) * (q.numel() + k.numel()), compulsory_bytes(inputs),
                  q.nbytes() + 2 * k.nbytes()};
  Call call(kOp, std::move(inputs), {empty_rope_result(q), k_cache, v_cache}, {eps, zero_centered}, cost, variant);
  const auto& ladder = kernels::rms_norm_rope_append_ladder;
  call.rung = ladder.choose(q.device(), Operands(call).args, variant, kName);
  const bool is_one = !autograd::recording(q, k, q_weight, k_weight) && q.numel() > 0 && k.numel() > 0 &&
                      !autocast::wanted("rms_norm_rope", {&q, &k, &q_weight, &k_weight, &cos, &sin});
  if (!is_one || ladder.composes(call.rung)) {
    const auto placed = [&](const Tensor& x, const Tensor& weight) {
      return rms_norm_rope(x, weight, cos, sin, eps, zero_centered);
    };
    const Tensor y = placed(q, q_weight);  // before the caches are written, which may share its memory
    kv_append(k_cache, v_cache, cast(placed(k, k_weight), k_cache.dtype()), v, position);
    scope.done();  // its parts have counted their work
    return y;
  }
  submit(call);
  k_cache.storage()->bump_version();
  v_cache.storage()->bump_version();
  return call.outputs[0];
}

}  // namespace rooflab
