#include "bindings/bindings.h"
#include "bindings/docs_ops.h"
#include "bindings/docs_products.h"
#include "bindings/unrecorded.h"
#include "kernels/matmul/matmul.h"
#include "ops/matmul_bias.h"
#include "ops/matmul_float32.h"

namespace rooflab {
namespace {

using kernels::ElementwiseInfo;

// One example for each op of the elementwise family.
constexpr std::pair<const char*, const char*> kExamples[] = {
    {"add", "rl.add(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()\n[5.0, 8.0]"},
    {"sub", "rl.sub(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()\n[-3.0, 4.0]"},
    {"mul", "rl.mul(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()\n[4.0, 12.0]"},
    {"div", "rl.div(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()\n[0.25, 3.0]"},
    {"maximum", "rl.maximum(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()\n[4.0, 6.0]"},
    {"minimum", "rl.minimum(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()\n[1.0, 2.0]"},
    {"eq", "rl.eq(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()\n[True, False]"},
    {"ne", "rl.ne(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()\n[False, True]"},
    {"lt", "rl.lt(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()\n[False, True]"},
    {"le", "rl.le(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()\n[True, True]"},
    {"gt", "rl.gt(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()\n[False, False]"},
    {"ge", "rl.ge(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()\n[True, False]"},
    {"pow", "rl.pow(rl.tensor([3.0, 2.0]), rl.tensor([2.0, 3.0])).tolist()\n[9.0, 8.0]"},
    {"floor_divide", "rl.floor_divide(rl.tensor([7.0, -7.0]), rl.tensor([2.0, 2.0])).tolist()\n[3.0, -4.0]"},
    {"remainder", "rl.remainder(rl.tensor([7.0, -7.0]), rl.tensor([4.0, 4.0])).tolist()\n[3.0, 1.0]"},
    {"bitwise_and", "rl.bitwise_and(rl.tensor([12, 10]), rl.tensor([10, 3])).tolist()\n[8, 2]"},
    {"bitwise_or", "rl.bitwise_or(rl.tensor([12, 10]), rl.tensor([10, 3])).tolist()\n[14, 11]"},
    {"bitwise_xor", "rl.bitwise_xor(rl.tensor([12, 10]), rl.tensor([10, 3])).tolist()\n[6, 9]"},
    {"prelu", "rl.prelu(rl.tensor([2.0, -2.0]), 0.25).tolist()\n[2.0, -0.5]"},
    {"elu", "rl.elu(rl.tensor([2.0, -100.0]), 0.5).tolist()\n[2.0, -0.5]"},
    {"geglu", "rl.geglu(rl.tensor([0.0, 0.0]), rl.tensor([3.0, 4.0])).tolist()\n[0.0, 0.0]"},
    {"swiglu", "rl.swiglu(rl.tensor([0.0, 0.0]), rl.tensor([3.0, 4.0])).tolist()\n[0.0, 0.0]"},
    {"relu_backward", "rl.relu_backward(rl.tensor([3.0, 4.0]), rl.relu(rl.tensor([-1.0, 1.0]))).tolist()\n[0.0, 4.0]"},
    {"tanh_backward", "rl.tanh_backward(rl.tensor([3.0, 4.0]), rl.tensor([0.0, 0.5])).tolist()\n[3.0, 3.0]"},
    {"sigmoid_backward", "rl.sigmoid_backward(rl.tensor([3.0, 4.0]), rl.tensor([1.0, 0.5])).tolist()\n[0.0, 1.0]"},
    {"neg", "rl.neg(rl.tensor([1.0, -2.0])).tolist()\n[-1.0, 2.0]"},
    {"abs", "rl.abs(rl.tensor([1.0, -2.0])).tolist()\n[1.0, 2.0]"},
    {"relu", "rl.relu(rl.tensor([1.0, -2.0])).tolist()\n[1.0, 0.0]"},
    {"exp", "rl.exp(rl.tensor([0.0, 0.0])).tolist()\n[1.0, 1.0]"},
    {"log", "rl.log(rl.tensor([1.0, 1.0])).tolist()\n[0.0, 0.0]"},
    {"log2", "rl.log2(rl.tensor([8.0, 0.5])).tolist()\n[3.0, -1.0]"},
    {"log10", "rl.log10(rl.tensor([100.0, 1.0])).tolist()\n[2.0, 0.0]"},
    {"tanh", "rl.tanh(rl.tensor([0.0, 100.0])).tolist()\n[0.0, 1.0]"},
    {"sqrt", "rl.sqrt(rl.tensor([4.0, 9.0])).tolist()\n[2.0, 3.0]"},
    {"rsqrt", "rl.rsqrt(rl.tensor([4.0, 16.0])).tolist()\n[0.5, 0.25]"},
    {"sin", "rl.sin(rl.tensor([0.0, 0.0])).tolist()\n[0.0, 0.0]"},
    {"cos", "rl.cos(rl.tensor([0.0, 0.0])).tolist()\n[1.0, 1.0]"},
    {"sigmoid", "rl.sigmoid(rl.tensor([0.0, 100.0])).tolist()\n[0.5, 1.0]"},
    {"silu", "rl.silu(rl.tensor([0.0, 0.0])).tolist()\n[0.0, 0.0]"},
    {"softplus", "rl.softplus(rl.tensor([-200.0, 100.0])).tolist()\n[0.0, 100.0]"},
    {"logsigmoid", "rl.logsigmoid(rl.tensor([-100.0, 200.0])).tolist()\n[-100.0, 0.0]"},
    {"floor", "rl.floor(rl.tensor([1.5, -1.5])).tolist()\n[1.0, -2.0]"},
    {"ceil", "rl.ceil(rl.tensor([1.5, -1.5])).tolist()\n[2.0, -1.0]"},
    {"trunc", "rl.trunc(rl.tensor([1.5, -1.5])).tolist()\n[1.0, -1.0]"},
    {"bitwise_not", "rl.bitwise_not(rl.tensor([True, False])).tolist()\n[False, True]"},
};

std::string example_of(std::string_view name) {
  for (const auto& [op, text] : kExamples)
    if (name == op) return message("\nExamples\n--------\n>>> ", text);
  return {};
}

// About numbers as operands, in the docstrings of binary ops.
constexpr const char* kNumberDoc =
    "Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number\n"
    "takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.";
constexpr const char* kQuotientDoc =
    "Operands of several dtypes meet in a common one, as rl.DType says. Integers are divided as float32.";
constexpr const char* kDivisorDoc =
    "\n\nAn integer divided by zero raises ZeroDivisionError: on the CPU before anything is written, also in a replay\n"
    "of a graph. On a GPU and on \"meta\" only a divisor that is a number is checked, because the host does not see a\n"
    "tensor's elements; the result is 0 where one is 0. Floats give inf or NaN.";
constexpr const char *kSumExample = R"doc(
>>> (rl.arange(3) + 2).tolist()
[2, 3, 4]
>>> (rl.arange(3) + 0.5).tolist()
[0.5, 1.5, 2.5])doc",
                     *kProductExample = R"doc(
>>> (rl.arange(3) * 2.0).dtype
rooflab.float32
>>> (rl.tensor([1.5, 2.5]) * rl.tensor([True, False])).tolist()
[1.5, 0.0])doc";

