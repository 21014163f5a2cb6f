// attention_backward: checks and cost; and the textbook version, composed of other ops.
#include "kernels/attention/attention_backward.h"

#include <cmath>

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/attention_operands.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::AttentionBackwardArgs;
using enum ElementwiseOp;

constexpr int64_t kPairFlops = 4;    // per visible pair: two subtractions (lse is one number), exp, product
constexpr int64_t kOutputFlops = 2;  // per element of out, for D

// `mask` is the one whose gradient is wanted, if any.
AttentionGradients composed_backward(const AttentionOperands& operands, const Tensor& dout, const Tensor& out,
                                     const std::optional<Tensor>& mask) {
  const int64_t kv_heads = operands.k.size(1), rows = operands.q.size(2) * operands.q.size(1) / kv_heads;
  const auto grouped = [&](const Tensor& x) { return reshape(x, {x.size(0), kv_heads, rows, x.size(3)}); };
  const Tensor scores = masked_scores(operands);
  const std::optional<Tensor> hidden = hidden_pairs(operands, scores);
  const auto transposed_product = [&](const Tensor& a, const Tensor& b) {  // a^T b, summed over the heads of a group
    const auto transposed = [&](const Tensor& x) { return grouped(x).transpose(-2, -1); };
    return heads_product(transposed(a), grouped(b), hidden ? std::optional(transposed(*hidden)) : std::nullopt);
  };
  Tensor p = softmax(scores, -1);
  if (hidden) p = where(*hidden, Scalar{}, p);  // also where a query sees nothing: softmax makes such rows uniform
  const Tensor dp = heads_product(dout, operands.v.transpose(-2, -1));
  Tensor ds = p * (dp - sum(out * dout, {-1}, true));
  if (hidden) ds = where(*hidden, Scalar{}, ds);  // there, dP may be NaN
  AttentionGradients grads;
  if (mask) grads.dmask = sum_to(ds, mask->shape());
  ds = ds * operands.scale;
  grads.dq = heads_product(ds, operands.k);
  grads.dk = transposed_product(ds, operands.q);
  grads.dv = transposed_product(p, dout);
  return grads;
}

AttentionGradients unfilled_gradients(const AttentionOperands& operands) {
  return {empty_laid_out_like(operands.q), empty_laid_out_like(operands.k), empty_laid_out_like(operands.v), {}};
}

AttentionGradients zero_gradients(const AttentionOperands& operands, const std::optional<Tensor>& mask) {
  AttentionGradients grads = unfilled_gradients(operands);
  for (const Tensor* x : {&grads.dq, &grads.dk, &grads.dv}) fill(*x, {});
  if (mask) fill(grads.dmask = Tensor::empty(mask->shape(), mask->dtype(), mask->device()), {});
  return grads;
}

// The arguments except dq, dk and dv.
AttentionBackwardArgs backward_args(const AttentionOperands& operands, const Tensor& dout, const Tensor& out,
                                    const Tensor& lse, const Tensor& lse_rest, bool deterministic) {
  AttentionBackwardArgs args{};
  args.forward = operands.args;
  args.forward.out = out.data();
  args.forward.out_strides = attention_strides(out);
  if (args.forward.dtype != DType::kFloat64 && lse.defined()) {  // the composed rung needs neither
    args.forward.lse = lse.data<float>();
    if (lse_rest.defined()) args.forward.lse_rest = lse_rest.data<float>();
  }
  args.dout = dout.data();
  args.dout_strides = attention_strides(dout);
  args.dq_strides = strides_laid_out_like(operands.q);
  args.dk_strides = strides_laid_out_like(operands.k);
  args.dv_strides = strides_laid_out_like(operands.v);
  args.deterministic = deterministic;
  return args;
}

void run(const Call<AttentionCallOptions>& call) {
  const AttentionOperands operands = attention_operands(call);
  AttentionBackwardArgs args = backward_args(operands, call.inputs[5], call.inputs[6], call.inputs[7], call.inputs[8],
                                             call.options.deterministic);
  args.dq = call.outputs[0].data();
  args.dk = call.outputs[1].data();
  args.dv = call.outputs[2].data();
  run_rung(kernels::attention_backward_ladder, call, args);
}

