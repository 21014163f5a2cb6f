#include "bindings/bindings.h"
#include "kernels/matmul/matmul.h"
#include "ops/matmul_float32.h"

namespace rooflab {
namespace {

using kernels::ElementwiseInfo;

constexpr const char* kVariantDoc =
    "\n\nvariant: the name of a rung of rl.variants(op); if empty, the fastest that fits.";

// About numbers as operands, in the docstrings of binary ops.
constexpr const char* kNumberDoc =
    "A number takes the dtype of the tensor operand; one that this dtype cannot hold, like 0.5 with int64, raises\n"
    "ValueError. Convert the tensor with .to() first.";
constexpr const char* kQuotientDoc = "A number takes the dtype of the tensor operand. Integers become float32 first.";
constexpr const char *kSumExample = R"doc(

>>> (rl.arange(3) + 2.0).tolist()
[2, 3, 4]
>>> (rl.arange(3).to("float32") + 0.5).tolist()
[0.5, 1.5, 2.5])doc",
                     *kProductExample = R"doc(

>>> (rl.arange(3) * 2.0).dtype
rooflab.int64
>>> rl.arange(3) * 0.5
Traceback (most recent call last):
ValueError: [mul] number: expected one that int64 can hold, got 0.5
>>> (rl.arange(3).to("float32") * 0.5).tolist()
[0.0, 0.5, 1.0])doc";

// add, sub ... lt: tensor with tensor, tensor with number, number with tensor.
void register_binary(py::module_& m, const ElementwiseInfo& info) {
  const ElementwiseOp op = info.op;
  const std::string doc = message(info.doc, ", elementwise; shapes broadcast, dtypes must agree. One launch.\n\n",
                                  op == ElementwiseOp::kDiv ? kQuotientDoc : kNumberDoc, kVariantDoc,
                                  op == ElementwiseOp::kAdd   ? kSumExample
                                  : op == ElementwiseOp::kMul ? kProductExample
                                                              : "");
  const py::arg_v variant = py::arg("variant") = "";
  m.def(info.name,
        without_gil([op](const Tensor& a, const Tensor& b, std::string_view v) { return elementwise(op, a, b, v); }),
        py::arg("a"), py::arg("b"), variant, doc.c_str());
  m.def(info.name,
        without_gil([op](const Tensor& a, const Scalar& b, std::string_view v) { return elementwise(op, a, b, v); }),
        py::arg("a"), py::arg("b"), variant);
  m.def(info.name,
        without_gil([op](const Scalar& a, const Tensor& b, std::string_view v) { return elementwise(op, a, b, v); }),
        py::arg("a"), py::arg("b"), variant);
}

void register_unary(py::module_& m, py::class_<Tensor>& tensor, const ElementwiseInfo& info) {
  const ElementwiseOp op = info.op;
  const std::string doc = message(info.doc, ", elementwise. One launch.", kVariantDoc);
  m.def(info.name, without_gil([op](const Tensor& x, std::string_view v) { return elementwise(op, x, v); }),
        py::arg("x"), py::arg("variant") = "", doc.c_str());
  tensor.def(info.name, without_gil([op](const Tensor& x) { return elementwise(op, x); }), doc.c_str());
}

void register_elementwise(py::module_& m, py::class_<Tensor>& tensor) {
  using enum ElementwiseOp;
  for (const ElementwiseInfo& info : kernels::kElementwiseOps) {
    if (info.op == kWhere || info.op == kCast || info.op == kCopy) continue;
    if (info.arity == 1)
      register_unary(m, tensor, info);
    else
      register_binary(m, info);
  }
  const std::string where_doc =
      message("a where the condition (bool) holds, else b; shapes broadcast. One launch.\n\n", kNumberDoc);
  const py::arg_v variant = py::arg("variant") = "";
  m.def("where", without_gil(py::overload_cast<const Tensor&, const Tensor&, const Tensor&, std::string_view>(&where)),
        py::arg("condition"), py::arg("a"), py::arg("b"), variant, where_doc.c_str());
  m.def("where", without_gil(py::overload_cast<const Tensor&, const Tensor&, Scalar, std::string_view>(&where)),
        py::arg("condition"), py::arg("a"), py::arg("b"), variant);
  m.def("where", without_gil(py::overload_cast<const Tensor&, Scalar, const Tensor&, std::string_view>(&where)),
        py::arg("condition"), py::arg("a"), py::arg("b"), variant);
  m.def(
      "cast",
      [](const Tensor& x, py::object dtype, std::string_view v) {
        const DType wanted = to_dtype(dtype);
        return run_without_gil([=] { return cast(x, wanted, v); });
      },
      py::arg("x"), py::arg("dtype"), py::arg("variant") = "", "x in another dtype; itself when it has it already.");
  m.def("copy", without_gil(&copy), py::arg("x"), py::arg("variant") = "", "A contiguous copy of x. One launch.");
}

constexpr const char* kAmaxDoc = R"doc(The largest element over one, several or all dimensions.

One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first.

Parameters
----------
x : Tensor
    Of any dtype and shape.
dim : int, tuple of int or None
    What to reduce over; None is all.
keepdim : bool
    Whether reduced dimensions stay, with size 1.