constexpr const char *kBinaryDoc = R"doc(

Parameters
----------
a, b : Tensor or number
    Of shapes that broadcast; one of both may be a number.)doc",
                     *kBinaryResultDoc = R"doc(
Returns
-------
Tensor
    Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.

Raises
------
ValueError
    For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
    cannot hold.
)doc",
                     *kUnaryDoc = R"doc(

Parameters
----------
x : Tensor
    Of any shape.)doc",
                     *kUnaryResultDoc = R"doc(
Returns
-------
Tensor
    Of the shape and dtype of `x`; float32 where a function of floats is given integers.

Raises
------
ValueError
    For a dtype that the op is not defined for.
)doc";

// add, sub ... lt: tensor with tensor, tensor with number, number with tensor.
void register_binary(py::module_& m, const ElementwiseInfo& info) {
  const ElementwiseOp op = info.op;
  const bool divides = op == ElementwiseOp::kFloorDivide || op == ElementwiseOp::kRemainder;
  const std::string doc = message(info.doc, ", elementwise; shapes broadcast. One launch.\n\n",
                                  op == ElementwiseOp::kDiv ? kQuotientDoc : kNumberDoc, divides ? kDivisorDoc : "",
                                  kBinaryDoc, kVariantDoc, kBinaryResultDoc, example_of(info.name),
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
  const std::string doc =
      message(info.doc, ", elementwise. One launch.", kUnaryDoc, kVariantDoc, kUnaryResultDoc, example_of(info.name));
  m.def(info.name, without_gil([op](const Tensor& x, std::string_view v) { return elementwise(op, x, v); }),
        py::arg("x"), py::arg("variant") = "", doc.c_str());
  tensor.def(info.name, without_gil([op](const Tensor& x) { return elementwise(op, x); }),
             method_doc(info.name, doc, {}).c_str());
}

void register_elementwise(py::module_& m, py::class_<Tensor>& tensor) {
  using enum ElementwiseOp;
  for (const ElementwiseInfo& info : kernels::kElementwiseOps) {
    if (info.op >= kClamp) continue;  // below
    if (info.arity == 1)
      register_unary(m, tensor, info);
    else
      register_binary(m, info);
  }
  const std::string where_doc = message("a where the condition (bool) holds, else b; shapes broadcast. One launch.\n\n",
                                        kNumberDoc, kWhereDoc, kVariantDoc, kWhereResultDoc);
  const py::arg_v variant = py::arg("variant") = "";
  m.def("where", without_gil(py::overload_cast<const Tensor&, const Tensor&, const Tensor&, std::string_view>(&where)),
        py::arg("condition"), py::arg("a"), py::arg("b"), variant, where_doc.c_str());
  m.def("where", without_gil(py::overload_cast<const Tensor&, const Tensor&, Scalar, std::string_view>(&where)),
        py::arg("condition"), py::arg("a"), py::arg("b"), variant);
  m.def("where", without_gil(py::overload_cast<const Tensor&, Scalar, const Tensor&, std::string_view>(&where)),
        py::arg("condition"), py::arg("a"), py::arg("b"), variant);
  m.def("where", without_gil(py::overload_cast<const Tensor&, Scalar, Scalar, std::string_view>(&where)),
        py::arg("condition"), py::arg("a"), py::arg("b"), variant);
  const py::arg end("end"), weight("weight");
  define(m, tensor, "lerp",
         without_gil(py::overload_cast<const Tensor&, const Tensor&, Scalar, std::string_view>(&lerp)), kLerpDoc, end,
         weight, variant);
  define_overload(m, tensor, "lerp",
                  without_gil(py::overload_cast<const Tensor&, const Tensor&, const Tensor&, std::string_view>(&lerp)),
                  end, weight, variant);
  define(m, tensor, "clamp", without_gil(&clamp), kClampDoc, py::arg("min") = py::none(), py::arg("max") = py::none(),
         variant);
  m.def("nan_to_num", without_gil(&nan_to_num), py::arg("x"), py::arg("nan") = 0.0, py::arg("posinf") = py::none(),
        py::arg("neginf") = py::none(), variant, kNanToNumDoc);
  m.def("cast", itself_or([](const Tensor& x, py::object dtype, std::string_view v) {
          const DType wanted = to_dtype(dtype);
          return run_without_gil([=] { return cast(x, wanted, v); });
        }),
        py::arg("x"), py::arg("dtype"), py::arg("variant") = "", kCastDoc);
  m.def("copy", without_gil(&copy), py::arg("x"), py::arg("variant") = "", kCopyDoc);
}

std::string total_doc(const char* what, const char* name, const char* example) {
  return message(what, R"doc( over one, several or all dimensions.

One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. The error is at most a small
multiple of log2(n) eps times the sum of absolute values.

Parameters
----------
x : Tensor
    Of any shape.
dim : int, tuple of int or None
    What to reduce over; None is all.
keepdim : bool
    Whether reduced dimensions stay, with size 1.
variant : str
    A rung of rl.variants(")doc",
                 name, R"doc("); the fastest that fits when empty.
dtype : dtype, optional
    What `x` is cast to first, which is one launch more.

Returns
-------
Tensor
    Of `dtype`, or that of `x`; )doc",
                 *name == 's' ? "int64 for bool" : "NaN where there is no element", R"doc(.

Raises
------
ValueError
    For a `dim` that `x` lacks or that appears twice)doc",
                 *name == 's' ? "" : ", and for integers", R"doc(.

Examples
--------
>>> rl.)doc",
                 name, "(rl.tensor([[1.0, 5.0], [7.0, 3.0]]), dim=1).tolist()\n", example);
}

