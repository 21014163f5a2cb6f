// attention: checks, cost and backward rule; and the textbook version, composed of other ops.
#include "kernels/attention/attention.h"

#include <cmath>

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/attention_operands.h"
#include "ops/autocast.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::AttentionArgs;
using enum ElementwiseOp;

constexpr int64_t kSoftmaxFlops = 5;  // per visible pair

// Each step is an op of its own, which counts itself. The gradients are attention_backward's.
AttentionResult composed_attention(const AttentionOperands& operands, bool return_lse, bool return_rest) {
  const autograd::GradMode off(false);
  Tensor scores = masked_scores(operands);
  const std::optional<Tensor> hidden = hidden_pairs(operands, scores);
  std::optional<Tensor> sees_nothing;
  if (may_see_nothing(operands.args))  // softmax makes such rows uniform; they are set to zero
    sees_nothing = elementwise(kEq, amax(scores, {-1}, true), Scalar{-INFINITY, 0});
  if (sees_nothing) scores = where(*sees_nothing, Scalar{}, scores);
  AttentionResult result;
  if (return_lse) {
    const Tensor wide = widen(scores);
    const Tensor top = amax(wide, {-1}, true);
    const Tensor log_sum = elementwise(kLog, sum(elementwise(kExp, wide - top), {-1}, true));
    Tensor lse = top + log_sum;
    if (return_rest) result.lse_rest = ((top - lse) + log_sum).squeeze(-1);
    if (sees_nothing) lse = where(*sees_nothing, Scalar{-INFINITY, 0}, lse);
    result.lse = lse.squeeze(-1);
  }
  Tensor weights = softmax(scores, -1);
  if (sees_nothing) weights = where(*sees_nothing, Scalar{}, weights);
  result.out = heads_product(weights, values_that_count(operands), hidden);
  return result;
}

// lse and its rest are one tensor (1 or 2, B, H, L_q).
Tensor unfilled_lse(const AttentionOperands& operands, bool return_rest) {
  const AttentionArgs& args = operands.args;
  return Tensor::empty({1 + return_rest, args.batch, args.heads, args.q_length}, lse_dtype(args.dtype),
                       operands.q.device());
}

AttentionResult result_of(const Tensor& out, const std::optional<Tensor>& lse) {
  AttentionResult result{out, std::nullopt, std::nullopt};
  if (lse) result.lse = lse->select(0, 0);
  if (lse && lse->size(0) > 1) result.lse_rest = lse->select(0, 1);
  return result;
}

void run(const Call<AttentionCallOptions>& call) {
  const AttentionOperands operands = attention_operands(call);
  AttentionArgs args = operands.args;
  const Tensor& out = call.outputs[0];
  args.out = out.data();
  args.out_strides = attention_strides(out);
  if (call.outputs.size() > 1) {
    const Tensor& lse = call.outputs[1];
    args.lse = lse.data<float>();
    if (lse.size(0) > 1) args.lse_rest = args.lse + lse.numel() / 2;
  }
  run_rung(kernels::attention_ladder, call, args);
}

const Op<AttentionCallOptions> kOp("attention", run);

AttentionResult fused_attention(const AttentionOperands& operands, const AttentionOptions& options, bool return_lse,
                                bool return_rest, std::string_view variant, int rung) {
  const AttentionArgs& args = operands.args;
  Tensors outputs{empty_laid_out_like(operands.q)};
  if (return_lse) outputs.push_back(unfilled_lse(operands, return_rest));
  const int64_t pairs = args.batch * args.heads * visible_pairs(args), macs = 2 * pairs * args.head_size;
  const int64_t flops =
      flops_of("attention", {args.batch, args.heads, visible_pairs(args), 4 * args.head_size + kSoftmaxFlops},
               operands.q.shape(), operands.k.shape());
  Cost cost{macs, flops, compulsory_bytes(operands.tensors()), 0};
  for (const Tensor& output : outputs) cost.bytes_written += output.nbytes();
  submit(Call(kOp, operands.tensors(), outputs, call_options(operands, options.deterministic), cost, variant, rung));
  return result_of(outputs[0], return_lse ? std::optional(outputs[1]) : std::nullopt);
}

// The result where there are no keys, or nothing to compute.
AttentionResult empty_attention(const AttentionOperands& operands, bool return_lse, bool return_rest) {
  const Tensor out = empty_laid_out_like(operands.q);
  fill(out, {});
  if (!return_lse) return result_of(out, std::nullopt);
  const Tensor lse = unfilled_lse(operands, return_rest);
  fill(lse.select(0, 0), {-INFINITY, 0});
  if (return_rest) fill(lse.select(0, 1), {});
  return result_of(out, lse);
}

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
                          const AttentionOptions& options, bool return_lse, std::string_view variant,
                          bool return_rest) {
  if (const auto dtype = autocast::wanted("attention", {&q, &k, &v, autocast::operand(mask)}))
    return attention(autocast::in(*dtype, q), autocast::in(*dtype, k), autocast::in(*dtype, v),
                     autocast::in(*dtype, mask), options, return_lse, variant, return_rest);
  const OpScope scope("attention");
  const AttentionOperands operands = attention_operands("attention", q, k, v, mask, options);
  const bool is_empty = operands.q.numel() == 0 || operands.k.numel() == 0;
  const auto& ladder = kernels::attention_ladder;
  const int rung = ladder.choose(q.device(), operands.args, variant, kOp.name);
  bool composes = ladder.composes(rung);
  if (autograd::recording(mask) && !composes) {
    RL_CHECK(variant.empty(), "attention", "attn_mask: requires grad, and only v0_composed has a gradient for it, not ",
             variant);
    composes = true;
  }
  const bool records = autograd::recording(q, k, v, mask), of_mask = autograd::recording(mask);
  RL_CHECK(!records || !options.kv_length, "attention", "kv_length: no gradient goes through it; use rl.no_grad()");
  // The backward pass needs both, except the composed one, which computes the weights as the forward pass does.
  const bool with_lse = return_lse || (records && !composes), with_rest = return_rest || (records && !composes);
  AttentionResult result = is_empty   ? empty_attention(operands, with_lse, with_rest)
                           : composes ? composed_attention(operands, with_lse, with_rest)
                                      : fused_attention(operands, options, with_lse, with_rest, variant, rung);
  if (is_empty || composes) scope.done();  // its parts have counted their work
  if (q.ndim() == 3) {
    result.out = squeeze(result.out, 0);
    if (result.lse) result.lse = result.lse->squeeze(0);
    if (result.lse_rest) result.lse_rest = result.lse_rest->squeeze(0);
  }
  if (records)
    autograd::record("attention", result.out, {q, k, v, mask},
                     autograd::saving(q, k, v, result.out, result.lse, result.lse_rest, mask),
                     [options, of_mask, variant = composes ? "v0_composed" : ""](
                         const Gradients& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                         const Tensor& lse, const Tensor& lse_rest, const Tensor& mask) -> Tensors {
                       const auto optional = [](const Tensor& x) {
                         return x.defined() ? std::optional(x) : std::nullopt;
                       };
                       auto [dq, dk, dv, dmask] = attention_backward(dout, q, k, v, out, lse, optional(lse_rest),
                                                                     optional(mask), options, variant, of_mask);
                       return {dq, dk, dv, dmask};
                     });
  if (!return_lse) result.lse.reset();
  return result;
}

}  // namespace rooflab
