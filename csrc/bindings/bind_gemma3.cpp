// Ops of transformers with a KV cache, and the Gemma-3 layer. rooflab.nn wraps the layer in modules.
#include <variant>

#include "bindings/bindings.h"
#include "nn/gemma3.h"

namespace rooflab {
namespace {

constexpr const char* kRopeDoc = R"doc(Rotary position embedding: rotates each head's two halves by the token's angles.

``y[i] = x[i] cos[i] - x[i + h] sin[i]`` and ``y[i + h] = x[i + h] cos[i + h] + x[i] sin[i + h]`` with h = D_h / 2,
computed in float32 for 16 bits and rounded once. One launch, 3 FLOPs per element.

Parameters
----------
x : Tensor
    (B, H, L, D_h) or (H, L, D_h), with an even D_h. Of a floating dtype.
cos, sin : Tensor
    (L, D_h) or (B, L, D_h), of the dtype of `x`.
variant : str
    A rung of rl.variants("rope"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape, dtype and layout of `x`.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit.

Notes
-----
Su et al., RoFormer (arXiv:2104.09864), in the order of halves that GPT-NeoX and Hugging Face use.

Examples
--------
>>> x = rl.tensor([[[1.0, 2.0]]])
>>> rl.rope(x, rl.tensor([[0.0, 0.0]]), rl.tensor([[1.0, 1.0]])).tolist()
[[[-2.0, 1.0]]])doc";

constexpr const char* kNormRopeDoc =
    R"doc(rms_norm over each head, then rope: for models that normalise queries and keys.

One launch, 7 FLOPs per element (8 with `zero_centered`); if a gradient is wanted, it is made of rms_norm and rope.

Parameters
----------
x : Tensor
    (B, H, L, D_h) or (H, L, D_h), with an even D_h.
weight : Tensor
    (D_h,).
cos, sin : Tensor
    (L, D_h) or (B, L, D_h).
eps, zero_centered
    As in rl.rms_norm.
variant : str
    A rung of rl.variants("rms_norm_rope"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape, dtype and layout of `x`.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit.

Examples
--------
>>> x = rl.tensor([[[3.0, 3.0]]])
>>> rl.rms_norm_rope(x, rl.ones(2), rl.zeros(1, 2), rl.ones(1, 2), eps=0.0).tolist()
[[[-1.0, 1.0]]])doc";

constexpr const char* kNormAddDoc =
    R"doc(Adds a residual to a norm, and normalises the sum: h = residual + rms_norm(x), y = rms_norm(h).

One launch. 3 FLOPs per element for each norm, 1 for its weight and 1 for `zero_centered`, 1 for the sum. If a gradient
is wanted, it is made of rms_norm and add.

Parameters
----------
x, residual : Tensor
    (..., D).
weight : Tensor
    (D,), of the first norm.
next_weight : Tensor, optional
    (D,), of the second norm. Without it there is none.
eps, zero_centered
    As in rl.rms_norm.
variant : str
    A rung of rl.variants("rms_norm_add"); the fastest that fits when empty.

Returns
-------
Tensor, or (Tensor, Tensor)
    h; with a next weight (h, y). Each of the shape and dtype of `x`.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit.

Examples
--------
>>> rl.rms_norm_add(rl.ones(2), rl.tensor([1.0, 3.0]), rl.ones(2), eps=0.0).tolist()
[2.0, 4.0])doc";

constexpr const char* kAppendDoc = R"doc(Writes the keys and values of new tokens into their caches.

A cache is a ring: the token at position p goes to place p mod T. Of more than T new tokens the last T are written. The
position is read on the device, so a captured step writes to the next place at each replay. One launch.

Parameters
----------
k_cache, v_cache : Tensor
    (B, H_kv, T, D_h), written in place.
k, v : Tensor
    (B, H_kv, L, D_h), of the dtype of the caches.
position : Tensor
    (1,), int64: the position of the first new token.
variant : str
    A rung of rl.variants("kv_append"); the fastest that fits when empty.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit; when a gradient would be lost; for a position below 0, where nothing is
    written. On a GPU this is raised at the next wait (see rl.cuda.synchronize).

Examples
--------
>>> k_cache, v_cache = rl.zeros(1, 1, 4, 1), rl.zeros(1, 1, 4, 1)
>>> new = rl.ones(1, 1, 2, 1)
>>> rl.kv_append(k_cache, v_cache, new, new, rl.tensor([3]))
>>> k_cache.flatten().tolist()
[1.0, 0.0, 0.0, 1.0])doc";

nn::Gemma3Attention make_attention(Tensor q_proj, Tensor k_proj, Tensor v_proj, Tensor o_proj, Tensor q_norm,
                                   Tensor k_norm, double scale, double eps, std::optional<int64_t> window, bool fused) {
  return {q_proj, k_proj, v_proj, o_proj, q_norm, k_norm, scale, eps, window, fused};
}

}  // namespace

