#include <unordered_map>

#include "bindings/bindings.h"
#include "bindings/by_reference.h"
#include "bindings/docs_tensor.h"
#include "bindings/docs_tensor_values.h"
#include "bindings/text.h"
#include "ops/ops.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

std::string elements(const Tensor& self) {
  if (self.device().is_meta()) return message("shape=", self.shape());
  note_host_read("repr", self);
  return py::str(py::module_::import("numpy").attr("array2string")(on_cpu(self), py::arg("separator") = ", ",
                                                                   py::arg("prefix") = "tensor("));
}

std::string describe(const Tensor& self) {
  if (self.device().is_meta())
    Trace::refuse("repr", "reads the value of a tensor, which a program would not read again; read it outside");
  std::string text = "tensor(" + elements(self);
  if (self.numel() == 0 && self.ndim() != 1 && !self.device().is_meta()) text += message(", shape=", self.shape());
  if (self.dtype() != DType::kFloat32) text += message(", dtype=", name(self.dtype()));
  if (!self.device().is_cpu()) text += message(", device='", to_string(self.device()), "'");
  if (autograd::requires_grad(self))
    text += self.meta()->node ? message(", grad_fn=<", self.meta()->node->op, ">") : ", requires_grad=True";
  return text + ")";
}

// Whether a tensor has this attribute depends on its shape, so hasattr() can tell.
Tensor transposed(const char* name, const Tensor& self, bool has_it) {
  if (!has_it)
    throw py::attribute_error(message("[", name, "] expected ", *name == 'T' ? "at most" : "at least",
                                      " 2 dimensions, got shape ", self.shape(), "; use permute or transpose"));
  return self.ndim() < 2 ? permute(self, self.ndim() == 0 ? Shape{} : Shape{0}) : transpose(self, -2, -1);
}

// A tensor of a trace is where the argument is for which it stands.
Tensor moved(const Tensor& x, Device device) { return to_device(x, Trace::stand_in(device)); }

// t.to("cuda"), t.to(rl.bfloat16), t.to("bfloat16"), t.to("cuda", "float16"), t.to(other)
Tensor to(const Tensor& self, const py::args& args, py::object dtype, py::object device) {
  for (py::handle argument : args) {
    if (py::isinstance<Tensor>(argument)) {
      const Tensor& other = argument.cast<const Tensor&>();
      dtype = from_dtype(other.dtype());
      device = py::cast(other.device());
    } else {
      const std::string text = text_of(argument);
      const bool is_type = find_dtype(argument).has_value();
      const bool is_place = text.starts_with("cpu") || text.starts_with("cuda") || text.starts_with("meta");
      RL_CHECK(is_type || is_place || argument.is_none(), "to",
               "expected a dtype, such as \"float16\", a device, such as \"cpu\", or a tensor, got ", text);
      (is_type ? dtype : device) = py::reinterpret_borrow<py::object>(argument);
    }
  }
  const std::optional<DType> type = dtype.is_none() ? std::nullopt : std::optional(to_dtype(dtype));
  const std::optional<Device> on = device.is_none() ? std::nullopt : std::optional(to_device(device));
  return run_without_gil([=] {
    const Tensor result = type ? cast(self, *type) : self;
    return on ? moved(result, *on) : result;
  });
}

auto cast_to(DType dtype) {
  return itself_or(without_gil([dtype](const Tensor& self) { return cast(self, dtype); }));
}

// One Python object for each device, made when it is first asked for.
PythonDevice device_of(const Tensor& self) {
  static auto* const made = new std::unordered_map<std::string, py::object>;  // outlives Python's modules
  const std::string name = to_string(Trace::stood_for(self.device()));
  py::object& device = (*made)[name];
  if (!device) device = py::module_::import("rooflab._device").attr("device")(name);
  return device;
}

}  // namespace

