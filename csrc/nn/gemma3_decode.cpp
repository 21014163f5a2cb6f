// gemma3_decode: converts layers and their caches into the op's operands, and runs the steps where the op is composed.
#include "ops/gemma3_decode.h"

#include <algorithm>

#include "core/range.h"
#include "core/target.h"
#include "nn/gemma3.h"
#include "nn/gemma3_steps.h"

namespace rooflab::nn {
namespace {

using Operands = Gemma3DecodeLayerOperands;

// Whether one kernel can take the tensors in their present layout. The steps refuse tensors that fit no layer at all.
bool fit(const Operands& o, const Tensor& x, const Tensor& position) {
  for (const Tensor* t : {&o.qkv, &o.o, &o.gate_up, &o.down, &o.input_norm, &o.post_attention_norm,
                          &o.pre_feedforward_norm, &o.post_feedforward_norm, &o.q_norm, &o.k_norm, &o.cos, &o.sin, &x})
    if (!t->is_contiguous() || t->device() != x.device() || t->dtype() != x.dtype()) return false;
  for (const Tensor* cache : {&o.k_cache, &o.v_cache}) {
    const bool same = cache->device() == x.device() && cache->dtype() == x.dtype();
    if (!same || cache->ndim() != 4 || cache->numel() == 0 || cache->stride(3) != 1) return false;
  }
  if (o.k_cache.shape() != o.v_cache.shape() || position.device() != x.device()) return false;
  if (position.dtype() != DType::kInt64 || position.numel() != 1) return false;

  const int64_t batch = x.size(0), model = x.size(2), head_size = o.q_norm.numel();
  const int64_t narrow = o.k_cache.size(1) * head_size, wide = o.o.size(1), intermediate = o.down.size(1);
  for (const Tensor* norm : {&o.input_norm, &o.post_attention_norm, &o.pre_feedforward_norm, &o.post_feedforward_norm})
    if (norm->shape() != Shape{model}) return false;
  return o.k_cache.size(0) == batch && o.k_cache.size(3) == head_size && wide % narrow == 0 &&
         o.qkv.shape() == Shape{wide + 2 * narrow, model} && o.o.shape() == Shape{model, wide} &&
         o.gate_up.shape() == Shape{2 * intermediate, model} && o.down.shape() == Shape{model, intermediate} &&
         o.k_norm.shape() == o.q_norm.shape() && o.cos.shape() == o.sin.shape() && o.cos.size(1) == head_size &&
         (o.cos.size(0) == 1 || o.cos.size(0) == batch);
}

std::optional<Operands> operands_of(const Gemma3DecodeStep& step, const Tensor& x) {
  const Gemma3Layer& layer = step.layer;
  const KvCache& cache = step.cache;
  const Gemma3Attention& attention = layer.attention;
  const Gemma3Mlp& mlp = layer.mlp;
  const std::optional<Tensor> qkv = joined({attention.q_proj, attention.k_proj, attention.v_proj});
  const std::optional<Tensor> gate_up = joined({mlp.gate_proj, mlp.up_proj});
  if (!qkv || !gate_up || attention.k_proj.size(0) != attention.v_proj.size(0)) return std::nullopt;
  if (mlp.gate_proj.size(0) != mlp.up_proj.size(0) || step.cos.numel() == 0 || step.sin.numel() == 0)
    return std::nullopt;
  const auto rows = [](const Tensor& table) { return reshape(table, {-1, table.size(-1)}); };
  const int64_t places = cache.k.ndim() == 4 ? cache.k.size(2) : 0;
  Operands operands{*qkv,
                    attention.o_proj,
                    *gate_up,
                    mlp.down_proj,
                    layer.input_layernorm,
                    layer.post_attention_layernorm,
                    layer.pre_feedforward_layernorm,
                    layer.post_feedforward_layernorm,
                    attention.q_norm,
                    attention.k_norm,
                    rows(step.cos),
                    rows(step.sin),
                    cache.k,
                    cache.v,
                    cache.held ? places : std::min(cache.seen + 1, places)};
  return fit(operands, x, cache.position) ? std::optional(operands) : std::nullopt;
}

// Whether layers of these operands can be one call.
bool alike(const Operands& a, const Operands& b) {
  return a.qkv.shape() == b.qkv.shape() && a.o.shape() == b.o.shape() && a.down.shape() == b.down.shape() &&
         a.q_norm.shape() == b.q_norm.shape() && a.k_cache.size(1) == b.k_cache.size(1);
}

// As many of the first steps as one call takes.
std::optional<Gemma3DecodeOperands> operands_of(std::span<const Gemma3DecodeStep> steps, const Tensor& x) {
  if (x.numel() == 0) return std::nullopt;
  const Gemma3Attention& first = steps[0].layer.attention;
  const KvCache& cache = steps[0].cache;
  Gemma3DecodeOperands all{x, cache.position, first.scale, first.eps, {}};
  for (const Gemma3DecodeStep& step : steps.first(std::min(steps.size(), kGemma3DecodeLayers))) {
    const bool same = step.layer.attention.scale == first.scale && step.layer.attention.eps == first.eps &&
                      step.cache.position.data<char>() == cache.position.data<char>();
    const std::optional<Operands> operands = same ? operands_of(step, x) : std::nullopt;
    if (!operands || (!all.layers.empty() && !alike(*operands, all.layers[0]))) break;
    all.layers.push_back(*operands);
  }
  return all.layers.empty() ? std::nullopt : std::optional(std::move(all));
}

}  // namespace

Tensor gemma3_decode(std::span<const Gemma3DecodeStep> steps, Tensor x, std::string_view variant) {
  while (!steps.empty()) {
    const OpScope scope("gemma3_decode");
    RL_CHECK(x.ndim() == 3 && x.size(1) == 1, "gemma3_decode", "x: expected (B, 1, D), got ", x.shape());
    const std::optional<Gemma3DecodeOperands> operands = operands_of(steps, x);
    RL_CHECK(
        operands || variant.empty() || variant == "v0_composed", "gemma3_decode", "variant: ", variant,
        " takes contiguous tensors of one dtype, with the weights of q, k, v and of gate, up one behind the other");
    const auto run = steps.first(operands ? operands->layers.size() : 1);
    if (const std::optional<Tensor> y = operands ? rooflab::gemma3_decode(*operands, variant) : std::nullopt) {
      x = *y;
      steps = steps.subspan(run.size());
      continue;
    }
    const bool merges = operands && target_of(x.device()).kind == Device::Type::kCuda;  // there launches take time
    x = merges ? in_merged_steps(run, x) : in_steps(run[0].layer, x, run[0].cos, run[0].sin, &run[0].cache);
    scope.done();
    steps = steps.subspan(merges ? run.size() : 1);
  }
  return x;
}

}  // namespace rooflab::nn