void register_reductions(py::module_& m, py::class_<Tensor>& tensor) {
  using Reduce = Tensor (*)(const Tensor&, const Shape&, bool, std::string_view);
  const py::arg_v dim = py::arg("dim") = py::none(), keepdim = py::arg("keepdim") = false;
  const py::arg_v variant = py::arg("variant") = "";
  const std::tuple<const char*, Reduce, std::string> totals[] = {
      {"sum", &sum, total_doc("The sum", "sum", "[6.0, 10.0]")},
      {"mean", &mean, total_doc("The mean", "mean", "[3.0, 5.0]")}};
  for (const auto& [name, reduce, text] : totals) {
    auto call = [reduce = reduce](const Tensor& x, const py::object& dim, bool keepdim, std::string_view variant,
                                  const py::object& dtype) {
      const Shape dims = to_dims(dim);
      if (dtype.is_none()) return run_without_gil([=] { return reduce(x, dims, keepdim, variant); });
      return run_without_gil([=, type = to_dtype(dtype)] {
        const auto as_asked = [&](const Tensor& of) { return of.dtype() == type ? of : cast(of, type); };
        return as_asked(reduce(as_asked(x), dims, keepdim, variant));
      });
    };
    define(m, tensor, name, call, text, dim, keepdim, variant, py::arg("dtype") = py::none());
  }
  m.def(  // rl.logsumexp is in composed/statistics.py, because it takes integers too
      "logsumexp",
      [](const Tensor& x, const py::object& dim, bool keepdim, std::string_view variant) {
        const Shape dims = to_dims(dim);
        return run_without_gil([=] { return logsumexp(x, dims, keepdim, variant); });
      },
      py::arg("x"), dim, keepdim, variant, "log(sum(exp(x))) over some or all dimensions, without overflow.");
  m.def(  // rl.prod is in composed/statistics.py, because it takes one dimension
      "prod",
      [](const Tensor& x, const py::object& dim, bool keepdim, std::string_view variant) {
        const Shape dims = to_dims(dim);
        return run_without_gil([=] { return prod(x, dims, keepdim, variant); });
      },
      py::arg("x"), dim, keepdim, variant, "The product over some or all dimensions; int64 for integers and bool.");
  const std::tuple<const char*, Reduce, const char*> extremes[] = {{"amax", &amax, kAmaxDoc},
                                                                   {"amin", &amin, kAminDoc}};
  for (const auto& [name, reduce, doc] : extremes) {
    auto call = [reduce = reduce](const Tensor& x, const py::object& dim, bool keepdim, std::string_view variant) {
      const Shape dims = to_dims(dim);
      return run_without_gil([=] { return reduce(x, dims, keepdim, variant); });
    };
    define(m, tensor, name, call, doc, dim, keepdim, variant);
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
  m.def("matmul", without_gil(&matmul), py::arg("a"), py::arg("b"), variant, kMatmulDoc);
  tensor.def("matmul", without_gil([](const Tensor& a, const Tensor& b) { return matmul(a, b); }), py::arg("b"),
             method_doc("matmul", kMatmulDoc, {"b"}).c_str());
  m.def("set_float32_matmul_precision", unrecorded("set_float32_matmul_precision", &set_float32_matmul_precision),
        py::arg("precision"), kSetPrecisionDoc);
  m.def("get_float32_matmul_precision", &float32_matmul_precision, kGetPrecisionDoc);
  m.def("matmul_float32", without_gil(&matmul_float32), py::arg("a"), py::arg("b"), variant, kMatmulFloat32Doc);
  m.def("matmul_bias", without_gil(&matmul_bias), py::arg("a"), py::arg("b"), py::arg("bias"), variant, kMatmulBiasDoc);
  m.def("gelu", without_gil(&gelu), py::arg("x"), variant, kGeluDoc);
  m.def("softmax", without_gil(&softmax), py::arg("x"), py::arg("dim") = -1, variant, kSoftmaxDoc);
  tensor.def("softmax", without_gil([](const Tensor& x, int64_t dim) { return softmax(x, dim); }), py::arg("dim") = -1,
             method_doc("softmax", kSoftmaxDoc, {"dim"}).c_str());
  m.def("log_softmax", without_gil(&log_softmax), py::arg("x"), py::arg("dim") = -1, variant, kLogSoftmaxDoc);
  tensor.def("log_softmax", without_gil([](const Tensor& x, int64_t dim) { return log_softmax(x, dim); }),
             py::arg("dim") = -1, method_doc("log_softmax", kLogSoftmaxDoc, {"dim"}).c_str());
  m.def("rms_norm", without_gil(&rms_norm), py::arg("x"), py::arg("weight") = py::none(), py::arg("eps") = 1e-6,
        py::arg("zero_centered") = false, variant, kRmsNormDoc);
  m.def("layer_norm", without_gil(&layer_norm), py::arg("x"), py::arg("weight") = py::none(),
        py::arg("bias") = py::none(), py::arg("eps") = 1e-5, variant, kLayerNormDoc);
}

}  // namespace rooflab
