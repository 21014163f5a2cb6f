// Functions made of ops: layers, shapes and einsum. Statistics are in bind_statistics.cpp.
#include "bindings/bindings.h"
#include "nn/nn.h"

namespace rooflab {
namespace {

constexpr const char* kLinearDoc = R"doc(x weight^T + bias.

Made of matmul and, for a bias, add; counted as these. A GPU adds a contiguous bias of the dtype of `x`, not float64, in
the product: that is one launch, counted as `matmul_bias`. Elsewhere the product is rounded to the dtype, which it has to
fit, before the bias is added.

Parameters
----------
x : Tensor
    (..., I).
weight : Tensor
    (O, I), of the dtype of `x`.
bias : Tensor, optional
    (O,).

Returns
-------
Tensor
    (..., O).

Raises
------
ValueError
    When shapes, dtypes or devices do not fit.

Examples
--------
>>> rl.linear(rl.ones(1, 2), rl.tensor([[1.0, 2.0], [3.0, 4.0]]), rl.tensor([0.0, 1.0])).tolist()
[[3.0, 8.0]])doc";

constexpr const char* kStackDoc = R"doc(Joins tensors of one shape along a new dimension.

Made of cat, and counted like it.

Parameters
----------
tensors : sequence of Tensor
    At least one, all of one shape, dtype and device.
dim : int
    Where the new dimension lies in the result.

Returns
-------
Tensor
    Contiguous.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit, or there is no tensor.

Examples
--------
>>> rl.stack([rl.tensor([1, 2]), rl.tensor([3, 4])], dim=1).tolist()
[[1, 3], [2, 4]])doc";

constexpr const char* kSplitDoc = R"doc(A tensor cut into parts along a dimension. Views: nothing is launched.

Backward joins the gradients of the parts as rl.cat does, one launch for up to 32, with zeros for parts that have none.
If less than half of the tensor has a gradient, it fills with zeros and copies each part, one launch each.

Parameters
----------
x : Tensor
    What to cut.
size : int or sequence of int
    The size of each part, the last of which may be smaller; or all sizes.
dim : int
    Along which dimension.

Returns
-------
tuple of Tensor
    Views of `x`.

Raises
------
ValueError
    When sizes do not add up; for a `dim` that `x` lacks.

Examples
--------
>>> [part.tolist() for part in rl.arange(5).split(2)]
[[0, 1], [2, 3], [4]])doc";

constexpr const char* kChunkDoc =
    R"doc(Splits a tensor into a number of equal parts along a dimension. Views: nothing is launched, and backward is that of
rl.split.

Parameters
----------
x : Tensor
    What to cut.
chunks : int
    How many parts. The size of a part is rounded up, so there may be fewer.
dim : int
    Along which dimension.

Returns
-------
tuple of Tensor
    Views of `x`; the last may be smaller.

Raises
------
ValueError
    When `chunks` is not positive; for a `dim` that `x` lacks.

Examples
--------
>>> [part.tolist() for part in rl.arange(5).chunk(2)]
[[0, 1, 2], [3, 4]])doc";

constexpr const char* kRepeatInterleaveDoc = R"doc(Repeats each slice along a dimension several times.

Made of an expanded view and one copy; counted as the copy. It turns H_kv key heads into H for grouped-query attention.

Parameters
----------
x : Tensor
    Of any dtype.
repeats : int
    How often each slice appears.
dim : int or None
    Along which dimension; None takes the tensor as flattened.

Returns
-------
Tensor
    As `x`, with `dim` `repeats` times as long.

Raises
------
ValueError
    When `repeats` is negative; for a `dim` that `x` lacks.

Examples
--------
>>> rl.repeat_interleave(rl.tensor([1, 2]), 2).tolist()
[1, 1, 2, 2])doc";

constexpr const char* kEinsumDoc = R"doc(Sums of products named by letters, as in Einstein's notation.

Operands are combined from the left. Each pair takes one matmul, or one mul where nothing is summed; letters of only one
operand are summed first, and a letter twice in one term means the diagonal, a view. Counted as these, and as copies
where dimensions must move.

Parameters
----------
equation : str
    A term of letters for each operand, "->" and the result's: "bqd,bkd->bqk". Spaces do not count. "..." in a term stands
    for the dimensions that its letters leave, which broadcast as NumPy's do: "...qd,...kd->...qk". Without an arrow the
    result has the dimensions of "...", then the letters that appear once, in alphabetical order.
*operands : Tensor
    One for each term, of one dtype and device.

Returns
-------
Tensor
    With a dimension for each letter of the result.

Raises
------
ValueError
    When the equation does not fit the operands, or leaves "..." out of the result. Sizes of one letter must be equal.

Examples
--------
>>> rl.einsum("ij,j->i", rl.tensor([[1.0, 2.0], [3.0, 4.0]]), rl.ones(2)).tolist()
[3.0, 7.0])doc";