void register_gemma3(py::module_& m) {
  m.def("rope", without_gil(&rope), py::arg("x"), py::arg("cos"), py::arg("sin"), py::arg("variant") = "", kRopeDoc);
  m.def("rms_norm_rope", without_gil(&rms_norm_rope), py::arg("x"), py::arg("weight"), py::arg("cos"), py::arg("sin"),
        py::arg("eps") = 1e-6, py::arg("zero_centered") = false, py::arg("variant") = "", kNormRopeDoc);
  m.def("rms_norm_add",
        without_gil([](const Tensor& x, const Tensor& residual, const Tensor& weight,
                       const std::optional<Tensor>& next_weight, double eps, bool zero_centered,
                       std::string_view variant) -> std::variant<Tensor, std::tuple<Tensor, Tensor>> {
          RmsNormAddResult result = rms_norm_add(x, residual, weight, next_weight, eps, zero_centered, variant);
          if (!result.y) return result.h;
          return std::make_tuple(result.h, *result.y);
        }),
        py::arg("x"), py::arg("residual"), py::arg("weight"), py::arg("next_weight") = py::none(),
        py::arg("eps") = 1e-6, py::arg("zero_centered") = false, py::arg("variant") = "", kNormAddDoc);
  m.def("kv_append", without_gil(&kv_append), py::arg("k_cache"), py::arg("v_cache"), py::arg("k"), py::arg("v"),
        py::arg("position"), py::arg("variant") = "", kAppendDoc);

  py::module_ inner = m.def_submodule("_gemma3", "The Gemma-3 layer of csrc/nn; rooflab.nn wraps it.");
  py::class_<nn::KvCache>(inner, "KvCache", "The keys and values of one layer.")
      .def(py::init([](Tensor k, Tensor v, Tensor position, int64_t seen, std::optional<Tensor> held) {
             return nn::KvCache{k, v, position, seen, held};
           }),
           py::arg("k"), py::arg("v"), py::arg("position"), py::arg("seen"), py::arg("held") = py::none());
  py::class_<nn::Gemma3Attention>(inner, "Attention", "The weights and numbers of grouped-query attention.")
      .def(py::init(&make_attention), py::kw_only(), py::arg("q_proj"), py::arg("k_proj"), py::arg("v_proj"),
           py::arg("o_proj"), py::arg("q_norm"), py::arg("k_norm"), py::arg("scale"), py::arg("eps"), py::arg("window"),
           py::arg("fused"))
      .def("forward",
           without_gil([](const nn::Gemma3Attention& self, const Tensor& x, const Tensor& cos, const Tensor& sin,
                          const std::optional<nn::KvCache>& cache) {
             return forward(self, x, cos, sin, cache ? &*cache : nullptr);
           }),
           py::arg("x"), py::arg("cos"), py::arg("sin"), py::arg("cache") = py::none(), "x (B, L, D) to (B, L, D).");
  py::class_<nn::Gemma3Mlp>(inner, "Mlp", "The weights of the gated MLP.")
      .def(py::init([](Tensor gate_proj, Tensor up_proj, Tensor down_proj, bool fused) {
             return nn::Gemma3Mlp{gate_proj, up_proj, down_proj, fused};
           }),
           py::kw_only(), py::arg("gate_proj"), py::arg("up_proj"), py::arg("down_proj"), py::arg("fused"))
      .def("forward", without_gil([](const nn::Gemma3Mlp& self, const Tensor& x) { return forward(self, x); }),
           py::arg("x"), "x (B, L, D) to (B, L, D).");
  py::class_<nn::Gemma3Layer>(inner, "Layer", "The weights of a decoder layer.")
      .def(py::init([](const nn::Gemma3Attention& attention, const nn::Gemma3Mlp& mlp, Tensor input,
                       Tensor post_attention, Tensor pre_feedforward, Tensor post_feedforward) {
             return nn::Gemma3Layer{attention, mlp, input, post_attention, pre_feedforward, post_feedforward};
           }),
           py::arg("attention"), py::arg("mlp"), py::kw_only(), py::arg("input_layernorm"),
           py::arg("post_attention_layernorm"), py::arg("pre_feedforward_layernorm"),
           py::arg("post_feedforward_layernorm"))
      .def("forward",
           without_gil([](const nn::Gemma3Layer& self, const Tensor& x, const Tensor& cos, const Tensor& sin,
                          const std::optional<nn::KvCache>& cache) {
             return forward(self, x, cos, sin, cache ? &*cache : nullptr);
           }),
           py::arg("x"), py::arg("cos"), py::arg("sin"), py::arg("cache") = py::none(), "x (B, L, D) to (B, L, D).");
  py::class_<nn::Gemma3DecodeStep>(inner, "DecodeStep", "A layer, and what it needs to decode with a cache.")
      .def(py::init([](const nn::Gemma3Layer& layer, const Tensor& cos, const Tensor& sin, const nn::KvCache& cache) {
             return nn::Gemma3DecodeStep{layer, cos, sin, cache};
           }),
           py::arg("layer"), py::arg("cos"), py::arg("sin"), py::arg("cache"));
  inner.def("rms_norm_rope_append", without_gil(&rms_norm_rope_append), py::arg("q"), py::arg("k"), py::arg("v"),
            py::arg("q_weight"), py::arg("k_weight"), py::arg("cos"), py::arg("sin"), py::arg("k_cache"),
            py::arg("v_cache"), py::arg("position"), py::arg("eps"), py::arg("zero_centered") = false,
            py::arg("variant") = "", "rl.rms_norm_rope of q and k, and rl.kv_append of that k and of v. Returns q.");
  inner.def("forward", without_gil([](const std::vector<nn::Gemma3DecodeStep>& steps, const Tensor& x) {
              return forward(steps, x);
            }),
            py::arg("steps"), py::arg("x"), "x (B, L, D) through layers with their caches, one after the other.");
  inner.def("decode",
            without_gil([](const std::vector<nn::Gemma3DecodeStep>& steps, const Tensor& x, std::string_view variant) {
              return gemma3_decode(steps, x, variant);
            }),
            py::arg("steps"), py::arg("x"), py::arg("variant") = "",
            "One token per text, x (B, 1, D), by a rung of rl.variants(\"gemma3_decode\").");
}

}  // namespace rooflab
