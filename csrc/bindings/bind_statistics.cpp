// Statistics and tests of elements, most of them made of ops (nn/statistics.cpp).
#include "bindings/bindings.h"
#include "nn/nn.h"

namespace rooflab {
namespace {

std::string spread_doc(const char* name, const char* what, const char* result) {
  return message(what, R"doc( over one, several or all dimensions.

)doc",
                 R"doc(One launch, 4 FLOPs per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU
accumulates in float64.

Parameters
----------
x : Tensor
    Of a floating dtype.
dim : int, tuple of int or None
    What to go over; None is all.
correction : float
    The divisor is the number of elements minus this: 1 as in PyTorch, 0 as in NumPy.
keepdim : bool
    Whether reduced dimensions stay, with size 1.
variant : str
    A rung of rl.variants(")doc",
                 name, R"doc("); the fastest that fits when empty.

Returns
-------
Tensor
    Of the dtype of `x`; NaN where there is nothing to divide by.

Raises
------
ValueError
    For integers; for a `dim` that `x` lacks or that appears twice.

Examples
--------
>>> rl.)doc",
                 name, R"doc((rl.tensor([1.0, 2.0, 3.0, 6.0]), correction=0).item()
)doc",
                 result);
}

std::string truth_doc(const char* name, const char* what, const char* of_none, const char* result) {
  return message("Whether ", what, R"doc( true (not 0), over one, several or all dimensions.

One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU takes two for few results.

Parameters
----------
x : Tensor
    Of any dtype; NaN is true.
dim : int, tuple of int or None
    What to go over; None and an empty tuple are all.
keepdim : bool
    Whether reduced dimensions stay, with size 1.

Returns
-------
Tensor
    bool; )doc",
                 of_none, R"doc( if there is no element.

Raises
------
ValueError
    For a `dim` that `x` lacks or that appears twice.

Examples
--------
>>> rl.)doc",
                 name, R"doc((rl.tensor([[1, 0], [1, 1]]), dim=1).tolist()
)doc",
                 result);
}

std::string test_doc(const char* name, const char* what, const char* made_of, const char* result) {
  return message(what, ", element by element.\n\n", made_of, R"doc(

Parameters
----------
x : Tensor
    Of any dtype.

Returns
-------
Tensor
    bool, of the shape of `x`.

Examples
--------
>>> rl.)doc",
                 name, R"doc((rl.tensor([1.0, float("inf"), float("nan")])).tolist()
)doc",
                 result);
}

std::string close_doc(const char* what, const char* returns, const char* example) {
  return message(what, R"doc(: |a - b| <= atol + rtol |b|, or equal.

Made of abs, sub, mul, add, comparisons and where, in float32 for 16 bits and in float64 for integers; counted as these.

Parameters
----------
a, b : Tensor
    Of one dtype and device; shapes broadcast.
rtol, atol : float
    The relative and the absolute tolerance.
equal_nan : bool
    Whether NaN is close to NaN.

Returns
-------
)doc",
                 returns, R"doc(

Raises
------
ValueError
    When shapes, dtypes or devices do not fit, or a tolerance is negative.

Examples
--------
)doc",
                 example);
}

constexpr const char* kMaskedFillDoc = R"doc(x with a number wherever a mask is True.

Made of where, and counted like it.

Parameters
----------
x : Tensor
    Of any dtype.
mask : Tensor
    bool, of a shape that broadcasts to that of `x`.
value : float or Tensor
    The number to put where the mask is True. A tensor has no dimensions, and is converted to the dtype of `x`.

Returns
-------
Tensor
    Of the shape and dtype of `x`.

Raises
------
ValueError
    When the mask is not bool or does not broadcast; for a number that the dtype cannot hold.

Examples
--------
>>> rl.masked_fill(rl.tensor([1.0, 2.0]), rl.tensor([True, False]), 0.0).tolist()
[0.0, 2.0])doc";

template <class Reduce>
auto over_dims(Reduce reduce) {
  return [reduce](const Tensor& x, const py::object& dim, bool keepdim, std::string_view variant) {
    const Shape dims = to_dims(dim);
    return run_without_gil([=] { return reduce(x, dims, keepdim, variant); });
  };
}

template <class Spread>
auto spread_over_dims(Spread spread) {
  return [spread](const Tensor& x, const py::object& dim, double correction, bool keepdim, std::string_view variant) {
    const Shape dims = to_dims(dim);
    return run_without_gil([=] { return spread(x, dims, correction, keepdim, variant); });
  };
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  const Tensor close =
      run_without_gil([=] { return to_device(all(nn::isclose(a, b, rtol, atol, equal_nan), {}, false), Device{}); });
  return to_numpy(close).attr("item")().cast<bool>();
}

}  // namespace

void register_statistics(py::module_& m, py::class_<Tensor>& tensor) {
  const py::arg_v dim = py::arg("dim") = py::none(), keepdim = py::arg("keepdim") = false;
  const py::arg_v correction = py::arg("correction") = 1;
  const py::arg_v variant = py::arg("variant") = "";
  define(m, tensor, "var", spread_over_dims(&var), spread_doc("var", "The variance", "3.5"), dim, py::kw_only(),
         correction, keepdim, variant);
  define(m, tensor, "std", spread_over_dims(&std), spread_doc("std", "The standard deviation", "1.870..."), dim,
         py::kw_only(), correction, keepdim, variant);
  define(m, tensor, "all", over_dims(&all), truth_doc("all", "all elements are", "True", "[False, True]"), dim, keepdim,
         variant);
  define(m, tensor, "any", over_dims(&any), truth_doc("any", "any element is", "False", "[True, True]"), dim, keepdim,
         variant);
  define(m, tensor, "isnan", without_gil(&nn::isnan),
         test_doc("isnan", "Whether it is NaN", "Made of ne; False for integers and bool.", "[False, False, True]")
             .c_str());
  define(m, tensor, "isinf", without_gil(&nn::isinf),
         test_doc("isinf", "Whether it is infinite", "Made of abs and eq; False for integers and bool.",
                  "[False, True, False]")
             .c_str());
  define(m, tensor, "isfinite", without_gil(&nn::isfinite),
         test_doc("isfinite", "Whether it is neither NaN nor infinite",
                  "Made of abs and lt; True for integers and bool.", "[True, False, False]")
             .c_str());
  const py::arg_v rtol = py::arg("rtol") = 1e-5, atol = py::arg("atol") = 1e-8, nans = py::arg("equal_nan") = false;
  m.def("isclose", without_gil(&nn::isclose), py::arg("a"), py::arg("b"), rtol, atol, nans,
        close_doc("Which elements are close", "Tensor\n    bool.",
                  ">>> rl.isclose(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 2.1])).tolist()\n[True, False]")
            .c_str());
  m.def("allclose", &allclose, py::arg("a"), py::arg("b"), rtol, atol, nans,
        close_doc("Whether all elements are close", "bool\n    Read back from the device: on a GPU this waits for it.",
                  ">>> rl.allclose(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 2.1]))\nFalse")
            .c_str());
  using Fill = Tensor (*)(const Tensor&, const Tensor&, Scalar);
  using FillFromTensor = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);
  const py::arg mask("mask"), value("value");
  define(m, tensor, "masked_fill", without_gil(Fill{&nn::masked_fill}), kMaskedFillDoc, mask, value);
  define_overload(m, tensor, "masked_fill", without_gil(FillFromTensor{&nn::masked_fill}), mask, value);
}

}  // namespace rooflab
