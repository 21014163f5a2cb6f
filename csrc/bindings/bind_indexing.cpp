// cat; choosing by an index (gather, index_select, embedding, scatter_add) and by position (tril, triu).
#include "bindings/bindings.h"

namespace rooflab {
namespace {

constexpr const char* kCatDoc = R"doc(Joins tensors along a dimension.

One op. Up to 32 tensors take one launch. Where their dtypes differ, or the elements of a row are not adjacent in
memory, each tensor that is not empty takes a launch of its own.

Parameters
----------
tensors : sequence of Tensor
    At least one, all on one device; their shapes differ along `dim` alone.
dim : int
    The dimension that grows.
variant : str
    A rung of rl.variants("cat"); the fastest that fits when empty.

Returns
-------
Tensor
    Contiguous; each tensor gets its part of the gradient.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit, or there is no tensor.

Examples
--------
>>> rl.cat([rl.tensor([1, 2]), rl.tensor([3])]).tolist()
[1, 2, 3])doc";

constexpr const char* kGatherDoc = R"doc(One element of `x` for each number of an index, along `dim`.

y[i, j, k] = x[index[i, j, k], j, k] for dim 0 of three. One launch.

Parameters
----------
x : Tensor
    What to choose from.
dim : int
    The dimension that the index counts.
index : Tensor
    int64 or int32, with as many dimensions as `x`, none longer than that of `x` except `dim`.
variant : str
    A rung of rl.variants("gather"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape of `index` and the dtype of `x`. Its gradient is a scatter_add.

Raises
------
ValueError
    When shapes do not fit; for an index out of range. On a GPU this is raised at the next wait (see
    rl.cuda.synchronize), and the result holds NaN there, -1 for integers and True for bool.

Examples
--------
>>> rl.gather(rl.tensor([[1, 2], [3, 4]]), 1, rl.tensor([[1], [0]])).tolist()
[[2], [3]])doc";

constexpr const char* kIndexSelectDoc = R"doc(Slices of `x` along `dim`, chosen by an index, which may repeat.

One launch.

Parameters
----------
x : Tensor
    What to choose from.
dim : int
    The dimension that the index counts.
index : Tensor
    (N,), int64 or int32.
variant : str
    A rung of rl.variants("index_select"); the fastest that fits when empty.

Returns
-------
Tensor
    As `x`, with size N along `dim`. Its gradient is a scatter_add.

Raises
------
ValueError
    When `index` is not one-dimensional; for an index out of range. On a GPU this is raised at the next wait (see
    rl.cuda.synchronize), and the result holds NaN there, -1 for integers and True for bool.

Examples
--------
>>> rl.index_select(rl.tensor([[1, 2], [3, 4]]), 0, rl.tensor([1, 1])).tolist()
[[3, 4], [3, 4]])doc";

constexpr const char* kEmbeddingDoc = R"doc(A row of `weight` for each number of `index`.

One launch; it reads only the chosen rows.

Parameters
----------
index : Tensor
    (B, L) or any other shape, int64 or int32: which row.
weight : Tensor
    (V, D): V rows.
variant : str
    A rung of rl.variants("embedding"); the fastest that fits when empty.

Returns
-------
Tensor
    (B, L, D), of the dtype of `weight`, whose gradient is a scatter_add: rows chosen twice get both gradients.

Raises
------
ValueError
    When `weight` is not a matrix; for an index out of range. On a GPU this is raised at the next wait (see
    rl.cuda.synchronize), and the row holds NaN, -1 for integers and True for bool.

Examples
--------
>>> rl.embedding(rl.tensor([2, 0]), rl.tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])).tolist()
[[2.0, 2.5], [0.0, 0.5]])doc";

constexpr const char* kScatterAddDoc = R"doc(x with each element of `src` added where an index says, along `dim`.

y = x; y[index[i, j, k], j, k] += src[i, j, k] for dim 0 of three. Elements with the same destination are summed: on the
CPU in their order, on a GPU by atomics, in any order, so the last bits of floating sums may differ between runs. 16-bit
sums are kept in float32 and rounded once. Where `src` has more elements than `x`, sums of float32 and of 16 bits are kept
in float64. Two launches, or three where sums are kept in another dtype. 1 FLOP per element of `src`.

Parameters
----------
x : Tensor
    What is added to; it stays as it is.
dim : int
    The dimension that the index counts.
index : Tensor
    int64 or int32, of the shape of `src`.
src : Tensor
    Of the dtype of `x`, no longer than `x` along any dimension but `dim`.
