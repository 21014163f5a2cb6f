// argmax, argmin, and max and min along a dimension.
#include "bindings/bindings.h"

namespace rooflab {
namespace {

std::string place_doc(const char* name, const char* extreme) {
  return message("The place of the ", extreme, R"doc( element along a dimension, or in the whole tensor.

One launch, 1 FLOP an element of `x`.

Parameters
----------
x : Tensor
    Of any dtype and shape.
dim : int or None
    Along which dimension; None takes the tensor as flattened.
keepdim : bool
    Whether reduced dimensions stay, with size 1.
variant : str
    A rung of rl.variants(")doc",
                 name, R"doc("); the fastest that fits when empty.

Returns
-------
Tensor
    int64: of equal elements the first, of NaN the first.

Raises
------
ValueError
    When there is no element to choose from; for a `dim` that `x` lacks.

Examples
--------
>>> rl.)doc",
                 name, R"doc((rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
)doc",
                 std::string_view(extreme) == "largest" ? "[1, 0]" : "[0, 1]");
}

std::string extreme_doc(const char* name, const char* extreme, const char* other) {
  return message("The ", extreme, R"doc( element of the tensor; or, along a dimension, the )doc", extreme,
                 R"doc( elements and their places.

`)doc",
                 name, R"doc((x)` is `a)doc", name, R"doc((x)` and is counted as that. `)doc", name,
                 R"doc((x, dim)` gives a named tuple, as in PyTorch: `.values` and
`.indices`. For the values alone, or over several dimensions, use `a)doc",
                 name, R"doc((x, dim)`. One launch, 1 FLOP an
element of `x`. Of two tensors, rl.)doc",
                 other, R"doc( gives the )doc", extreme, R"doc( element by element.

Parameters
----------
x : Tensor
    Of any dtype and shape.
dim : int
    Along which dimension.
keepdim : bool
    Whether `dim` stays, with size 1.
variant : str
    A rung of rl.variants(")doc",
                 name, R"doc("); the fastest that fits when empty.

Returns
-------
Tensor
    Without `dim`: one element, NaN if there is one; equals share the gradient.
ValuesAndIndices
    With `dim`: values (of the dtype of `x`, NaN where there is one) and indices (int64, the first of equals). The
    gradient goes to the elements at `indices`.

Raises
------
ValueError
    When there is no element to choose from; for a `dim` that `x` lacks.

Examples
--------
>>> values, indices = rl.tensor([[1.0, 5.0], [7.0, 2.0]]).)doc",
                 name, R"doc((dim=1)
>>> values.tolist(), indices.tolist()
)doc",
                 std::string_view(extreme) == "largest" ? "([5.0, 7.0], [1, 0])" : "([1.0, 2.0], [0, 1])");
}

// max(x), then max(x, dim).
template <class Extreme, class Whole>
void define_extreme(py::module_& m, py::class_<Tensor>& tensor, const char* name, Extreme along, Whole whole,
                    const std::string& doc) {
  define(
      m, tensor, name, [whole](const Tensor& x) { return whole(x, {}, false, {}); }, WithoutGil(), doc.c_str());
  // The result is made into Python objects with the lock held again.
  define(
      m, tensor, name,
      [along](const Tensor& x, int64_t dim, bool keepdim, std::string_view variant) {
        const NoGil no_gil;
        return along(x, dim, keepdim, variant);
      },
      py::arg("dim"), py::arg("keepdim") = false, py::arg("variant") = "");
}

}  // namespace

void register_order(py::module_& m, py::class_<Tensor>& tensor) {
  m.attr("ValuesAndIndices") = py::module_::import("rooflab._results").attr("ValuesAndIndices");
  const py::arg_v dim = py::arg("dim") = py::none(), keepdim = py::arg("keepdim") = false,
                  variant = py::arg("variant") = "";
  define(m, tensor, "argmax", &argmax, WithoutGil(), dim, keepdim, variant, place_doc("argmax", "largest").c_str());
  define(m, tensor, "argmin", &argmin, WithoutGil(), dim, keepdim, variant, place_doc("argmin", "smallest").c_str());
  define_extreme(m, tensor, "max", &max, &amax, extreme_doc("max", "largest", "maximum"));
  define_extreme(m, tensor, "min", &min, &amin, extreme_doc("min", "smallest", "minimum"));
}

}  // namespace rooflab
