#include <optional>
#include <tuple>
#include <variant>

#include "bindings/bindings.h"
#include "ops/activation_backward.h"
#include "ops/row_backward.h"

namespace rooflab {
namespace {

using kernels::Activation;

constexpr const char* kRmsNormDoc = R"doc(The gradients of rms_norm's operands.

With n = x / sqrt(mean(x^2) + eps) and dn = dy times the gain: dx = (dn - n mean(dn n)) / sqrt(mean(x^2) + eps), and
dweight is the sum of dy n over all rows. On the CPU one launch; on a GPU one for dx, or two for long rows, and one that
finishes dweight, with the same bits on every run. 8 FLOPs per element, 3 more with a weight and 4 with a zero-centered
one.

Parameters
----------
dy : Tensor
    (..., D), the gradient of the result, of the shape and dtype of `x`.
x : Tensor
    (..., D), what rms_norm got.
weight : Tensor, optional
    (D,), of the dtype of `x`; ones when there is none.
eps : float
    Added to the mean square, as in rms_norm.
zero_centered : bool
    Whether the gain is 1 + weight.
variant : str
    A rung of rl.variants("rms_norm_backward"); the fastest that fits when empty.

Returns
-------
Tensor, or (Tensor, Tensor)
    dx; with a weight (dx, dweight). Of the shapes of `x` and `weight`.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit.

Examples
--------
>>> rl.rms_norm_backward(rl.tensor([1.0, 0.0]), rl.tensor([1.0, 1.0]), eps=3.0).tolist()
[0.4375, -0.0625])doc";

constexpr const char* kLayerNormDoc = R"doc(The gradients of layer_norm's operands.

With r = 1 / sqrt(var + eps), n = (x - mean) r and dn = dy weight: dx = r (dn - mean(dn) - n mean(dn n)); over all rows,
dweight is the sum of dy n and dbias that of dy. On the CPU one launch; on a GPU one for dx, or two for long rows, and one
that finishes the sums, with the same bits on every run. 12 FLOPs per element, 3 more with a weight and 1 with a bias.

Parameters
----------
dy : Tensor
    (..., D), the gradient of the result, of the shape and dtype of `x`.
x : Tensor
    (..., D), what layer_norm got.
weight : Tensor, optional
    (D,), of the dtype of `x`; ones when there is none.
eps : float
    Added to the variance, as in layer_norm.
has_bias : bool
    Whether the gradient of a bias is wanted too.
variant : str
    A rung of rl.variants("layer_norm_backward"); the fastest that fits when empty.

Returns
-------
Tensor, or a tuple of two or three
    dx, then dweight where there is a weight, then dbias where it is wanted. Of the shapes of `x`, `weight` and the bias.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit.

Examples
--------
>>> dx, dbias = rl.layer_norm_backward(rl.ones(2, 4), rl.randn(2, 4), has_bias=True)
>>> dbias.tolist()
[2.0, 2.0, 2.0, 2.0])doc";

std::string softmax_doc(const char* forward, const char* formula, const char* example) {
  return message("The gradient of ", forward, "'s operand: ", formula, R"doc( along `dim`.

4 FLOPs per element; one launch along the last dim, two for long rows on a GPU; otherwise a copy first.

Parameters
----------
dy : Tensor
    The gradient of the result, of the shape and dtype of `y`.
y : Tensor
    What )doc",
                 forward, R"doc( returned, of any shape with a dimension.
dim : int
    Along which )doc",
                 forward, R"doc( was taken.
variant : str
    A rung of rl.variants(")doc",
                 forward, R"doc(_backward"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape and dtype of `y`.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit, or `y` lacks the dimension.

Examples
--------
)doc",
                 example);
}

// gelu_backward and silu_backward.
void register_activation(py::module_& m, const char* name, Activation activation, const char* forward, int flops) {
  const std::string doc = message("The gradient of ", forward, "'s operand: dy times the slope of ", forward,
                                  R"doc( at a. One launch.

Parameters
----------
dy : Tensor
    The gradient of the result, of the shape and dtype of `a`.
a : Tensor
    What )doc",
                                  forward, R"doc( got.
variant : str
    A rung of rl.variants(")doc",
                                  name, R"doc("); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape and dtype of `a`; )doc",
                                  flops, R"doc( FLOPs per element.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit.

Examples
--------
>>> rl.)doc",
                                  name, R"doc((rl.ones(2), rl.zeros(2)).tolist()
