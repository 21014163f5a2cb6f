// Functions along a dimension: argmax, argmin, max and min, sort, topk, cumsum.
#include "bindings/bindings.h"

namespace rooflab {
namespace {

std::string place_doc(const char* name, const char* extreme) {
  return message("The position of the ", extreme, R"doc( element along a dimension, or in the whole tensor.

One launch, 1 FLOP per element of `x`.

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
    int64: the first among equal elements; the first NaN, if there is one.

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
                 R"doc( elements and their positions.

`)doc",
                 name, R"doc((x)` is `a)doc", name, R"doc((x)` and is counted as that. `)doc", name,
                 R"doc((x, dim)` gives a named tuple, as in PyTorch: `.values` and
`.indices`. For the values alone, or over several dimensions, use `a)doc",
                 name, R"doc((x, dim)`. One launch, 1 FLOP per
element of `x`. `)doc",
                 name, R"doc((x, other)` of two tensors is rl.)doc", other, R"doc(.

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
    Without `dim`: one element, NaN if there is one; equal elements share the gradient.
ValuesAndIndices
    With `dim`: values (of the dtype of `x`, NaN where there is one) and indices (int64, the first among equals). The
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

constexpr const char* kSortDoc = R"doc(Sorts the elements along a dimension, and tells where each one was.

Equal elements keep their order; a NaN is larger than any number. One launch.

Parameters
----------
x : Tensor
    Of any dtype.
dim : int
    Along which dimension.
descending : bool
    Whether the largest come first.
variant : str
    A rung of rl.variants("sort"); the fastest that fits when empty.

Returns
-------
ValuesAndIndices
    A named tuple, both of the shape of `x`: values, and indices (int64). The gradient goes to where elements were.

Raises
------
ValueError
    For a `dim` that `x` lacks.

Examples
--------
>>> values, indices = rl.sort(rl.tensor([3.0, 1.0, 2.0]))
>>> values.tolist(), indices.tolist()
([1.0, 2.0, 3.0], [1, 2, 0]))doc";

constexpr const char* kArgsortDoc = R"doc(The indices that sort the elements along a dimension.

These are the indices of rl.sort, and they are counted like it.

Parameters
----------
x : Tensor
    Of any dtype.
dim : int
    Along which dimension.
descending : bool
    Whether the largest come first.

Returns
-------
Tensor
    int64, of the shape of `x`.

Raises
------
ValueError
    For a `dim` that `x` lacks.

Examples
--------
>>> rl.argsort(rl.tensor([3.0, 1.0, 2.0])).tolist()
[1, 2, 0])doc";

constexpr const char* kTopkDoc = R"doc(The k largest elements along a dimension in order, and their positions.

Equal elements keep their order; a NaN is larger than any number. One launch.

Parameters
----------
x : Tensor
    Of any dtype.
k : int
    How many, at most the size of `dim`.
dim : int
    Along which dimension.
largest : bool
    False for the k smallest, the smallest first.
variant : str
    A rung of rl.variants("topk"); the fastest that fits when empty.

Returns
-------
ValuesAndIndices
    A named tuple, both with size k along `dim`: values, and indices (int64). The gradient goes to where elements were.

Raises
------
ValueError
    For a `dim` that `x` lacks, and a `k` larger than its size.

Examples
--------
>>> values, indices = rl.topk(rl.tensor([3.0, 1.0, 2.0]), 2)
>>> values.tolist(), indices.tolist()
([3.0, 2.0], [0, 2]))doc";

constexpr const char* kCumsumDoc = R"doc(Running sums along a dimension: y[k] = x[0] + ... + x[k].

One launch, 1 FLOP per element. Accumulated in double on the CPU and in float32 on a GPU (float64 in double). A GPU adds
in another order: an infinity or NaN may stand where numbers near the largest of a dtype cancel each other.

Parameters
----------
x : Tensor
    Of any dtype.
dim : int
    Along which dimension.
variant : str
    A rung of rl.variants("cumsum"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape of `x`; int64 for integers and bool, else of its dtype.

Raises
------
ValueError
    For a `dim` that `x` lacks.

Examples
--------
>>> rl.cumsum(rl.tensor([1, 2, 3]), dim=0).tolist()
[1, 3, 6])doc";

// max(x), then max(x, other) and max(x, dim). A tensor of one integer is no dim here.
template <class Extreme, class Whole>
void define_extreme(py::module_& m, py::class_<Tensor>& tensor, const char* name, Extreme along, Whole whole,
                    kernels::ElementwiseOp of_two, const std::string& doc) {
  const auto all = without_gil([whole](const Tensor& x) { return whole(x, {}, false, {}); });
  const std::vector<std::string> parameters{"dim", "keepdim", "variant"};  // of the second
  m.def(name, all, py::arg("x"), doc.c_str());
  tensor.def(name, all, method_doc(name, doc, parameters).c_str());
  define_overload(m, tensor, name,
                  without_gil([of_two](const Tensor& x, const Tensor& other) { return elementwise(of_two, x, other); }),
                  py::arg("other"));
  define_overload(m, tensor, name, without_gil(along), py::arg("dim"), py::arg("keepdim") = false,
                  py::arg("variant") = "");
}

}  // namespace

void register_order(py::module_& m, py::class_<Tensor>& tensor) {
  m.attr("ValuesAndIndices") = py::module_::import("rooflab._results").attr("ValuesAndIndices");
  const py::arg_v dim = py::arg("dim") = py::none(), keepdim = py::arg("keepdim") = false,
                  variant = py::arg("variant") = "";
  define(m, tensor, "argmax", without_gil(&argmax), place_doc("argmax", "largest"), dim, keepdim, variant);
  define(m, tensor, "argmin", without_gil(&argmin), place_doc("argmin", "smallest"), dim, keepdim, variant);
  const py::arg_v last = py::arg("dim") = -1, descending = py::arg("descending") = false;
  define(m, tensor, "sort", without_gil(&sort), kSortDoc, last, descending, variant);
  define(m, tensor, "argsort",
         without_gil([](const Tensor& x, int64_t dim, bool descending) { return sort(x, dim, descending).indices; }),
         kArgsortDoc, last, descending);
  m.def("_sort_values", without_gil(&sort_values), py::arg("x"), variant,
        "rl.sort along the last dimension without positions, nor a gradient: zeros of both signs come in any order.");
  m.def("_searchsorted", without_gil(&searchsorted), py::arg("sorted"), py::arg("values"),
        "How many numbers of each sorted row (..., N) are at most each value of (..., M), int64 (..., M).");
  define(m, tensor, "topk", without_gil(&topk), kTopkDoc, py::arg("k"), last, py::arg("largest") = true, variant);
  m.def("median", without_gil(&median), py::arg("x"), py::arg("dim"), keepdim, variant,
        "The middle element along a dimension, and where it is; rl.median is in composed/statistics.py.");
  define(m, tensor, "cumsum", without_gil(&cumsum), kCumsumDoc, py::arg("dim"), variant);
  define_extreme(m, tensor, "max", &max, &amax, kernels::ElementwiseOp::kMaximum,
                 extreme_doc("max", "largest", "maximum"));
  define_extreme(m, tensor, "min", &min, &amin, kernels::ElementwiseOp::kMinimum,
                 extreme_doc("min", "smallest", "minimum"));
}

}  // namespace rooflab
