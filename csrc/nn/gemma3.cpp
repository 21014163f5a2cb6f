// The decoder layer of Gemma 3: see gemma3.h. Each step is an op in a range of its own, which profiles show.
#include "nn/gemma3.h"

#include <algorithm>

#include "core/error.h"
#include "core/range.h"
#include "nn/gemma3_steps.h"
#include "nn/nn.h"
#include "ops/arithmetic.h"

namespace rooflab::nn {
namespace {

Tensor norm(const char* range, const Tensor& x, const Tensor& weight, double eps) {
  const RangeScope scope(range);
  return rms_norm(x, weight, eps, true);
}

Tensor project(const char* range, const Tensor& x, const Tensor& weight) {
  const RangeScope scope(range);
  return linear(x, weight, std::nullopt);
}

// x times each weight. If the weights can be joined and need no gradient, these are views of one product.
Tensors project_all(const char* range, const Tensor& x, const Tensors& weights) {
  std::vector<int64_t> sizes;
  bool records = autograd::recording(x);
  for (const Tensor& weight : weights) {
    RL_CHECK(weight.ndim() == 2, "gemma3", "weights: expected (O, I), got ", weight.shape());
    sizes.push_back(weight.size(0));
    records |= autograd::recording(weight);
  }
  const std::optional<Tensor> all = records ? std::nullopt : joined(weights);
  if (all) return split(project(range, x, *all), sizes, -1);
  Tensors results;
  for (const Tensor& weight : weights) results.push_back(project(range, x, weight));
  return results;
}

// (B, L, H D_h) as (B, L, H, D_h), without a copy.
Tensor split_heads(const Tensor& x, int64_t head_size) {
  RL_CHECK(x.size(-1) % head_size == 0, "gemma3", "projections: expected a multiple of D_h=", head_size, " rows, got ",
           x.size(-1));
  return view(x, {x.size(0), x.size(1), x.size(-1) / head_size, head_size});
}

// The tokens in a ring, oldest first.
Tensor in_order(const Tensor& ring, int64_t seen) {
  const int64_t places = ring.size(2), next = seen % places;
  if (seen <= places) return ring.slice(2, 0, seen, 1);
  return cat({ring.slice(2, next, places, 1), ring.slice(2, 0, next, 1)}, 2);
}

bool is_ring(const KvCache& cache, const std::optional<int64_t>& window) {
  return window && cache.k.size(2) <= *window;
}

// Whether a new token sees everything in the cache.
bool sees_all(const KvCache& cache, const std::optional<int64_t>& window) { return !window || is_ring(cache, window); }

void check_room(const KvCache& cache, const std::optional<int64_t>& window, int64_t tokens) {
  const int64_t places = cache.k.size(2);
  RL_CHECK(is_ring(cache, window) || cache.held || cache.seen + tokens <= places, "gemma3",
           "cache: it has room for T=", places, " tokens and has seen ", cache.seen, "; ", tokens, " more do not fit");
}

// Attention of one new token over everything in the cache. All of it may be seen, because what lies outside a sliding
// window has been overwritten.
Tensor attend_cache(const Tensor& q, const KvCache& cache, AttentionOptions options) {
  const int64_t places = cache.k.size(2), held = std::min(cache.seen + 1, places);
  options.is_causal = false;
  options.window.reset();
  options.kv_length = cache.held;
  if (cache.held) return attention(q, cache.k, cache.v, std::nullopt, options, false).out;
  return attention(q, cache.k.slice(2, 0, held, 1), cache.v.slice(2, 0, held, 1), std::nullopt, options, false).out;
}

Tensor attend(const Tensor& q, const Tensor& new_k, const Tensor& new_v, const AttentionOptions& options,
              const KvCache* cache) {
  if (!cache) return attention(q, new_k, new_v, std::nullopt, options, false).out;
  const Tensor k = cast(new_k, cache->k.dtype()), v = cast(new_v, cache->v.dtype());  // autocast makes others
  const int64_t length = k.size(2);
  check_room(*cache, options.window, length);
  const auto append = [&] { kv_append(cache->k, cache->v, k, v, cache->position); };
  if (length == 1 && sees_all(*cache, options.window)) {
    append();
    return attend_cache(q, *cache, options);
  }
  RL_CHECK(!cache->held, "gemma3", "x: a captured step takes one token at a time, got L=", length);
  if (cache->seen == 0) {
    append();
    return attention(q, k, v, std::nullopt, options, false).out;
  }
  const Tensor keys = cat({in_order(cache->k, cache->seen), k}, 2),
               values = cat({in_order(cache->v, cache->seen), v}, 2);
  append();
  return attention(q, keys, values, std::nullopt, options, false).out;
}

Tensor add(const Tensor& a, const Tensor& b) {
  const RangeScope scope("res");
  return a + b;
}

// Queries, keys and values of a layer as projected, each (B, L, H or H_kv, D_h).
struct Heads {
  Tensor q, k, v;
};
Heads project_heads(const Gemma3Attention& layer, const Tensor& x) {
  RL_CHECK(x.ndim() == 3, "gemma3", "x: expected (B, L, D), got ", x.shape());
  const Tensors projected = layer.fused
                                ? project_all("qkv_proj", x, {layer.q_proj, layer.k_proj, layer.v_proj})
                                : Tensors{project("q_proj", x, layer.q_proj), project("k_proj", x, layer.k_proj),
                                          project("v_proj", x, layer.v_proj)};
  const int64_t head_size = layer.q_norm.size(-1);
  return {split_heads(projected[0], head_size), split_heads(projected[1], head_size),
          split_heads(projected[2], head_size)};
}

// What the heads have found, (B, H, L, D_h), as (B, L, D).
Tensor join_heads(const Gemma3Attention& layer, const Tensor& out) {
  return project("o_proj", reshape(transpose(out, 1, 2), {out.size(0), out.size(2), layer.q_proj.size(0)}),
                 layer.o_proj);
}

// forward() for one new token of each text, with norms, rope and the write into the cache as one op.
Tensor decode(const Gemma3Attention& layer, const Tensor& x, const Tensor& cos, const Tensor& sin,
              const KvCache& cache) {
  const Heads heads = project_heads(layer, x);
  const Tensor out = [&] {
    const RangeScope scope("attn_op");
    check_room(cache, layer.window, 1);
    const Tensor q =
        rms_norm_rope_append(transpose(heads.q, 1, 2), transpose(heads.k, 1, 2), transpose(heads.v, 1, 2), layer.q_norm,
                             layer.k_norm, cos, sin, cache.k, cache.v, cache.position, layer.eps, true);
    return attend_cache(q, cache, {.scale = layer.scale});
  }();
  return join_heads(layer, out);
}

// The residual stream between attention and MLP, and its normalised form.
struct Between {
  Tensor h, normal;
};
Between after_attention(const Gemma3Layer& layer, const Tensor& y, const Tensor& x) {
  const RangeScope scope("post_attn_norm");
  const auto [h, normal] =
      rms_norm_add(y, x, layer.post_attention_layernorm, layer.pre_feedforward_layernorm, layer.attention.eps, true);
  return {h, *normal};
}
Between after_attention_in_steps(const Gemma3Layer& layer, const Tensor& y, const Tensor& x) {
  const Tensor h = add(x, norm("post_attn_norm", y, layer.post_attention_layernorm, layer.attention.eps));
  return {h, norm("pre_ffn_norm", h, layer.pre_feedforward_layernorm, layer.attention.eps)};
}

// The residual stream, and its form under the next layer's input norm, if that is given.
RmsNormAddResult after_mlp(const Gemma3Layer& layer, const Tensor& y, const Tensor& h,
                           const std::optional<Tensor>& next_norm = std::nullopt) {
  const RangeScope scope("post_ffn_norm");
  return rms_norm_add(y, h, layer.post_feedforward_layernorm, next_norm, layer.attention.eps, true);
}
Tensor after_mlp_in_steps(const Gemma3Layer& layer, const Tensor& y, const Tensor& h) {
  return add(h, norm("post_ffn_norm", y, layer.post_feedforward_layernorm, layer.attention.eps));
}

}  // namespace

std::optional<Tensor> joined(const Tensors& weights) {
  const Tensor& first = weights[0];
  int64_t rows = 0;
  for (const Tensor& weight : weights) {
    const char* next = first.data<char>() + rows * first.size(1) * size_of(first.dtype());
    const bool follows = weight.storage() == first.storage() && weight.data<char>() == next;
    if (!follows || !weight.is_contiguous() || weight.size(1) != first.size(1)) return std::nullopt;
    rows += weight.size(0);
  }
  return first.as_strided({rows, first.size(1)}, first.strides(), 0);
}

Tensor forward(const Gemma3Attention& layer, const Tensor& x, const Tensor& cos, const Tensor& sin,
               const KvCache* cache) {
  const Heads heads = project_heads(layer, x);
  const Tensor out = [&] {
    const RangeScope scope("attn_op");
    const auto placed = [&](const Tensor& x, const Tensor& weight) {
      if (layer.fused) return rms_norm_rope(transpose(x, 1, 2), weight, cos, sin, layer.eps, true);
      return rope(transpose(rms_norm(x, weight, layer.eps, true), 1, 2), cos, sin);
    };
    const AttentionOptions options{.is_causal = true, .window = layer.window, .scale = layer.scale};
    return attend(placed(heads.q, layer.q_norm), placed(heads.k, layer.k_norm), transpose(heads.v, 1, 2), options,
                  cache);
  }();
  return join_heads(layer, out);
}

Tensor forward(const Gemma3Mlp& mlp, const Tensor& x) {
  const Tensors projected = mlp.fused
                                ? project_all("gate_up_proj", x, {mlp.gate_proj, mlp.up_proj})
                                : Tensors{project("gate_proj", x, mlp.gate_proj), project("up_proj", x, mlp.up_proj)};
  const Tensor active = [&] {
    const RangeScope scope("act_fn");
    return elementwise(ElementwiseOp::kGeglu, projected[0], projected[1]);
  }();
  return project("down_proj", active, mlp.down_proj);
}

Tensor in_steps(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin, const KvCache* cache) {
  Tensor y = norm("input_norm", x, layer.input_layernorm, layer.attention.eps);
  {
    const RangeScope scope("self_attn");
    y = forward(layer.attention, y, cos, sin, cache);
  }
  const auto [h, normal] = layer.attention.fused ? after_attention(layer, y, x) : after_attention_in_steps(layer, y, x);
  {
    const RangeScope scope("mlp");
    y = forward(layer.mlp, normal);
  }
  return layer.attention.fused ? after_mlp(layer, y, h).h : after_mlp_in_steps(layer, y, h);
}

Tensor in_merged_steps(std::span<const Gemma3DecodeStep> steps, Tensor x) {
  const Gemma3Layer& first = steps[0].layer;
  Tensor normal = norm("input_norm", x, first.input_layernorm, first.attention.eps);
  while (!steps.empty()) {
    const Gemma3Layer& layer = steps[0].layer;
    Tensor y = [&] {
      const RangeScope scope("self_attn");
      return decode(layer.attention, normal, steps[0].cos, steps[0].sin, steps[0].cache);
    }();
    const Between between = after_attention(layer, y, x);
    {
      const RangeScope scope("mlp");
      y = forward(layer.mlp, between.normal);
    }
    steps = steps.subspan(1);
    const auto next_norm = steps.empty() ? std::nullopt : std::optional(steps[0].layer.input_layernorm);
    const RmsNormAddResult end = after_mlp(layer, y, between.h, next_norm);
    x = end.h;
    if (end.y) normal = *end.y;
  }
  return x;
}

Tensor forward(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin, const KvCache* cache) {
  if (!cache) return in_steps(layer, x, cos, sin, nullptr);
  const Gemma3DecodeStep step{layer, cos, sin, *cache};
  return forward(std::span(&step, 1), x);
}

Tensor forward(std::span<const Gemma3DecodeStep> steps, Tensor x) {
  const bool one_token = x.ndim() == 3 && x.size(1) == 1 && !autograd::is_enabled();
  const auto decodes = [&](const Gemma3DecodeStep& step) {
    const Gemma3Attention& attention = step.layer.attention;
    if (!one_token || !attention.fused || !sees_all(step.cache, attention.window)) return false;
    check_room(step.cache, attention.window, 1);
    return true;
  };
  while (!steps.empty()) {
    const auto end = std::find_if_not(steps.begin(), steps.end(), decodes);
    const size_t run = end - steps.begin();
    if (run > 0) {
      x = gemma3_decode(steps.first(run), x);
      steps = steps.subspan(run);
    } else {
      x = in_steps(steps[0].layer, x, steps[0].cos, steps[0].sin, &steps[0].cache);
      steps = steps.subspan(1);
    }
  }
  return x;
}

}  // namespace rooflab::nn