Returns
-------
Tensor
    Of the dtype of `x`; NaN where there is one. Equal largest elements share the gradient evenly.

Raises
------
ValueError
    When there is no element to choose from; for a `dim` that `x` lacks or that appears twice.

Examples
--------
>>> rl.amax(rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
[5.0, 7.0])doc";

constexpr const char* kAminDoc = R"doc(The smallest element over one, several or all dimensions.

One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first.

Parameters
----------
x : Tensor
    Of any dtype and shape.
dim : int, tuple of int or None
    What to reduce over; None is all.
keepdim : bool
    Whether reduced dimensions stay, with size 1.

Returns
-------
Tensor
    Of the dtype of `x`; NaN where there is one. Equal smallest elements share the gradient evenly.

Raises
------
ValueError
    When there is no element to choose from; for a `dim` that `x` lacks or that appears twice.

Examples
--------
>>> rl.amin(rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
[1.0, 2.0])doc";

void register_reductions(py::module_& m, py::class_<Tensor>& tensor) {
  using Reduce = Tensor (*)(const Tensor&, const Shape&, bool, std::string_view);
  const std::tuple<const char*, Reduce, const char*> reductions[] = {
      {"sum", &sum,
       "Sum over `dim` (an int, several, or all when None). One launch; if the dims cannot be merged, x is copied "
       "first."},
      {"mean", &mean,
       "Mean over `dim` (an int, several, or all when None). One launch; if the dims cannot be merged, x is copied "
       "first."},
      {"amax", &amax, kAmaxDoc},
      {"amin", &amin, kAminDoc}};
  for (auto [name, reduce, doc] : reductions) {
    auto call = [reduce = reduce](const Tensor& x, const py::object& dim, bool keepdim, std::string_view variant) {
      const Shape dims = to_dims(dim);
      return run_without_gil([=] { return reduce(x, dims, keepdim, variant); });
    };
    m.def(name, call, py::arg("x"), py::arg("dim") = py::none(), py::arg("keepdim") = false, py::arg("variant") = "",
          doc);
    tensor.def(name, call, py::arg("dim") = py::none(), py::arg("keepdim") = false, py::arg("variant") = "", doc);
  }
}

// The `library` rung on the CPU gets its BLAS from SciPy, which is imported at first use (python/rooflab/_blas.py).
void register_blas(py::module_& m) {
  m.def(
      "set_cpu_blas",
      [](const py::capsule& sgemm, const py::capsule& dgemm) {
        kernels::set_cpu_blas(sgemm.get_pointer(), dgemm.get_pointer());
      },
      py::arg("sgemm"), py::arg("dgemm"), "The BLAS that matmul's library rung calls: capsules of function pointers.");
  set_cpu_blas_loader([] {
    const py::gil_scoped_acquire gil;
    py::module_::import("rooflab._blas").attr("load")();
  });
}

}  // namespace

void register_ops(py::module_& m, py::class_<Tensor>& tensor) {
  register_elementwise(m, tensor);
  register_reductions(m, tensor);
  register_blas(m);
  const py::arg_v variant = py::arg("variant") = "";
  m.def("matmul", without_gil(&matmul), py::arg("a"), py::arg("b"), variant,
        "(..., M, K) @ (..., K, N) -> (..., M, N), like torch.matmul; transposed operands cost no copy. M*N*K MACs "
        "per matrix.");
  m.def("matmul_float32", without_gil(&matmul_float32), py::arg("a"), py::arg("b"), variant,
        "(M, K) @ (K, N) of float16 or bfloat16 in float32: linear's gradients use it under autocast. M*N*K MACs; has"
        " no gradient itself.");
  m.def("gelu", without_gil(&gelu), py::arg("x"), variant,
        "0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), fused: one launch, 8 FLOPs per element.");
  m.def("softmax", without_gil(&softmax), py::arg("x"), py::arg("dim") = -1, variant,
        "exp(x - max) / sum(exp(x - max)) along `dim`. 5 FLOPs per element; one launch along the last dim; otherwise a "
        "copy first.");
  tensor.def("softmax", without_gil([](const Tensor& x, int64_t dim) { return softmax(x, dim); }), py::arg("dim") = -1);
  m.def("rms_norm", without_gil(&rms_norm), py::arg("x"), py::arg("weight") = py::none(), py::arg("eps") = 1e-6,
        py::arg("zero_centered") = false, variant,
        "x / sqrt(mean(x^2) + eps) * weight over the last dimension; x (..., D), weight (D,). With `zero_centered` the "
        "gain is 1 + weight, as in Gemma. One launch; 3 FLOPs per element, 1 for the weight and 1 for the offset. "
        "Rows of huge or tiny numbers are scaled first, so that no square overflows or vanishes, except in float64.");
  m.def("layer_norm", without_gil(&layer_norm), py::arg("x"), py::arg("weight") = py::none(),
        py::arg("bias") = py::none(), py::arg("eps") = 1e-5, variant,
        "(x - mean) / sqrt(var + eps) * weight + bias over the last dimension; x (..., D), weight and bias (D,). One "
        "launch; 5 FLOPs per element and 1 each for weight and bias. Rows of huge or tiny numbers are scaled first, so "
        "that no square overflows or vanishes, except in float64.");
}

}  // namespace rooflab
