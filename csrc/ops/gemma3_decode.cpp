// gemma3_decode: cost and operands.
#include "ops/gemma3_decode.h"

#include "kernels/gemma3_decode/gemma3_decode.h"
#include "ops/attention_operands.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::Gemma3DecodeArgs;

// The order of a call's inputs; its outputs are y and the two caches.
enum Input {
  kX,
  kQkv,
  kO,
  kGateUp,
  kDown,
  kInputNorm,
  kPostAttentionNorm,
  kPreFeedforwardNorm,
  kPostFeedforwardNorm,
  kQNorm,
  kKNorm,
  kCos,
  kSin,
  kPosition
};

struct Options {
  double scale, eps;
};

Gemma3DecodeArgs decode_args(const Call<Options>& call) {
  const Tensors& in = call.inputs;
  const Tensor &k = call.outputs[1], &v = call.outputs[2];
  Gemma3DecodeArgs args{};
  args.x = in[kX].data();
  args.y = call.outputs[0].data();
  args.qkv = in[kQkv].data();
  args.o = in[kO].data();
  args.gate_up = in[kGateUp].data();
  args.down = in[kDown].data();
  args.input_norm = in[kInputNorm].data();
  args.post_attention_norm = in[kPostAttentionNorm].data();
  args.pre_feedforward_norm = in[kPreFeedforwardNorm].data();
  args.post_feedforward_norm = in[kPostFeedforwardNorm].data();
  args.q_norm = in[kQNorm].data();
  args.k_norm = in[kKNorm].data();
  args.cos = in[kCos].data();
  args.sin = in[kSin].data();
  args.k_cache = k.data();
  args.v_cache = v.data();
  args.position = in[kPosition].data<int64_t>();
  args.batch = in[kX].size(0);
  args.model = in[kX].size(2);
  args.intermediate = in[kDown].size(1);
  args.head_size = k.size(3);
  args.heads = in[kO].size(1) / args.head_size;
  args.kv_heads = k.size(1);
  args.capacity = k.size(2);
  args.angle_stride = in[kCos].size(0) == 1 ? 0 : args.head_size;
  args.k_strides = attention_strides(k);
  args.v_strides = attention_strides(v);
  args.scale = call.options.scale;
  args.eps = call.options.eps;
  args.dtype = in[kX].dtype();
  return args;
}

void run(const Call<Options>& call) { run_rung(kernels::gemma3_decode_ladder, call, decode_args(call)); }

const Op<Options> kOp("gemma3_decode", run);

// FLOPs per element besides the products': norms with zero-centered weights, norms with rope, sums, GeGLU, softmax.
constexpr int64_t kNormFlops = 5, kNormRopeFlops = 8, kSumFlops = 1, kGegluFlops = 9, kSoftmaxFlops = 5;

Cost cost_of(const Gemma3DecodeArgs& args, const Tensors& inputs, int64_t keys) {
  const int64_t wide = args.heads * args.head_size, narrow = args.kv_heads * args.head_size;
  const int64_t weights = args.model * (2 * wide + 2 * narrow + 3 * args.intermediate);
  const int64_t pairs = args.batch * args.heads * keys;
  const int64_t macs = args.batch * weights + 2 * pairs * args.head_size;
  const int64_t of_a_text = (4 * kNormFlops + 2 * kSumFlops) * args.model + kNormRopeFlops * (wide + narrow) +
                            kGegluFlops * args.intermediate;
  const int64_t rows = 2 * args.batch * narrow * size_of(args.dtype);  // keys and values, over all texts
  return {macs, 2 * macs + args.batch * of_a_text + kSoftmaxFlops * pairs,
          compulsory_bytes(inputs) + std::max<int64_t>(keys - 1, 0) * rows, inputs[kX].nbytes() + rows};
}

}  // namespace

std::optional<Tensor> gemma3_decode(const Gemma3DecodeOperands& operands, std::string_view variant) {
  const Gemma3DecodeOperands& o = operands;
  check_eps("gemma3_decode", o.eps);
  Call call(kOp,
            {o.x, o.qkv, o.o, o.gate_up, o.down, o.input_norm, o.post_attention_norm, o.pre_feedforward_norm,
             o.post_feedforward_norm, o.q_norm, o.k_norm, o.cos, o.sin, o.position},
            {o.x, o.k_cache, o.v_cache},  // y is not allocated before it is known to be needed
            {o.scale, o.eps}, {}, variant);
  const Gemma3DecodeArgs args = decode_args(call);
  const auto& ladder = kernels::gemma3_decode_ladder;
  call.rung = ladder.choose(o.x.device(), args, variant, kOp.name);
  if (ladder.composes(call.rung)) return std::nullopt;
  call.outputs[0] = Tensor::empty(o.x.shape(), o.x.dtype(), o.x.device());
  call.cost = cost_of(args, call.inputs, o.keys);
  submit(call);
  o.k_cache.storage()->bump_version();
  o.v_cache.storage()->bump_version();
  return call.outputs[0];
}

}  // namespace rooflab
