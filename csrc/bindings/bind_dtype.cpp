#include <pybind11/operators.h>

#include "bindings/bindings.h"
#include "core/cuda_runtime.h"
#include "core/target.h"

namespace rooflab {
namespace {

constexpr DType kDTypes[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                             DType::kInt64,   DType::kInt32,   DType::kBool};

// What Python sees as a dtype: compares equal to its name too, so t.dtype == "float32" reads as it should.
struct DTypeObject {
  DType value;
};

// The Python object of each dtype, made once and kept for the life of the process.
py::object& dtype_object(DType dtype) {
  static py::object* objects = new py::object[std::size(kDTypes)];
  return objects[static_cast<int>(dtype)];
}

std::optional<DType> find_dtype(std::string_view text) {
  for (DType dtype : kDTypes)
    if (text == name(dtype)) return dtype;
  return std::nullopt;
}

}  // namespace

DType to_dtype(py::handle object) {
  if (py::isinstance<DTypeObject>(object)) return object.cast<DTypeObject&>().value;
  std::string text;
  if (py::isinstance<py::str>(object))
    text = object.cast<std::string>();
  else if (py::hasattr(object, "name"))  // numpy.dtype
    text = py::str(object.attr("name"));
  else if (py::hasattr(object, "__name__"))  // numpy.float32
    text = py::str(object.attr("__name__"));
  if (std::optional<DType> dtype = find_dtype(text)) return *dtype;
  throw std::invalid_argument(message("dtype: expected float64, float32, float16, bfloat16, int64, int32 or bool, got ",
                                      text.empty() ? std::string(py::repr(object)) : text));
}

py::object from_dtype(DType dtype) { return dtype_object(dtype); }

Device to_device(py::handle object) {
  const std::string text = py::str(object);
  if (text == "cpu") return {Device::Type::kCpu, 0};
  if (text == "meta") return meta_device("cpu");
  if (text.starts_with("meta:")) return meta_device(text.substr(5));
  int index = 0;
  if (text.starts_with("cuda:") && text.size() > 5 && text.size() <= 8 &&
      text.find_first_not_of("0123456789", 5) == text.npos)
    index = std::stoi(text.substr(5));
  else if (text != "cuda")
    throw std::invalid_argument(
        message("device: expected \"cpu\", \"cuda\", \"cuda:N\" or \"meta:NAME\", got \"", text, "\""));
  cuda::check_device(index);
  return {Device::Type::kCuda, static_cast<int8_t>(index)};
}

Shape to_shape(py::handle object) {
  Shape shape;
  auto add = [&](py::handle item) {
    const int64_t size = PyNumber_AsSsize_t(item.ptr(), PyExc_OverflowError);
    if (PyErr_Occurred()) throw py::error_already_set();
    shape.push_back(size);
  };
  if (PyIndex_Check(object.ptr())) {
    add(object);
  } else {
    for (py::handle item : object) add(item);
  }
  return shape;
}

Shape to_shape(const py::args& args) {
  const bool packed = args.size() == 1 && !PyIndex_Check(py::object(args[0]).ptr());
  return to_shape(packed ? py::handle(py::object(args[0])) : py::handle(args));
}

void register_dtype(py::module_& m) {
  py::class_<DTypeObject>(m, "DType", "An element type: rooflab.float32, rooflab.bfloat16 ...")
      .def_property_readonly("name", [](DTypeObject self) { return name(self.value); })
      .def_property_readonly(
          "itemsize", [](DTypeObject self) { return size_of(self.value); }, "Bytes an element.")
      .def_property_readonly("is_floating_point", [](DTypeObject self) { return is_floating(self.value); })
      .def("__repr__", [](DTypeObject self) { return message("rooflab.", name(self.value)); })
      .def("__str__", [](DTypeObject self) { return name(self.value); })
      .def("__hash__", [](DTypeObject self) { return py::hash(py::str(name(self.value))); })
      .def("__reduce__", [](DTypeObject self) { return name(self.value); })
      .def("__eq__", [](DTypeObject self, py::handle other) {
        if (py::isinstance<DTypeObject>(other)) return other.cast<DTypeObject&>().value == self.value;
        return py::isinstance<py::str>(other) && other.cast<std::string>() == name(self.value);
      });
  for (DType dtype : kDTypes) {
    dtype_object(dtype) = py::cast(DTypeObject{dtype});
    m.attr(dtype == DType::kBool ? "bool_" : name(dtype)) = dtype_object(dtype);
  }
}

}  // namespace rooflab
