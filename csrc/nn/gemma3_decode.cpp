// gemma3_decode: a decode step of one layer as an op of its own: checks, cost and ladder.
#include "kernels/gemma3_decode/gemma3_decode.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "nn/gemma3.h"
#include "nn/gemma3_steps.h"
#include "ops/attention_operands.h"
#include "ops/variant.h"

namespace rooflab::nn {
namespace {

using kernels::Gemma3DecodeArgs;
using enum Device::Type;

const Ladder<Gemma3DecodeArgs> kLadder(
    "gemma3_decode", {
                         {"v1_one_launch", kCuda,
                          "all steps in one kernel, whose blocks keep the weights and wait for each other; sm_90",
                          kernels::gemma3_decode_cuda_v1_accepts, kernels::gemma3_decode_cuda_v1_one_launch,
                          kernels::gemma3_decode_cuda_v1_footprint},
                         {"v0_composed", kCuda, "the steps as ops of their own", nullptr, composed<Gemma3DecodeArgs>},
                         {"v0_composed", kCpu, "the steps as ops of their own", nullptr, composed<Gemma3DecodeArgs>},
                     });

// What a call is made of, in the order of its inputs.
enum Input {
  kX,
  kQkv,
  kO,
  kGateUp,
  kDown,
  kInputNorm,
  kPostAttention,
  kPreMlp,
  kPostMlp,
  kQNorm,
  kKNorm,
  kCos,
  kSin,
  kPosition
};

Gemma3DecodeArgs decode_args(const Call& call) {
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
  args.post_attention_norm = in[kPostAttention].data();
  args.pre_feedforward_norm = in[kPreMlp].data();
  args.post_feedforward_norm = in[kPostMlp].data();
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
  args.scale = call.get<double>("scale");
  args.eps = call.get<double>("eps");
  args.dtype = in[kX].dtype();
  return args;
}

void run(const Call& call) { kLadder.run(call, decode_args(call)); }

const Op kOp("gemma3_decode", run);

// FLOPs an element beside the products': norms whose weights are zero-centered, with rope or a sum, GeGLU, softmax.
constexpr int64_t kNormFlops = 5, kNormRopeFlops = 8, kSumFlops = 1, kGegluFlops = 9, kSoftmaxFlops = 5;

Cost cost_of(const Gemma3DecodeArgs& args, const Tensors& inputs, int64_t keys, int64_t y_bytes, int64_t new_bytes) {
  const int64_t wide = args.heads * args.head_size, narrow = args.kv_heads * args.head_size;
  const int64_t weights = args.model * (2 * wide + 2 * narrow + 3 * args.intermediate);
  const int64_t pairs = args.batch * args.heads * keys;
  const int64_t macs = args.batch * weights + 2 * pairs * args.head_size;
  const int64_t a_text = (4 * kNormFlops + 2 * kSumFlops) * args.model + kNormRopeFlops * (wide + narrow) +
                         kGegluFlops * args.intermediate;
  const int64_t cached = 2 * args.batch * narrow * std::max<int64_t>(keys - 1, 0) * size_of(args.dtype);
  return {macs, 2 * macs + args.batch * a_text + kSoftmaxFlops * pairs, compulsory_bytes(inputs) + cached,
          y_bytes + new_bytes};
}

// The call, where its tensors lie as one kernel can take them.
std::optional<Call> plan(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin,
                         const KvCache& cache, std::string_view variant) {
  const Gemma3Attention& attention = layer.attention;
  const std::optional<Tensor> qkv = joined({attention.q_proj, attention.k_proj, attention.v_proj}),
                              gate_up = joined({layer.mlp.gate_proj, layer.mlp.up_proj});
  if (!qkv || !gate_up) return std::nullopt;
  const auto angles = [&](const Tensor& table) { return reshape(table, {-1, table.size(-1)}); };
  const Tensors inputs{x,
                       *qkv,
                       attention.o_proj,
                       *gate_up,
                       layer.mlp.down_proj,
                       layer.input_layernorm,
                       layer.post_attention_layernorm,
                       layer.pre_feedforward_layernorm,
                       layer.post_feedforward_layernorm,
                       attention.q_norm,
                       attention.k_norm,
                       angles(cos),
                       angles(sin),
                       cache.position};
  for (const Tensor& input : inputs) {
    if (!input.is_contiguous() || input.device() != x.device()) return std::nullopt;
    if (input.dtype() != (&input == &inputs[kPosition] ? DType::kInt64 : x.dtype())) return std::nullopt;
  }
  const Tensor &k = cache.k, &v = cache.v;
  const int64_t head_size = attention.q_norm.numel(), batch = x.size(0);
  const auto holds = [&](const Tensor& c) {
    return c.dtype() == x.dtype() && c.device() == x.device() && c.ndim() == 4 && c.stride(3) == 1 &&
           c.size(0) == batch && c.size(1) * head_size == attention.k_proj.size(0) && c.size(3) == head_size;
  };
  if (!holds(k) || !holds(v) || k.shape() != v.shape() || k.size(2) == 0) return std::nullopt;
  const int64_t wide = attention.q_proj.size(0), model = x.size(2);
  const auto is = [](const Tensor& w, int64_t rows, int64_t columns) { return w.shape() == Shape{rows, columns}; };
  const int64_t intermediate = layer.mlp.down_proj.size(1), narrow = k.size(1) * head_size;
  const bool fits = wide % narrow == 0 && is(*qkv, wide + 2 * narrow, model) && is(attention.o_proj, model, wide) &&
                    is(*gate_up, 2 * intermediate, model) && is(layer.mlp.down_proj, model, intermediate) &&
                    layer.mlp.up_proj.size(0) == intermediate && attention.k_norm.numel() == head_size &&
                    cos.size(-1) == head_size && sin.shape() == cos.shape() &&
                    (inputs[kCos].size(0) == 1 || inputs[kCos].size(0) == batch) && cache.position.numel() == 1;
  if (!fits) return std::nullopt;
  for (const Input norm : {kInputNorm, kPostAttention, kPreMlp, kPostMlp})
    if (inputs[norm].numel() != model) return std::nullopt;

  Call call{&kOp, inputs, {x, k, v}, {{"scale", attention.scale}, {"eps", attention.eps}}, {}, std::string(variant)};
  return call;
}

}  // namespace

Tensor gemma3_decode(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin,
                     const KvCache& cache, std::string_view variant) {
  const OpScope scope("gemma3_decode");
  RL_CHECK(x.ndim() == 3 && x.size(1) == 1, "gemma3_decode", "x: expected (B, 1, D), got ", x.shape());
  std::optional<Call> call = plan(layer, x, cos, sin, cache, variant);
  const bool composes = !call || x.numel() == 0 || kLadder.composes(x.device(), decode_args(*call), variant);
  if (composes) {
    RL_CHECK(
        variant.empty() || variant == "v0_composed", "gemma3_decode", "variant: ", variant,
        " takes contiguous tensors of one dtype, with the weights of q, k, v and of gate, up one behind the other");
    const Tensor y = in_steps(layer, x, cos, sin, &cache);
    scope.done();
    return y;
  }
  const int64_t places = cache.k.size(2), keys = cache.held ? places : std::min(cache.seen + 1, places);
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  call->outputs[0] = y;
  const Gemma3DecodeArgs args = decode_args(*call);
  const int64_t new_bytes = 2 * args.batch * args.kv_heads * args.head_size * size_of(args.dtype);
  call->cost = cost_of(args, call->inputs, keys, y.nbytes(), new_bytes);
  submit(*call);
  cache.k.storage()->bump_version();
  cache.v.storage()->bump_version();
  return y;
}

}  // namespace rooflab::nn