[0.5, 0.5])doc");
  m.def(name, without_gil([activation](const Tensor& dy, const Tensor& a, std::string_view variant) {
          return activation_backward(activation, dy, a, variant);
        }),
        py::arg("dy"), py::arg("a"), py::arg("variant") = "", doc.c_str());
}

// geglu_backward and swiglu_backward.
void register_gated(py::module_& m, const char* name, Activation activation, const char* forward, int flops) {
  const std::string doc = message("The gradients of both operands of ", forward,
                                  R"doc(, whose result is act(a) b: da = dy b act'(a) and db = dy act(a). One launch.

Parameters
----------
dy : Tensor
    The gradient of the result, of the shape and dtype of `a`.
a, b : Tensor
    The gate and what it multiplies, of one shape and dtype.
variant : str
    A rung of rl.variants(")doc",
                                  name, R"doc("); the fastest that fits when empty.

Returns
-------
(Tensor, Tensor)
    da and db, of the shape and dtype of `a`; )doc",
                                  flops, R"doc( FLOPs per element.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit.

Examples
--------
>>> da, db = rl.)doc",
                                  name, R"doc((rl.ones(2), rl.zeros(2), rl.ones(2))
>>> da.tolist(), db.tolist()
([0.5, 0.5], [0.0, 0.0]))doc");
  m.def(name, without_gil([activation](const Tensor& dy, const Tensor& a, const Tensor& b, std::string_view variant) {
          const GatedGradients found = gated_backward(activation, dy, a, b, variant);
          return std::make_tuple(found.da, found.db);
        }),
        py::arg("dy"), py::arg("a"), py::arg("b"), py::arg("variant") = "", doc.c_str());
}

}  // namespace

void register_backward(py::module_& m) {
  m.def(
      "rms_norm_backward",
      without_gil([](const Tensor& dy, const Tensor& x, const std::optional<Tensor>& weight, double eps,
                     bool zero_centered, std::string_view variant) -> std::variant<Tensor, std::tuple<Tensor, Tensor>> {
        const NormGradients found =
            rms_norm_backward(dy, x, weight.value_or(Tensor()), eps, zero_centered, weight.has_value(), variant);
        if (!weight) return found.dx;
        return std::make_tuple(found.dx, found.dweight);
      }),
      py::arg("dy"), py::arg("x"), py::arg("weight") = py::none(), py::arg("eps") = 1e-6,
      py::arg("zero_centered") = false, py::arg("variant") = "", kRmsNormDoc);
  m.def("layer_norm_backward",
        without_gil([](const Tensor& dy, const Tensor& x, const std::optional<Tensor>& weight, double eps,
                       bool has_bias, std::string_view variant)
                        -> std::variant<Tensor, std::tuple<Tensor, Tensor>, std::tuple<Tensor, Tensor, Tensor>> {
          const NormGradients found =
              layer_norm_backward(dy, x, weight.value_or(Tensor()), eps, weight.has_value(), has_bias, variant);
          if (weight && has_bias) return std::make_tuple(found.dx, found.dweight, found.dbias);
          if (weight) return std::make_tuple(found.dx, found.dweight);
          if (has_bias) return std::make_tuple(found.dx, found.dbias);
          return found.dx;
        }),
        py::arg("dy"), py::arg("x"), py::arg("weight") = py::none(), py::arg("eps") = 1e-5, py::arg("has_bias") = false,
        py::arg("variant") = "", kLayerNormDoc);
  const auto softmax = [&](const char* name, auto function, const std::string& doc) {
    m.def(name, without_gil(function), py::arg("dy"), py::arg("y"), py::arg("dim") = -1, py::arg("variant") = "",
          doc.c_str());
  };
  softmax("softmax_backward", &softmax_backward,
          softmax_doc("softmax", "y (dy - sum(dy y))",
                      ">>> rl.softmax_backward(rl.tensor([1.0, 0.0]), rl.tensor([0.5, 0.5])).tolist()\n[0.25, -0.25]"));
  softmax("log_softmax_backward", &log_softmax_backward,
          softmax_doc("log_softmax", "dy - exp(y) sum(dy)",
                      ">>> rl.log_softmax_backward(rl.tensor([1.0, 0.0]), rl.tensor([0.0, float(\"-inf\")])).tolist()\n"
                      "[0.0, 0.0]"));
  register_activation(m, "gelu_backward", Activation::kGelu, "gelu", 13);
  register_activation(m, "silu_backward", Activation::kSilu, "silu", 6);
  register_gated(m, "geglu_backward", Activation::kGelu, "geglu", 16);
  register_gated(m, "swiglu_backward", Activation::kSilu, "swiglu", 9);
}

}  // namespace rooflab
