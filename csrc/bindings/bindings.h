// Shared by the binding files: conversions between Python and core types, and one registration function per area.
#pragma once

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/no_gil.h"
#include "core/tensor.h"
#include "ops/ops.h"

namespace rooflab {

namespace py = pybind11;

// A Python object that signatures show under the name of its type.
template <class Name>
struct Typed : py::object {
  using py::object::object;
  Typed(py::object object) : py::object(std::move(object)) {}
  static bool check_(py::handle object) { return Name::check(object); }  // for a parameter
};
struct TensorName {
  static constexpr auto kText = py::detail::const_name("rooflab._core.Tensor");
  static bool check(py::handle object) { return py::isinstance<Tensor>(object); }
};
struct DTypeName {
  static constexpr auto kText = py::detail::const_name("rooflab._core.DType");
};
struct DeviceName {
  static constexpr auto kText = py::detail::const_name("rooflab._device.device");
};
struct ArrayName {
  static constexpr auto kText = py::detail::const_name("numpy.ndarray[typing.Any, typing.Any]");
};
using PythonTensor = Typed<TensorName>;
using PythonDType = Typed<DTypeName>;
using PythonDevice = Typed<DeviceName>;
using PythonArray = Typed<ArrayName>;

// "float32", rooflab.float32, or NumPy's float32, as a DType. ValueError lists the names.
DType to_dtype(py::handle object);
std::optional<DType> find_dtype(py::handle object);
PythonDType from_dtype(DType dtype);   // the one Python object of each dtype: rooflab.float32 ...
Device to_device(py::handle object);   // "cpu", "cuda", "cuda:1"
Shape to_shape(py::handle object);     // an int, or a sequence of ints
Shape to_shape(const py::args& args);  // f(2, 3) or f((2, 3))
bool is_integer(py::handle object);    // for a dim, a size or a count; True is none
Shape to_dims(const py::object& dim);  // an int, or a sequence of ints; empty for None

// The name of its type, for messages.
inline std::string type_name(py::handle object) { return py::str(py::type::of(object).attr("__name__")); }

// NumPy and others (bind_arrays.cpp).
Tensor from_array(py::handle object, std::optional<DType> dtype, Device device);
PythonArray to_numpy(const Tensor& tensor);
// The host is about to read values. Refuses to give them to a function that is recorded for a program, which would
// repeat them.
void note_host_read(const char* what, const Tensor& tensor);
py::object on_cpu(const Tensor& tensor);  // a copy of its values on the CPU, for reading; any device and graph

PythonTensor get_item(const Tensor& self, const py::object& index);
void set_item(const Tensor& self, const py::object& index, const py::object& value);

// The docstring of a method, made of that of the function of the same name (python/rooflab/_method_docs.py). The
// function's first parameter is the tensor; of the others the method has these.
std::string method_doc(const char* name, const std::string& doc, const std::vector<std::string>& parameters);

inline std::string name_of(const py::arg& argument) { return argument.name; }
inline std::string name_of(const py::kw_only&) { return {}; }

// Whether two are one tensor of the tape and show the same elements.
inline bool is_one(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.data() == b.data() && a.shape() == b.shape() && a.strides() == b.strides() &&
         a.dtype() == b.dtype() && a.meta() == b.meta();
}

// For a function that may have nothing to do, or returns the tensor in which it has written: where its result is its
// first tensor, Python gets the object that it gave. A second one would not follow when the first gets other data.
template <class F, class X, class... Args>
auto itself_or(F f, std::type_identity<Tensor(X, Args...)>) {
  return [f = std::move(f)](const PythonTensor& self, Args... args) -> PythonTensor {
    const Tensor given = self.cast<const Tensor&>();
    Tensor made = f(given, std::forward<Args>(args)...);
    return is_one(given, made) ? self : PythonTensor(py::cast(std::move(made)));
  };
}
template <class F>
auto itself_or(F f) {
  return itself_or(std::move(f), std::type_identity<py::detail::function_signature_t<F>>());
}

// Defines a function of a tensor `x` and the given arguments, and the method of the same name. The docstring is that of
// the function.
template <class F, class... Arguments>
void define(py::module_& m, py::class_<Tensor>& tensor, const char* name, F&& f, const std::string& doc,
            const Arguments&... arguments) {
  m.def(name, f, py::arg("x"), arguments..., doc.c_str());
  tensor.def(name, f, arguments..., method_doc(name, doc, {name_of(arguments)...}).c_str());
}

// The same for other arguments; the docstring is there already.
template <class F, class... Arguments>
void define_overload(py::module_& m, py::class_<Tensor>& tensor, const char* name, F&& f,
                     const Arguments&... arguments) {
  m.def(name, f, py::arg("x"), arguments...);
  tensor.def(name, f, arguments...);
}

py::custom_type_setup tensor_type();  // for Python's garbage collector (bind_autograd.cpp)
void register_dtype(py::module_& m);
void register_autograd(py::module_& m, py::class_<Tensor>& tensor);
void register_tensor(py::module_& m, py::class_<Tensor>& tensor);
void register_protocols(py::module_& m, py::class_<Tensor>& tensor);
void register_operators(py::class_<Tensor>& tensor);
void register_arrays(py::module_& m, py::class_<Tensor>& tensor);
void register_dlpack(py::module_& m, py::class_<Tensor>& tensor);
void register_ops(py::module_& m, py::class_<Tensor>& tensor);
void register_indexing(py::module_& m, py::class_<Tensor>& tensor);
void register_order(py::module_& m, py::class_<Tensor>& tensor);
void register_nn(py::module_& m, py::class_<Tensor>& tensor);
void register_training(py::module_& m);
void register_autocast(py::module_& m);
void register_statistics(py::module_& m, py::class_<Tensor>& tensor);
void register_factories(py::module_& m);
void register_attention(py::module_& m);
void register_backward(py::module_& m);
void register_gemma3(py::module_& m);
void register_counters(py::module_& m);
void register_graph(py::module_& m);
void register_compiler(py::module_& m);
void register_memory(py::module_& m);
void register_cuda(py::module_& m);
void register_cuda_module(py::module_& m);
void register_profiler(py::module_& m);
void adopt_functions(const py::module_& m);  // call it last, for everything registered (signatures.cpp)

}  // namespace rooflab

