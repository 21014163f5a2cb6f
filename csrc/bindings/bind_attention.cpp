#include "bindings/bindings.h"

namespace rooflab {
namespace {

constexpr const char* kAttentionDoc =
    R"(softmax(scale q k^T + mask) v for each batch and head, like torch.nn.functional.scaled_dot_product_attention.

Parameters
----------
q : Tensor
    (B, H, L_q, D_h), or (H, L_q, D_h).
k, v : Tensor
    (B, H_kv, L_kv, D_h); H_kv divides H, and query head h reads key head h // (H / H_kv). A hidden key adds nothing,
    whatever k and v hold there.
attn_mask : Tensor, optional
    Broadcasts to (B, H, L_q, L_kv). bool: True may be seen; otherwise q's dtype, added to the scaled scores. One that
    requires grad makes the call run "v0_composed".
is_causal : bool
    The last query is aligned with the last key (query i at position i + L_kv - L_q) and sees no later key. PyTorch
    counts from the first query and key instead; for L_q = L_kv both are the same.
window : int, optional
    Only keys at a smaller distance than this are seen, including the query's own.
scale : float, optional
    1 / sqrt(D_h) when None.
kv_length : Tensor, optional
    (1,), int64: how many keys there are. k and v end there, as if they were sliced, but the device reads the number
    when the kernel runs, so a graph that is replayed can see one key more each time. No gradient goes through it, and
    the counted work is that of all L_kv keys.
return_lse : bool
    Also return the natural log of the sum of exponentials of the scores; no gradient flows through it.
return_lse_rest : bool
    Also return that, and then what rounding it to its dtype has left out. attention_backward takes both; without the
    rest, an error of |lse| 2^-24 of the log-sum-exp is a relative error of the weights.
deterministic : bool
    The gradients have the same bits on every run, at some cost in time.
variant : str
    A rung of rl.variants("attention"). "v0_composed" is the textbook form: L_q x L_kv matrices, one op per step. Its
    backward pass computes them again. It is the only rung for float64.

Returns
-------
Tensor, or (Tensor, Tensor), or (Tensor, Tensor, Tensor)
    (B, H, L_q, D_h), laid out like q; zeros where a query sees no key. With return_lse also (B, H, L_q), float32
    (float64 for float64), -inf where a query sees no key. With return_lse_rest also the same of the rest, 0 there.

Cost: one launch, or on a GPU two where the keys are split or a bool mask is packed first; 2 D_h MACs and 5 more FLOPs
for each pair that causality and the window allow.
Source: Dao, FlashAttention-2 (arXiv:2307.08691).

Raises
------
ValueError
    For shapes or dtypes that do not fit, and a rung that does not take them.

Examples
--------
>>> q = rl.randn(1, 4, 8, 16)
>>> rl.attention(q, q, q, is_causal=True).shape
(1, 4, 8, 16))";

constexpr const char* kBackwardDoc =
    R"(The gradients of attention, with the scores recomputed.

5 D_h MACs per visible pair; no L_q x L_kv tensor except in "v0_composed". v and dout of hidden pairs add nothing, NaN or
not; q and k must be finite. Source: Dao, FlashAttention-2 (arXiv:2307.08691), algorithm 2.

Parameters
----------
dout, out : Tensor
    The gradient of the result, and the result; like q.
q, k, v : Tensor
    What `attention` got, and so with attn_mask, is_causal, window and scale.
lse, lse_rest : Tensor
    What attention(..., return_lse_rest=True) returned; without the rest it counts as 0, which costs digits where |lse| is
    large.
deterministic : bool
    The same bits on every run.
variant : str
    A rung of rl.variants("attention_backward"); the fastest that fits when empty.

Returns
-------
tuple of Tensor
    (dq, dk, dv), laid out like q, k and v.

Raises
------
ValueError
    For shapes or dtypes that do not fit.

Examples
--------
>>> q = rl.randn(1, 4, 8, 16)
>>> out, lse = rl.attention(q, q, q, return_lse=True)
>>> [gradient.shape for gradient in rl.attention_backward(rl.ones_like(out), q, q, q, out, lse)]
[(1, 4, 8, 16), (1, 4, 8, 16), (1, 4, 8, 16)])";

}  // namespace

void register_attention(py::module_& m) {
  m.def(
      "attention",
      [](const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, bool is_causal,
         std::optional<int64_t> window, std::optional<double> scale, const std::optional<Tensor>& kv_length,
         bool return_lse, bool return_lse_rest, bool deterministic, std::string_view variant) -> py::object {
        AttentionResult result = run_without_gil([=] {
          return attention(q, k, v, mask, {is_causal, window, scale, deterministic, kv_length},
                           return_lse || return_lse_rest, variant, return_lse_rest);
        });
        if (return_lse_rest)
          return py::make_tuple(std::move(result.out), std::move(*result.lse), std::move(*result.lse_rest));
        if (!return_lse) return py::cast(std::move(result.out));
        return py::make_tuple(std::move(result.out), std::move(*result.lse));
      },
      py::arg("q"), py::arg("k"), py::arg("v"), py::arg("attn_mask") = py::none(), py::kw_only(),
      py::arg("is_causal") = false, py::arg("window") = py::none(), py::arg("scale") = py::none(),
      py::arg("kv_length") = py::none(), py::arg("return_lse") = false, py::arg("return_lse_rest") = false,
      py::arg("deterministic") = false, py::arg("variant") = "", kAttentionDoc);
  m.def("attention_backward",
        without_gil([](const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                       const Tensor& lse, const std::optional<Tensor>& mask, bool is_causal,
                       std::optional<int64_t> window, std::optional<double> scale,
                       const std::optional<Tensor>& lse_rest, bool deterministic, std::string_view variant) {
          const AttentionGradients grads = attention_backward(dout, q, k, v, out, lse, lse_rest, mask,
                                                              {is_causal, window, scale, deterministic, {}}, variant);
          return std::make_tuple(grads.dq, grads.dk, grads.dv);
        }),
        py::arg("dout"), py::arg("q"), py::arg("k"), py::arg("v"), py::arg("out"), py::arg("lse"),
        py::arg("attn_mask") = py::none(), py::kw_only(), py::arg("is_causal") = false, py::arg("window") = py::none(),
        py::arg("scale") = py::none(), py::arg("lse_rest") = py::none(), py::arg("deterministic") = false,
        py::arg("variant") = "", kBackwardDoc);
  m.def("attention_mask", without_gil(&attention_mask), py::arg("q_length"), py::arg("kv_length"), py::kw_only(),
        py::arg("is_causal") = true, py::arg("window") = py::none(), py::arg("device") = "cpu",
        R"(The keys that each query may see. One launch.

Parameters
----------
q_length, kv_length : int
    L_q and L_kv. The last query stands beside the last key.
is_causal : bool
    Whether a query sees no later key.
window : int, optional
    Only keys nearer than this are seen.
device : str
    Where the mask lies.

Returns
-------
Tensor
    (L_q, L_kv), bool: True may be seen.

Raises
------
ValueError
    For a negative length, or a window below 1.

Examples
--------
>>> rl.attention_mask(2, 3).tolist()
[[True, True, False], [True, True, True]])");
}

}  // namespace rooflab
