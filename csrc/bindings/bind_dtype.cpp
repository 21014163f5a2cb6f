#include <pybind11/operators.h>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "core/cuda_runtime.h"
#include "core/target.h"

namespace rooflab {
namespace {

constexpr DType kDTypes[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                             DType::kInt64,   DType::kInt32,   DType::kBool};

// A dtype as Python sees it. It also equals its name, so t.dtype == "float32" works as it reads.
struct DTypeObject {
  DType value;
};

// The name in the module, where bool must remain Python's.
const char* attribute_name(DType dtype) { return dtype == DType::kBool ? "bool_" : name(dtype); }

// The Python object of each dtype, made once and kept for the life of the process.
py::object& dtype_object(DType dtype) {
  static py::object* objects = new py::object[std::size(kDTypes)];
  return objects[static_cast<int>(dtype)];
}

// Other names that PyTorch and NumPy use.
constexpr std::pair<const char*, DType> kAliases[] = {
    {"double", DType::kFloat64}, {"float", DType::kFloat32}, {"half", DType::kFloat16},  {"fp64", DType::kFloat64},
    {"fp32", DType::kFloat32},   {"fp16", DType::kFloat16},  {"bf16", DType::kBFloat16}, {"long", DType::kInt64},
    {"int", DType::kInt32},      {"bool_", DType::kBool}};

std::optional<DType> find_name(std::string_view text) {
  for (DType dtype : kDTypes)
    if (text == name(dtype)) return dtype;
  for (const auto& [alias, dtype] : kAliases)
    if (text == alias) return dtype;
  return std::nullopt;
}

}  // namespace

std::optional<DType> find_dtype(py::handle object) {
  if (py::isinstance<DTypeObject>(object)) return object.cast<DTypeObject&>().value;
  if (py::isinstance<py::str>(object)) return find_name(text_of(object));
  // Python's own types, as NumPy and PyTorch read them.
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::kFloat64;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::kInt64;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  if (!PyType_Check(object.ptr()) && py::hasattr(object, "name") && py::hasattr(object, "itemsize"))  // numpy.dtype
    return find_name(text_of(object.attr("name")));
  // numpy.float32 and ml_dtypes.bfloat16; torch.float32 is recognised by its text.
  if (PyType_Check(object.ptr()) && py::hasattr(object, "dtype")) return find_name(text_of(object.attr("__name__")));
  const std::string text = text_of(object);
  return text.starts_with("torch.") ? find_name(text.substr(6)) : std::nullopt;
}

DType to_dtype(py::handle object) {
  if (const std::optional<DType> dtype = find_dtype(object)) return *dtype;
  throw std::invalid_argument(
      message("[dtype] expected float64, float32, float16, bfloat16, int64, int32 or bool, got ",
              text_of(py::isinstance<py::str>(object) ? py::str(object) : py::repr(object))));
}

PythonDType from_dtype(DType dtype) { return dtype_object(dtype); }

Device to_device(py::handle object) {
  const std::string text = text_of(object);
  if (text == "cpu" || text == "cpu:0") return {Device::Type::kCpu, 0};
  if (text == "meta") return meta_device("cpu");
  if (text.starts_with("meta:")) return meta_device(text.substr(5));
  int index = 0;
  if (text.starts_with("cuda:") && text.size() > 5 && text.size() <= 8 &&
      text.find_first_not_of("0123456789", 5) == text.npos && (text[5] != '0' || text.size() == 6))
    index = std::stoi(text.substr(5));
  else if (text != "cuda")
    throw std::invalid_argument(
        message("[device] expected \"cpu\", \"cuda\", \"cuda:N\" or \"meta:NAME\", got \"", text, "\""));
  cuda::check_device(index);
  return {Device::Type::kCuda, static_cast<int8_t>(index)};
}

bool is_integer(py::handle object) {
  if (!py::isinstance<Tensor>(object)) return PyIndex_Check(object.ptr()) && !PyBool_Check(object.ptr());
  const Tensor& x = object.cast<const Tensor&>();
  return x.ndim() == 0 && !is_floating(x.dtype()) && x.dtype() != DType::kBool;
}

Shape to_shape(py::handle object) {
  const auto refuse = [](py::handle got) {
    const Tensor* x = py::isinstance<Tensor>(got) ? got.cast<const Tensor*>() : nullptr;  // whose values are not read
    throw py::type_error(
        message("expected integers, got ",
                x ? message("Tensor of shape ", x->shape(), ", ", name(x->dtype())) : text_of(py::repr(got))));
  };
  Shape shape;
  auto add = [&](py::handle item) {
    if (!is_integer(item)) refuse(item);
    const int64_t size = PyNumber_AsSsize_t(item.ptr(), PyExc_OverflowError);
    if (PyErr_Occurred()) {
      const py::error_already_set error;
      if (PyLong_Check(item.ptr()))
        throw py::type_error(message("expected integers of 64 bits, got ", text_of(py::repr(item))));
      if (py::hasattr(item, "__array__") && !py::isinstance<Tensor>(item)) refuse(item);
      throw error;
    }
    shape.push_back(size);
  };
  if (PyIndex_Check(object.ptr())) {
    add(object);
  } else if (!py::isinstance<py::iterable>(object) || PyUnicode_Check(object.ptr())) {
    refuse(object);
  } else {
    for (py::handle item : object) add(item);
  }
  return shape;
}

Shape to_shape(const py::args& args) {
  const bool packed = args.size() == 1 && !PyIndex_Check(py::object(args[0]).ptr());
  return to_shape(packed ? py::handle(py::object(args[0])) : py::handle(args));
}

Shape to_dims(const py::object& dim) { return dim.is_none() ? Shape{} : to_shape(dim); }

void register_dtype(py::module_& m) {
  py::class_<DTypeObject>(m, "DType",
                          "An element type: rooflab.float32, rooflab.bfloat16 ... Operands of several dtypes meet in "
                          "a common one, as in PyTorch. A floating dtype goes before integers, these before bool, and "
                          "a wider one before a narrower one; float16 and bfloat16 meet in float32. A tensor without "
                          "dimensions, or a number, counts only if it is of a higher kind than the others: "
                          "rl.arange(3) * 2 is int64, and rl.arange(3) * 0.5 is float32.")
      .def_property_readonly("name", [](DTypeObject self) { return name(self.value); })
      .def_property_readonly(
          "itemsize", [](DTypeObject self) { return size_of(self.value); }, "Bytes per element.")
      .def_property_readonly("is_floating_point", [](DTypeObject self) { return is_floating(self.value); })
      .def("__repr__", [](DTypeObject self) { return message("rooflab.", name(self.value)); })
      .def("__str__", [](DTypeObject self) { return name(self.value); })
      .def("__hash__", [](DTypeObject self) { return py::hash(py::str(name(self.value))); })
      .def("__reduce__", [](DTypeObject self) { return attribute_name(self.value); })
      .def("__eq__", [](DTypeObject self, py::handle other) { return find_dtype(other) == self.value; });
  for (DType dtype : kDTypes) {
    dtype_object(dtype) = py::cast(DTypeObject{dtype});
    m.attr(attribute_name(dtype)) = dtype_object(dtype);
  }
}

}  // namespace rooflab
