// gemma3_decode: cost and operands.
#include "ops/gemma3_decode.h"

#include "kernels/gemma3_decode/gemma3_decode.h"
#include "ops/attention_operands.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::Gemma3DecodeArgs;
using kernels::Gemma3DecodeLayer;
static_assert(kGemma3DecodeLayers == kernels::kDecodeMaxLayers);

// The order of a call's inputs: x, the position, and then those of each layer. Its outputs are y and each layer's two
// caches.
enum Input { kX, kPosition, kFirstLayer };
enum LayerInput {
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
  kLayerInputs
};

struct Options {
  double scale, eps;
};

Gemma3DecodeLayer layer_args(const Tensor* in, const Tensor& k, const Tensor& v) {
  Gemma3DecodeLayer layer{};
  layer.qkv = in[kQkv].data();
  layer.o = in[kO].data();
  layer.gate_up = in[kGateUp].data();
  layer.down = in[kDown].data();
  layer.input_norm = in[kInputNorm].data();
  layer.post_attention_norm = in[kPostAttentionNorm].data();
  layer.pre_feedforward_norm = in[kPreFeedforwardNorm].data();
  layer.post_feedforward_norm = in[kPostFeedforwardNorm].data();
  layer.q_norm = in[kQNorm].data();
  layer.k_norm = in[kKNorm].data();
  layer.cos = in[kCos].data();
  layer.sin = in[kSin].data();
  layer.k_cache = k.data();
  layer.v_cache = v.data();
  layer.k_strides = attention_strides(k);
  layer.v_strides = attention_strides(v);
  layer.capacity = k.size(2);
  layer.angle_stride = in[kCos].size(0) == 1 ? 0 : k.size(3);
  return layer;
}

Gemma3DecodeArgs decode_args(const Call<Options>& call) {
  const Tensors &in = call.inputs, &out = call.outputs;
  const Tensor *first = &in[kFirstLayer], &k = out[1];
  Gemma3DecodeArgs args{};
  args.x = in[kX].data();
  args.y = out[0].data();
  args.position = in[kPosition].data<int64_t>();
  args.batch = in[kX].size(0);
  args.model = in[kX].size(2);
  args.intermediate = first[kDown].size(1);
  args.head_size = k.size(3);
  args.heads = first[kO].size(1) / args.head_size;
  args.kv_heads = k.size(1);
  args.scale = call.options.scale;
  args.eps = call.options.eps;
  args.dtype = in[kX].dtype();
  args.report = report_of(in[kX].device());
  args.count = static_cast<int>((in.size() - kFirstLayer) / kLayerInputs);
  for (int i = 0; i < args.count; ++i)
    args.layers[i] = layer_args(first + i * kLayerInputs, out[1 + 2 * i], out[2 + 2 * i]);
  return args;
}

void run(const Call<Options>& call) { run_rung(kernels::gemma3_decode_ladder, call, decode_args(call)); }

const Op<Options> kOp("gemma3_decode", run, kLooks);

// FLOPs per element besides the products': norms with zero-centered weights, norms with rope, sums, GeGLU, softmax.
constexpr int64_t kNormFlops = 5, kNormRopeFlops = 8, kSumFlops = 1, kGegluFlops = 9, kSoftmaxFlops = 5;

Cost cost_of(const Gemma3DecodeArgs& args, const Gemma3DecodeOperands& operands, const Tensors& inputs) {
  const int64_t wide = args.heads * args.head_size, narrow = args.kv_heads * args.head_size;
  const int64_t weights = args.model * (2 * wide + 2 * narrow + 3 * args.intermediate);
  const int64_t of_a_text = (4 * kNormFlops + 2 * kSumFlops) * args.model + kNormRopeFlops * (wide + narrow) +
                            kGegluFlops * args.intermediate;
  const int64_t rows = 2 * args.batch * narrow * size_of(args.dtype);  // keys and values, over all texts
  Cost cost{0, 0, compulsory_bytes(inputs), operands.x.nbytes()};
  for (const Gemma3DecodeLayerOperands& layer : operands.layers) {
    const int64_t pairs = args.batch * args.heads * layer.keys;
    const int64_t macs = args.batch * weights + 2 * pairs * args.head_size;
    cost.macs += macs;
    cost.flops += 2 * macs + args.batch * of_a_text + kSoftmaxFlops * pairs;
    cost.bytes_read += std::max<int64_t>(layer.keys - 1, 0) * rows;
    cost.bytes_written += rows;
  }
  return cost;
}

}  // namespace

std::optional<Tensor> gemma3_decode(const Gemma3DecodeOperands& operands, std::string_view variant) {
  const Tensor& x = operands.x;
  check_eps("gemma3_decode", operands.eps);
  Tensors inputs{x, operands.position}, outputs{x};  // y is not allocated before it is known to be needed
  for (const Gemma3DecodeLayerOperands& l : operands.layers) {
    check_caches_are_apart("gemma3_decode", l.k_cache, l.v_cache);
    inputs.insert(inputs.end(), {l.qkv, l.o, l.gate_up, l.down, l.input_norm, l.post_attention_norm,
                                 l.pre_feedforward_norm, l.post_feedforward_norm, l.q_norm, l.k_norm, l.cos, l.sin});
    outputs.insert(outputs.end(), {l.k_cache, l.v_cache});
  }
  Call call(kOp, std::move(inputs), std::move(outputs), {operands.scale, operands.eps}, {}, variant);
  const Gemma3DecodeArgs args = decode_args(call);
  const auto& ladder = kernels::gemma3_decode_ladder;
  call.rung = ladder.choose(x.device(), args, variant, kOp.name);
  if (ladder.composes(call.rung)) return std::nullopt;
  call.outputs[0] = Tensor::empty(x.shape(), x.dtype(), x.device());
  call.cost = cost_of(args, operands, call.inputs);
  submit(call);
  for (const Gemma3DecodeLayerOperands& layer : operands.layers) {
    layer.k_cache.storage()->bump_version();
    layer.v_cache.storage()->bump_version();
  }
  return call.outputs[0];
}

}  // namespace rooflab