// Shape as a tuple and Device as a string in every signature.
namespace pybind11::detail {

template <class Name>
struct handle_type_name<rooflab::Typed<Name>> {
  static constexpr auto name = Name::kText;
};

template <>
struct type_caster<rooflab::Shape> {
  PYBIND11_TYPE_CASTER(rooflab::Shape, const_name("tuple[int, ...]"));
  bool load(handle source, bool) {
    if (!PyLong_Check(source.ptr()) && !PySequence_Check(source.ptr())) return false;
    if (PyUnicode_Check(source.ptr())) return false;
    value = rooflab::to_shape(source);
    return true;
  }
  static handle cast(const rooflab::Shape& shape, return_value_policy, handle) {
    tuple result(shape.size());
    for (int i = 0; i < shape.size(); ++i) result[i] = pybind11::int_(shape[i]);
    return result.release();
  }
};

// The one rule for integers. pybind11's own would take, and cut, all that int() takes.
template <class T>
struct integer_caster {
  PYBIND11_TYPE_CASTER(T, io_name("typing.SupportsIndex", "int"));
  bool load(handle source, bool) {
    if (!rooflab::is_integer(source)) return false;
    const auto index = reinterpret_steal<object>(PyNumber_Index(source.ptr()));
    if (!index && !PyErr_ExceptionMatches(PyExc_TypeError)) throw error_already_set();  // a value that cannot be read
    const auto take = [this](auto found) { return (value = static_cast<T>(found)) == found; };
    bool fits = false;
    if constexpr (std::is_signed_v<T>)
      fits = index && take(PyLong_AsLongLong(index.ptr()));
    else
      fits = index && take(PyLong_AsUnsignedLongLong(index.ptr()));
    fits = fits && !PyErr_Occurred();
    PyErr_Clear();
    return fits;
  }
  static handle cast(T source, return_value_policy, handle) {
    if constexpr (std::is_signed_v<T>)
      return PyLong_FromLongLong(source);
    else
      return PyLong_FromUnsignedLongLong(source);
  }
};
template <>
struct type_caster<int> : integer_caster<int> {};
template <>
struct type_caster<long> : integer_caster<long> {};
template <>
struct type_caster<long long> : integer_caster<long long> {};
template <>
struct type_caster<unsigned> : integer_caster<unsigned> {};
template <>
struct type_caster<unsigned long> : integer_caster<unsigned long> {};
template <>
struct type_caster<unsigned long long> : integer_caster<unsigned long long> {};

// What float() takes, but no tensor that requires grad, whose gradient would be lost.
template <>
struct type_caster<double> {
  PYBIND11_TYPE_CASTER(double, io_name("typing.SupportsFloat | typing.SupportsIndex", "float"));
  bool load(handle source, bool convert) {
    if (!convert && !PyFloat_Check(source.ptr()) && !PyLong_Check(source.ptr())) return false;
    if (isinstance<rooflab::Tensor>(source) && rooflab::autograd::requires_grad(source.cast<const rooflab::Tensor&>()))
      return false;
    value = PyFloat_AsDouble(source.ptr());
    const bool fits = !PyErr_Occurred();
    PyErr_Clear();
    return fits;
  }
  static handle cast(double source, return_value_policy, handle) { return PyFloat_FromDouble(source); }
};

// A Python number (or NumPy scalar), where an op accepts one instead of a tensor.
template <>
struct type_caster<rooflab::Scalar> {
  PYBIND11_TYPE_CASTER(rooflab::Scalar, const_name("float"));
  bool load(handle source, bool convert) {
    PyObject* object = source.ptr();
    if (PyFloat_Check(object)) {
      value.kind = rooflab::NumberKind::kFloating;
      value.real = PyFloat_AS_DOUBLE(object);
      value.integer = value.real >= -0x1p63 && value.real < 0x1p63 ? static_cast<int64_t>(value.real) : 0;
      return true;
    }
    if (PyLong_Check(object)) {
      int overflow = 0;
      value.kind = PyBool_Check(object) ? rooflab::NumberKind::kBool : rooflab::NumberKind::kInteger;
      value.integer = PyLong_AsLongLongAndOverflow(object, &overflow);
      value.real = PyLong_AsDouble(object);
      if (!PyErr_Occurred()) return true;
      PyErr_Clear();
      return false;
    }
    if (!convert || isinstance<rooflab::Tensor>(source) || !hasattr(source, "item") || !hasattr(source, "ndim"))
      return false;
    return source.attr("ndim").cast<int>() == 0 && load(source.attr("item")(), false);
  }
};

// Converted to rooflab.ValuesAndIndices, a named tuple (bind_order.cpp).
template <>
struct type_caster<rooflab::ValuesAndIndices> {
  PYBIND11_TYPE_CASTER(rooflab::ValuesAndIndices, const_name("rooflab._core.ValuesAndIndices"));
  static handle cast(rooflab::ValuesAndIndices found, return_value_policy, handle) {
    PYBIND11_CONSTINIT static gil_safe_call_once_and_store<object> type;
    type.call_once_and_store_result([] { return module_::import("rooflab._core").attr("ValuesAndIndices"); });
    return type.get_stored()(std::move(found.values), std::move(found.indices)).release();
  }
};

template <>
struct type_caster<rooflab::Device> {
  PYBIND11_TYPE_CASTER(rooflab::Device, const_name("str"));
  bool load(handle source, bool) {
    if (!PyUnicode_Check(source.ptr())) return false;
    value = rooflab::to_device(source);
    return true;
  }
  static handle cast(rooflab::Device device, return_value_policy, handle) {
    return str(rooflab::to_string(device)).release();
  }
};

}  // namespace pybind11::detail
