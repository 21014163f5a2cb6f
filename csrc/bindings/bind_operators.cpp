// Python's operators on tensors: a + 1, a += b, a == [1, 2], ~mask.
#include "bindings/bindings.h"
#include "bindings/docs_tensor_values.h"

namespace rooflab {
namespace {

using enum ElementwiseOp;

// pybind11 would look up the type by its name.
bool is_tensor(py::handle object) {
  static auto* const type = reinterpret_cast<PyTypeObject*>(py::type::of<Tensor>().ptr());
  return PyObject_TypeCheck(object.ptr(), type);
}

std::optional<Scalar> number_of(py::handle object) {
  py::detail::make_caster<Scalar> caster;
  if (!caster.load(object, true)) return std::nullopt;
  return py::detail::cast_op<Scalar>(caster);
}

bool is_array(py::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) || py::hasattr(object, "__array__");
}

// A list or array to compare x with. The numbers of a list take the dtype of x if they are of the same kind; an array
// keeps its own dtype.
Tensor comparable(const Tensor& x, py::handle object) {
  const Tensor as_it_is = from_array(object, std::nullopt, x.device());
  const bool is_list = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  const bool fits = is_floating(x.dtype()) || !is_floating(as_it_is.dtype());
  return is_list && fits && as_it_is.dtype() != x.dtype() ? from_array(object, x.dtype(), x.device()) : as_it_is;
}

py::object not_implemented() { return py::reinterpret_borrow<py::object>(Py_NotImplemented); }

// Another library's array, if it is neither a tensor nor a number. Asked last: an attribute that is not there costs as
// much as a small op.
bool is_foreign_array(py::handle object) { return py::hasattr(object, "__array__"); }

PythonTensor apply(ElementwiseOp op, const Tensor& a, py::handle b, bool reflected) {
  if (is_tensor(b)) {
    const Tensor& other = b.cast<const Tensor&>();
    return py::cast(run_without_gil([=] { return reflected ? elementwise(op, other, a) : elementwise(op, a, other); }));
  }
  if (const std::optional<Scalar> number = number_of(b)) {
    return py::cast(
        run_without_gil([=] { return reflected ? elementwise(op, *number, a) : elementwise(op, a, *number); }));
  }
  if (is_foreign_array(b)) return apply(op, a, py::cast(from_array(b, std::nullopt, a.device())), reflected);
  // Python would repeat a list as often as the tensor says, which must be an integer for that.
  if (op == kMul && PySequence_Check(b.ptr()) && (is_floating(a.dtype()) || a.numel() != 1))
    throw py::type_error("[mul] expected a tensor, a number or an array, got " + type_name(b));
  return not_implemented();
}

// a @ b, where one of them may be another library's array.
PythonTensor product(const Tensor& x, py::handle other, bool reflected) {
  if (!is_tensor(other) && (!is_foreign_array(other) || number_of(other))) return not_implemented();
  const Tensor y = is_tensor(other) ? other.cast<Tensor>() : from_array(other, std::nullopt, x.device());
  return py::cast(run_without_gil([=] { return reflected ? matmul(y, x) : matmul(x, y); }));
}

// None equals no tensor, as everywhere in Python. For other objects the error keeps Python from turning a comparison
// that is not implemented into a plain False.
PythonTensor compare(ElementwiseOp op, const Tensor& a, py::handle b) {
  if (b.is_none() && (op == kEq || op == kNe)) return not_implemented();
  if (is_tensor(b)) return apply(op, a, b, false);
  if (!number_of(b) && is_array(b)) return apply(op, a, py::cast(comparable(a, b)), false);
  PythonTensor result = apply(op, a, b, false);
  if (result.ptr() == Py_NotImplemented)
    throw py::type_error(
        message("[", kernels::info(op).name, "] b: expected a tensor, a number or an array, got ", type_name(b)));
  return result;
}

// x = op(x, y) in place. The tensor in the Python object changes while the lock is held, under which others read it.
// What it was dies afterwards, because that may run Python code, which must not find a tensor that is half of each.
template <class Y>
void write_operand(ElementwiseOp op, Tensor& place, const Y& y) {
  long owners = 2;  // `place` and its copy
  if constexpr (std::is_same_v<Y, Tensor>) owners += y.storage() == place.storage();
  std::optional<Tensor> replacement = run_without_gil([op, x = place, y, owners] { return write(op, x, y, owners); });
  if (replacement) std::swap(place, *replacement);
}

// Whether y can be the operand of an in-place op.
bool write_object(ElementwiseOp op, const py::object& self, py::handle y) {
  Tensor& x = self.cast<Tensor&>();
  if (is_tensor(y)) {
    write_operand(op, x, y.cast<const Tensor&>());
    return true;
  }
  if (const std::optional<Scalar> number = number_of(y)) {
    write_operand(op, x, *number);
    return true;
  }
  if (!is_foreign_array(y)) return false;
  write_operand(op, x, from_array(y, std::nullopt, x.device()));
  return true;
}

struct Operator {
  const char* name;  // "__name__"
  ElementwiseOp op;
};
constexpr Operator kArithmetic[] = {{"add", kAdd},       {"sub", kSub},        {"mul", kMul},
                                    {"truediv", kDiv},   {"pow", kPow},        {"floordiv", kFloorDivide},
                                    {"mod", kRemainder}, {"and", kBitwiseAnd}, {"or", kBitwiseOr},
                                    {"xor", kBitwiseXor}};
constexpr Operator kComparisons[] = {{"eq", kEq}, {"ne", kNe}, {"lt", kLt}, {"le", kLe}, {"gt", kGt}, {"ge", kGe}};
struct Write {
  const char* name;
  ElementwiseOp op;
  const char *symbol, *example;  // of 3 and 6 with 3
};
constexpr Write kWrites[] = {{"add_", kAdd, "+", "[6.0, 9.0]"},
                             {"sub_", kSub, "-", "[0.0, 3.0]"},
                             {"mul_", kMul, "*", "[9.0, 18.0]"},
                             {"div_", kDiv, "/", "[1.0, 2.0]"}};

void register_arithmetic(py::class_<Tensor>& tensor) {
  for (const auto& [name, op] : kArithmetic) {
    const std::string text = name;
    tensor
        .def(("__" + text + "__").c_str(), [op = op](const Tensor& a, py::handle b) { return apply(op, a, b, false); })
        .def(("__r" + text + "__").c_str(), [op = op](const Tensor& b, py::handle a) { return apply(op, b, a, true); })
        .def(("__i" + text + "__").c_str(), [op = op](const py::object& self, py::handle y) -> PythonTensor {
          return write_object(op, self, y) ? self : not_implemented();
        });
  }
  for (const auto& [name, op] : kComparisons)
    tensor.def(("__" + std::string(name) + "__").c_str(),
               [op = op](const Tensor& a, py::handle b) { return compare(op, a, b); });
  for (const auto& [name, op, symbol, example] : kWrites) {
    const auto write = [name = name, op = op](const py::object& self, py::handle other) -> PythonTensor {
      if (!write_object(op, self, other))
        throw py::type_error(message("[", name, "] other: expected a tensor or a number, got ", type_name(other)));
      return self;
    };
    const bool is_sum = op == kAdd || op == kSub;
    const std::string doc = message("self ", symbol, "= ", is_sum ? "alpha " : "", "other, in place. One launch.",
                                    kWriteDoc, is_sum ? kAlphaDoc : "", kWrittenDoc, name, "(3).tolist()\n", example);
    if (!is_sum) {
      tensor.def(name, write, py::arg("other"), doc.c_str());
      continue;
    }
    const auto write_multiple = [write](const py::object& self, const py::object& other, const py::object& alpha) {
      return write(self, alpha.equal(py::int_(1)) ? other : other * alpha);
    };
    tensor.def(name, write_multiple, py::arg("other"), py::kw_only(), py::arg("alpha") = 1, doc.c_str());
  }
}

}  // namespace

void register_operators(py::class_<Tensor>& tensor) {
  register_arithmetic(tensor);
  tensor.def("__neg__", without_gil([](const Tensor& x) { return elementwise(kNeg, x); }))
      .def("__pos__", [](py::object x) -> PythonTensor { return x; })
      .def("__abs__", without_gil([](const Tensor& x) { return elementwise(kAbs, x); }))
      .def("__invert__", without_gil([](const Tensor& x) { return elementwise(kBitwiseNot, x); }))
      .def("__matmul__", [](const Tensor& a, py::handle b) { return product(a, b, false); })
      .def("__rmatmul__", [](const Tensor& b, py::handle a) { return product(b, a, true); })
      .def("__contains__", [](const Tensor& self, py::handle element) {
        if (element.is_none()) throw py::type_error("[eq] b: expected a tensor, a number or an array, got NoneType");
        const PythonTensor equal = compare(kEq, self, element);
        return equal.attr("any")().attr("item")().cast<bool>();
      });
  tensor.attr("__array_ufunc__") = py::none();  // makes np.float64(2) * t call the tensor's operator, not NumPy's
  tensor.attr("__hash__") = py::module_::import("builtins").attr("object").attr("__hash__");
}

}  // namespace rooflab