void register_tensor(py::module_&, py::class_<Tensor>& tensor) {
  // Tensor.__new__ would return an object with no tensor in it, and every method would crash on that.
  reinterpret_cast<PyTypeObject*>(tensor.ptr())->tp_new = [](PyTypeObject*, PyObject*, PyObject*) -> PyObject* {
    PyErr_SetString(PyExc_TypeError, "[Tensor] make one by rl.tensor(data), rl.zeros(...) or rl.empty(...)");
    return nullptr;
  };
  tensor.def_property_readonly("shape", by_reference(&Tensor::shape), kShapeDoc)
      .def_property_readonly("strides", by_reference(&Tensor::strides), kStridesDoc)
      .def_property_readonly(
          "dtype", [](const Tensor& self) { return from_dtype(self.dtype()); }, kDTypeDoc)
      .def_property_readonly("device", &device_of, kDeviceDoc)
      .def_property_readonly("ndim", by_reference(&Tensor::ndim), kNDimDoc)
      .def_property_readonly("nbytes", by_reference(&Tensor::nbytes), kNBytesDoc)
      .def_property_readonly(
          "itemsize", [](const Tensor& self) { return size_of(self.dtype()); }, kItemSizeDoc)
      .def_property_readonly(
          "T", [](const Tensor& self) { return transposed("T", self, self.ndim() <= 2); }, kTDoc)
      .def_property_readonly(
          "mT", [](const Tensor& self) { return transposed("mT", self, self.ndim() >= 2); }, kMatrixTDoc)
      .def(
          "size",
          [](const Tensor& self, std::optional<int64_t> dim) -> py::object {
            return dim ? py::cast(self.size(*dim)) : py::cast(self.shape());
          },
          py::arg("dim") = py::none(), kSizeDoc)
      .def(
          "stride", [](const Tensor& self) { return self.strides(); }, kStrideDoc)
      .def("dim", by_reference(&Tensor::ndim), kDimDoc)
      .def("numel", by_reference(&Tensor::numel), kNumelDoc)
      .def(
          "element_size", [](const Tensor& self) { return size_of(self.dtype()); }, kElementSizeDoc)
      .def(
          "data_ptr",
          [](const Tensor& self) {
            Trace::refuse("data_ptr", "an address differs from call to call");
            return reinterpret_cast<uintptr_t>(self.data());
          },
          kDataPtrDoc)
      .def("is_contiguous", by_reference(&Tensor::is_contiguous), kIsContiguousDoc)
      .def("contiguous", itself_or(without_gil(&contiguous)), kContiguousDoc)
      .def("clone", without_gil([](const Tensor& self) { return copy(self); }), kCloneDoc)
      .def(
          "tolist",
          [](const Tensor& self) {
            note_host_read("tolist", self);
            return on_cpu(self).attr("tolist")();
          },
          kToListDoc)
      .def("to", itself_or(&to), py::arg("dtype") = py::none(), py::arg("device") = py::none(), kToDoc)
      .def("cpu", itself_or(without_gil([](const Tensor& self) { return moved(self, Device{}); })), kCpuDoc)
      .def("cuda", itself_or([](const Tensor& self) {
             const Device gpu = to_device(py::str("cuda"));
             return run_without_gil([=] { return moved(self, gpu); });
           }),
           kCudaDoc)
      .def("double", cast_to(DType::kFloat64), kDoubleDoc)
      .def("float", cast_to(DType::kFloat32), kFloatDoc)
      .def("half", cast_to(DType::kFloat16), kHalfDoc)
      .def("bfloat16", cast_to(DType::kBFloat16), kBFloat16Doc)
      .def("long", cast_to(DType::kInt64), kLongDoc)
      .def("int", cast_to(DType::kInt32), kIntDoc)
      .def("bool", cast_to(DType::kBool), kBoolDoc)
      .def(
          "view", [](const Tensor& self, const py::args& shape) { return view(self, to_shape(shape)); }, kViewDoc)
      .def(
          "reshape",
          [](const Tensor& self, const py::args& shape) {
            const Shape wanted = to_shape(shape);
            return run_without_gil([=] { return reshape(self, wanted); });
          },
          kReshapeDoc)
      .def("transpose", &transpose, py::arg("dim0"), py::arg("dim1"), kTransposeDoc)
      .def(
          "permute", [](const Tensor& self, const py::args& dims) { return permute(self, to_shape(dims)); },
          kPermuteDoc)
      .def(
          "expand", [](const Tensor& self, const py::args& shape) { return expand(self, to_shape(shape)); }, kExpandDoc)
      .def("fill_", itself_or(without_gil([](const Tensor& self, const Scalar& value) {
             fill(self, value);
             return self;
           })),
           py::arg("value"), kFillDoc)
      .def("fill_", itself_or(without_gil([](const Tensor& self, const Tensor& value) {
             RL_CHECK(value.ndim() == 0, "fill_", "value: expected one number, got a tensor of shape ", value.shape());
             copy_into(self, value);
             return self;
           })),
           py::arg("value"))
      .def("zero_", itself_or(without_gil([](const Tensor& self) {
             fill(self, {});
             return self;
           })),
           kZeroDoc)
      .def("copy_", itself_or(without_gil([](const Tensor& self, const Tensor& source) {
             copy_into(self, source);
             return self;
           })),
           py::arg("source"), kCopyIntoDoc)
      .def("__getitem__", &get_item)
      .def("__setitem__", &set_item)
      .def("__repr__", &describe);
}

}  // namespace rooflab
