// gemma3_decode: converts a layer and its cache into the op's operands, and runs the steps where the op is composed.
#include "ops/gemma3_decode.h"

#include "core/range.h"
#include "nn/gemma3.h"
#include "nn/gemma3_steps.h"

namespace rooflab::nn {
namespace {

using Operands = Gemma3DecodeOperands;

// Whether one kernel can take the tensors in their present layout. The steps refuse tensors that fit no layer at all.
bool fit(const Operands& o) {
  for (const Tensor* t :
       {&o.qkv, &o.o, &o.gate_up, &o.down, &o.input_norm, &o.post_attention_norm, &o.pre_feedforward_norm,
        &o.post_feedforward_norm, &o.q_norm, &o.k_norm, &o.cos, &o.sin, &o.x})
    if (!t->is_contiguous() || t->device() != o.x.device() || t->dtype() != o.x.dtype()) return false;
  for (const Tensor* cache : {&o.k_cache, &o.v_cache}) {
    const bool same = cache->device() == o.x.device() && cache->dtype() == o.x.dtype();
    if (!same || cache->ndim() != 4 || cache->numel() == 0 || cache->stride(3) != 1) return false;
  }
  if (o.k_cache.shape() != o.v_cache.shape() || o.position.device() != o.x.device()) return false;
  if (o.position.dtype() != DType::kInt64 || o.position.numel() != 1) return false;

  const int64_t batch = o.x.size(0), model = o.x.size(2), head_size = o.q_norm.numel();
  const int64_t narrow = o.k_cache.size(1) * head_size, wide = o.o.size(1), intermediate = o.down.size(1);
  for (const Tensor* norm : {&o.input_norm, &o.post_attention_norm, &o.pre_feedforward_norm, &o.post_feedforward_norm})
    if (norm->shape() != Shape{model}) return false;
  return o.k_cache.size(0) == batch && o.k_cache.size(3) == head_size && wide % narrow == 0 &&
         o.qkv.shape() == Shape{wide + 2 * narrow, model} && o.o.shape() == Shape{model, wide} &&
         o.gate_up.shape() == Shape{2 * intermediate, model} && o.down.shape() == Shape{model, intermediate} &&
         o.k_norm.shape() == o.q_norm.shape() && o.cos.shape() == o.sin.shape() && o.cos.size(1) == head_size &&
         (o.cos.size(0) == 1 || o.cos.size(0) == batch);
}

std::optional<Operands> operands_of(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin,
                                    const KvCache& cache) {
  const Gemma3Attention& attention = layer.attention;
  const Gemma3Mlp& mlp = layer.mlp;
  const std::optional<Tensor> qkv = joined({attention.q_proj, attention.k_proj, attention.v_proj});
  const std::optional<Tensor> gate_up = joined({mlp.gate_proj, mlp.up_proj});
  if (!qkv || !gate_up || attention.k_proj.size(0) != attention.v_proj.size(0)) return std::nullopt;
  if (mlp.gate_proj.size(0) != mlp.up_proj.size(0) || cos.numel() == 0 || sin.numel() == 0) return std::nullopt;
  const auto rows = [](const Tensor& table) { return reshape(table, {-1, table.size(-1)}); };
  const int64_t places = cache.k.ndim() == 4 ? cache.k.size(2) : 0;
  Operands operands{x,
                    *qkv,
                    attention.o_proj,
                    *gate_up,
                    mlp.down_proj,
                    layer.input_layernorm,
                    layer.post_attention_layernorm,
                    layer.pre_feedforward_layernorm,
                    layer.post_feedforward_layernorm,
                    attention.q_norm,
                    attention.k_norm,
                    rows(cos),
                    rows(sin),
                    cache.position,
                    cache.k,
                    cache.v,
                    attention.scale,
                    attention.eps,
                    cache.held ? places : std::min(cache.seen + 1, places)};
  return fit(operands) ? std::optional(operands) : std::nullopt;
}

}  // namespace

Tensor gemma3_decode(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin,
                     const KvCache& cache, std::string_view variant) {
  const OpScope scope("gemma3_decode");
  RL_CHECK(x.ndim() == 3 && x.size(1) == 1, "gemma3_decode", "x: expected (B, 1, D), got ", x.shape());
  if (const auto operands = x.numel() ? operands_of(layer, x, cos, sin, cache) : std::nullopt) {
    if (const std::optional<Tensor> y = rooflab::gemma3_decode(*operands, variant)) return *y;
  } else {
    RL_CHECK(
        variant.empty() || variant == "v0_composed", "gemma3_decode", "variant: ", variant,
        " takes contiguous tensors of one dtype, with the weights of q, k, v and of gate, up one behind the other");
  }
  const Tensor y = in_steps(layer, x, cos, sin, &cache);
  scope.done();
  return y;
}

}  // namespace rooflab::nn