variant : str
    A rung of rl.variants("scatter_add"); the fastest that fits when empty.

Returns
-------
Tensor
    Of the shape and dtype of `x`.

Raises
------
ValueError
    When shapes or dtypes do not fit; for an index out of range. On a GPU this is raised at the next wait (see
    rl.cuda.synchronize), and the element is ignored.

Examples
--------
>>> rl.scatter_add(rl.zeros(3), 0, rl.tensor([2, 0, 2]), rl.tensor([1.0, 2.0, 3.0])).tolist()
[2.0, 0.0, 4.0])doc";

constexpr const char* kNonzeroDoc = R"doc(The places of elements that are not 0.

They are counted in one launch, a number for each portion of `x`, and the numbers are read from the device. Another
launch writes the places. Before, other dtypes than bool are compared with 0 in one.

Parameters
----------
x : Tensor
    (...).
variant : str
    A rung of rl.variants("nonzero"); the fastest that fits when empty.

Returns
-------
Tensor
    (N, dimensions of x), int64, in order.

Raises
------
ValueError
    For tensors without memory; while a graph is captured.

Examples
--------
>>> rl.nonzero(rl.tensor([[0, 1], [2, 0]])).tolist()
[[0, 1], [1, 0]])doc";

std::string triangle_doc(const char* name, const char* kept, const char* condition, const char* result) {
  return message("The part of a matrix on and ", kept, R"doc( a diagonal; zeros elsewhere.

y[i, j] = x[i, j] where )doc",
                 condition, R"doc(. One launch.

Parameters
----------
x : Tensor
    (..., M, N): a matrix, or a batch of them; of any dtype.
diagonal : int
    0 for the main diagonal, larger for those above it.
variant : str
    A rung of rl.variants(")doc",
                 name, R"doc("); the fastest when empty.

Returns
-------
Tensor
    Of the shape and dtype of `x`, contiguous. The gradient is zeroed in the same way.

Raises
------
ValueError
    When `x` has fewer than two dimensions.

Examples
--------
>>> rl.)doc",
                 name, R"doc((rl.ones(2, 3, dtype="int64")).tolist()
)doc",
                 result);
}

}  // namespace

void register_indexing(py::module_& m, py::class_<Tensor>& tensor) {
  const py::arg index("index");
  const py::arg_v variant = py::arg("variant") = "";
  m.def("cat", without_gil(&cat), py::arg("tensors"), py::arg("dim") = 0, variant, kCatDoc);
  m.def("embedding", without_gil(&embedding), index, py::arg("weight"), variant, kEmbeddingDoc);
  define(m, tensor, "gather", without_gil(&gather), kGatherDoc, py::arg("dim"), index, variant);
  define(m, tensor, "index_select", without_gil(&index_select), kIndexSelectDoc, py::arg("dim"), index, variant);
  m.def(
      "_scatter",
      without_gil(py::overload_cast<const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view>(&scatter)),
      py::arg("x"), py::arg("dim"), index, py::arg("src"), variant,
      "x with the elements of `src` written where an index says, along `dim`: rl.scatter with tensors that fit.");
  m.def("_scatter",
        without_gil(py::overload_cast<const Tensor&, int64_t, const Tensor&, Scalar, std::string_view>(&scatter)),
        py::arg("x"), py::arg("dim"), index, py::arg("src"), variant);
  m.def("_pad", without_gil(&pad), py::arg("x"), py::arg("before"), py::arg("after"), py::arg("value"),
        "x with one number around it: rl.nn.functional.pad where nothing is cut.");
  m.def("_one_hot", without_gil(&one_hot), index, py::arg("classes"),
        "1 at the class of each element, else 0: rl.nn.functional.one_hot for a number of classes that is known.");
  define(m, tensor, "scatter_add", without_gil(&scatter_add), kScatterAddDoc, py::arg("dim"), index, py::arg("src"),
         variant);
  define(m, tensor, "nonzero", without_gil(&nonzero), kNonzeroDoc, variant);
  const py::arg_v diagonal = py::arg("diagonal") = 0;
  define(m, tensor, "tril", without_gil(&tril),
         triangle_doc("tril", "below", "j <= i + diagonal", "[[1, 0, 0], [1, 1, 0]]"), diagonal, variant);
  define(m, tensor, "triu", without_gil(&triu),
         triangle_doc("triu", "above", "j >= i + diagonal", "[[1, 1, 1], [0, 1, 1]]"), diagonal, variant);
}

}  // namespace rooflab