constexpr const char* kFlattenDoc =
    R"doc(Joins neighbouring dimensions into one. A view where the strides allow it, else one copy.

Parameters
----------
x : Tensor
    Of any shape; without dimensions it becomes (1,).
start_dim, end_dim : int
    The first and the last dimension to join.

Returns
-------
Tensor
    The same elements in the same order.

Raises
------
ValueError
    For a dimension that `x` lacks, or a start after the end.

Examples
--------
>>> rl.flatten(rl.zeros(2, 3, 4), start_dim=1).shape
(2, 12))doc";

constexpr const char* kSqueezeDoc = R"doc(The tensor without dimensions of size 1. A view.

Parameters
----------
x : Tensor
    Of any shape.
dim : int, optional
    Only this dimension, which stays when its size is not 1; all when absent.

Returns
-------
Tensor
    The same elements.

Raises
------
ValueError
    For a dimension that `x` lacks.

Examples
--------
>>> rl.squeeze(rl.zeros(2, 1, 3)).shape
(2, 3))doc";

constexpr const char* kUnsqueezeDoc = R"doc(The tensor with a new dimension of size 1. A view.

Parameters
----------
x : Tensor
    Of any shape.
dim : int
    Where the new dimension lies in the result.

Returns
-------
Tensor
    The same elements.

Raises
------
ValueError
    For a place outside the result.

Examples
--------
>>> rl.unsqueeze(rl.zeros(2, 3), 1).shape
(2, 1, 3))doc";

py::tuple to_tuple(const Tensors& tensors) {
  py::tuple made(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) made[i] = py::cast(tensors[i]);
  return made;
}

py::typing::Tuple<Tensor, py::ellipsis> unbind(const Tensor& x, int64_t dim) { return to_tuple(nn::unbind(x, dim)); }

py::typing::Tuple<Tensor, py::ellipsis> split_sizes(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  return to_tuple(nn::split(x, sizes, dim));
}

py::typing::Tuple<Tensor, py::ellipsis> split_equally(const Tensor& x, int64_t size, int64_t dim) {
  return to_tuple(nn::split(x, nn::equal_parts(x, size, dim), dim));
}

py::typing::Tuple<Tensor, py::ellipsis> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  RL_CHECK(chunks > 0, "chunk", "chunks: expected > 0, got ", chunks);
  const int64_t size = x.size(normalize_dim(dim, x.ndim(), "chunk"));
  constexpr int64_t kMostEmpty = 1 << 16;
  RL_CHECK(size > 0 || chunks <= kMostEmpty, "chunk", "chunks: expected <= ", kMostEmpty, " parts of nothing, got ",
           chunks);
  if (size == 0) return to_tuple(nn::split(x, std::vector<int64_t>(chunks), dim));
  return split_equally(x, std::max<int64_t>(size / chunks + (size % chunks != 0), 1), dim);
}

}  // namespace

void register_nn(py::module_& m, py::class_<Tensor>& tensor) {
  const py::arg_v first = py::arg("dim") = 0, last = py::arg("dim") = -1;
  m.def("linear", without_gil(&nn::linear), py::arg("x"), py::arg("weight"), py::arg("bias") = py::none(), kLinearDoc);
  define(m, tensor, "flatten", without_gil(&flatten), kFlattenDoc, py::arg("start_dim") = 0, py::arg("end_dim") = -1);
  define(m, tensor, "squeeze", without_gil(&squeeze), kSqueezeDoc, py::arg("dim") = py::none());
  define(m, tensor, "unsqueeze", without_gil(&unsqueeze), kUnsqueezeDoc, py::arg("dim"));
  m.def("stack", without_gil(&nn::stack), py::arg("tensors"), first, kStackDoc);
  define(m, tensor, "split", &split_equally, kSplitDoc, py::arg("size"), first);
  define_overload(m, tensor, "split", &split_sizes, py::arg("size"), first);
  m.def("_unbind", &unbind, py::arg("x"), py::arg("dim"), "The slices along a dimension, views: rl.unbind.");
  define(m, tensor, "chunk", &chunk, kChunkDoc, py::arg("chunks"), first);
  define(m, tensor, "repeat_interleave", without_gil(&nn::repeat_interleave), kRepeatInterleaveDoc, py::arg("repeats"),
         py::arg("dim") = py::none());
  m.def(
      "einsum",
      [](std::string_view equation, const py::args& operands) {
        for (py::handle operand : operands)
          if (!py::isinstance<Tensor>(operand))
            throw py::type_error("[einsum] operands: expected tensors, got " + type_name(operand));
        const auto tensors = operands.cast<Tensors>();
        return run_without_gil([=] { return nn::einsum(equation, tensors); });
      },
      py::arg("equation"), kEinsumDoc);
}

}  // namespace rooflab