const Op<AttentionCallOptions> kOp("attention_backward", run);

AttentionGradients fused_backward(const AttentionOperands& operands, const Tensor& dout, const Tensor& out,
                                  const Tensor& lse, const Tensor& lse_rest, const AttentionOptions& options,
                                  std::string_view variant, int rung) {
  const AttentionGradients grads = unfilled_gradients(operands);
  const kernels::AttentionArgs& forward = operands.args;
  const int64_t pairs = forward.batch * forward.heads * visible_pairs(forward), macs = 5 * pairs * forward.head_size;
  const int64_t flops = flops_of(
      "attention_backward", {forward.batch, forward.heads, visible_pairs(forward), 10 * forward.head_size + kPairFlops},
      operands.q.shape(), operands.k.shape());
  Tensors inputs = operands.tensors();
  inputs.insert(inputs.end(), {dout, out, lse, lse_rest});
  const Cost cost{macs, flops + kOutputFlops * out.numel(), compulsory_bytes(inputs),
                  grads.dq.nbytes() + grads.dk.nbytes() + grads.dv.nbytes()};
  submit(Call(kOp, inputs, {grads.dq, grads.dk, grads.dv}, call_options(operands, options.deterministic), cost, variant,
              rung));
  return grads;
}

void check_like(const char* argument, const Tensor& x, const Tensor& q) {
  check_same_device("attention_backward", q, x);
  check_same_dtype("attention_backward", q, x);
  RL_CHECK(x.shape() == q.shape(), "attention_backward", argument, ": expected the shape of q ", q.shape(), ", got ",
           x.shape());
}

void check_lse(const char* argument, const Tensor& lse, const Tensor& q) {
  const DType wanted = lse_dtype(q.dtype());
  const Shape shape(q.shape().begin(), q.shape().end() - 1);
  check_same_device("attention_backward", q, lse);
  RL_CHECK(lse.shape() == shape && lse.dtype() == wanted, "attention_backward", argument, ": expected ", name(wanted),
           " ", shape, ", got ", name(lse.dtype()), " ", lse.shape());
}

}  // namespace

AttentionGradients attention_backward(const Tensor& dout_in, const Tensor& q, const Tensor& k, const Tensor& v,
                                      const Tensor& out_in, const Tensor& lse_in,
                                      const std::optional<Tensor>& lse_rest_in, const std::optional<Tensor>& mask,
                                      const AttentionOptions& options, std::string_view variant, bool of_mask) {
  const OpScope scope("attention_backward");
  const AttentionOperands operands = attention_operands("attention_backward", q, k, v, mask, options);
  check_like("dout", dout_in, q);
  check_like("out", out_in, q);
  const auto rows = [&](const char* argument, const Tensor& x) {  // lse or its rest
    if (!x.defined()) return x;
    check_lse(argument, x, q);
    return contiguous(q.ndim() == 3 ? x.unsqueeze(0) : x);
  };
  const Tensor dout = as_heads(dout_in), out = as_heads(out_in), lse = rows("lse", lse_in),
               lse_rest = rows("lse_rest", lse_rest_in.value_or(Tensor()));

  const AttentionBackwardArgs args = backward_args(operands, dout, out, lse, lse_rest, options.deterministic);
  const auto& ladder = kernels::attention_backward_ladder;
  const int rung = ladder.choose(q.device(), args, variant, kOp.name);
  const bool composes = ladder.composes(rung);
  const bool is_empty = operands.q.numel() == 0 || operands.k.numel() == 0;
  const std::optional<Tensor> wanted = of_mask ? mask : std::nullopt;
  const AttentionGradients grads = is_empty ? zero_gradients(operands, wanted)
                                   : composes
                                       ? composed_backward(operands, dout, out, wanted)
                                       : fused_backward(operands, dout, out, lse, lse_rest, options, variant, rung);
  if (is_empty || composes) scope.done();  // its parts have counted their work

  if (q.ndim() == 4) return grads;
  return {grads.dq.select(0, 0), grads.dk.select(0, 0), grads.dv.select(0, 0), grads.dmask};
}

}  // namespace rooflab
