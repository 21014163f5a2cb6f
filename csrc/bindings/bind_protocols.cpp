// What Python's built-in functions and modules need from a tensor: len(), iter(), bool(), f-strings, copy, pickle.
#include <pybind11/typing.h>

#include "bindings/bindings.h"
#include "bindings/docs_tensor_values.h"
#include "bindings/text.h"
#include "nn/nn.h"

namespace rooflab {
namespace {

// The only element as a Python number.
py::object element(const Tensor& self, const char* what) {
  note_host_read(what, self);
  RL_CHECK(self.numel() == 1, what, "expected a tensor of one element, got shape ", self.shape());
  return on_cpu(self).attr("item")();
}

py::bool_ truth(const Tensor& self) {
  RL_CHECK(self.numel() == 1, "bool", "the truth of shape ", self.shape(),
           " is ambiguous; expected a tensor of one element, such as (a == b).sum() > 0");
  return py::bool_(element(self, "bool"));
}

// What int() gives, which is no bool for a bool.
py::int_ whole(const py::object& number) { return py::handle(reinterpret_cast<PyObject*>(&PyLong_Type))(number); }

py::int_ index(const Tensor& self) {
  if (is_floating(self.dtype()) || self.numel() != 1)
    throw py::type_error(message("[index] expected an integer tensor of one element, got ", name(self.dtype()),
                                 " of shape ", self.shape()));
  return whole(element(self, "index"));
}

void check_has_dimensions(const Tensor& self, const char* what) {
  if (self.ndim() == 0) throw py::type_error(message("[", what, "] expected at least one dimension, got a number"));
}

py::typing::Iterator<Tensor> iterate(const Tensor& self) {
  check_has_dimensions(self, "iter");
  py::list rows;
  for (const Tensor& row : nn::unbind(self, 0)) rows.append(row);
  return py::iter(rows);
}

py::str format(const py::object& self, const std::string& specification) {
  const Tensor& x = self.cast<const Tensor&>();
  if (x.numel() == 1 && (x.ndim() == 0 || !specification.empty()) && !x.device().is_meta())
    return element(x, "format").attr("__format__")(specification);
  if (!specification.empty())
    throw py::type_error(
        message("[format] \"", specification, "\" is for a tensor of one element, got shape ", x.shape()));
  return py::str(self);
}

void check_leaf(const Tensor& self, const char* what) {
  RL_CHECK(!autograd::requires_grad(self) || !self.meta()->node, what, "the tensor is a result of ",
           self.meta()->node->op, ", whose graph is not copied; call .detach() first");
}

// A tensor of its own with the same memory: a leaf without a gradient, or a view in the graph.
Tensor shallow_copy(const Tensor& self) {
  if (autograd::requires_grad(self) && self.meta()->node) return view(self, self.shape());
  Tensor copied = self.detach();
  autograd::set_requires_grad(copied, autograd::requires_grad(self));
  if (autograd::is_parameter(self)) autograd::mark_parameter(copied);
  return copied;
}

// How far from the beginning of its memory a tensor begins.
int64_t bytes_before(const Tensor& x) {
  return static_cast<const char*>(x.data()) - static_cast<const char*>(x.storage()->data());
}

// A copy of all of the memory of which a tensor shows a part, in which the tensor lies as in the original.
Tensor copy_memory(const Tensor& x) {
  const std::shared_ptr<Storage> storage = x.storage();
  const int64_t count = storage->bytes() / size_of(x.dtype());
  const Tensor all(storage, static_cast<char*>(storage->data()), {count}, {1}, x.dtype());
  return run_without_gil([=] { return copy(all); });
}

// A tensor with the same values; a leaf keeps its requires_grad and grad, and stays a parameter. Memory is copied once,
// so that copies share it where the tensors do: `memo` is of one call of copy.deepcopy, and holds what that has copied.
Tensor deep_copy(const Tensor& self, py::dict memo) {
  check_leaf(self, "deepcopy");
  const int64_t before = bytes_before(self), size = size_of(self.dtype()), bytes = self.storage()->bytes();
  Tensor copied;
  if (bytes == 0 || bytes % size != 0 || before % size != 0) {  // 0: memory that is not ours, of unknown size
    copied = run_without_gil([x = self.detach()] { return copy(x); });
  } else {
    const py::tuple key = py::make_tuple("memory", reinterpret_cast<uintptr_t>(self.storage().get()));
    // The original is held too, so that no other memory gets its address meanwhile.
    if (!memo.contains(key)) memo[key] = py::make_tuple(copy_memory(self), self.detach());
    const Tensor made = memo[key].cast<py::tuple>()[0].cast<Tensor>();
    copied =
        Tensor(made.storage(), static_cast<char*>(made.data()) + before, self.shape(), self.strides(), self.dtype());
  }
  if (!self.meta()) return copied;
  autograd::set_requires_grad(copied, autograd::requires_grad(self));
  if (autograd::is_parameter(self)) autograd::mark_parameter(copied);
  if (const Tensor grad = self.meta()->grad(); grad.defined()) {
    if (!copied.meta()) copied.set_meta(std::make_shared<autograd::Meta>(copied));
    const Tensor none = copied.meta()->exchange_grad(copy(grad));
  }
  return copied;
}

py::tuple reduce(const Tensor& self) {
  check_leaf(self, "pickle");
  const py::object values = self.device().is_meta() ? py::cast(self.shape()) : on_cpu(self);
  return py::make_tuple(py::module_::import("rooflab._core").attr("_rebuild"),
                        py::make_tuple(values, name(self.dtype()), to_string(self.device()),
                                       autograd::requires_grad(self), autograd::is_parameter(self)));
}

Tensor rebuild(const py::object& values, const py::object& dtype, const py::object& device, bool requires_grad,
               bool is_parameter) {
  const Device on = to_device(device);
  Tensor made =
      on.is_meta() ? Tensor::empty(to_shape(values), to_dtype(dtype), on) : from_array(values, to_dtype(dtype), on);
  autograd::set_requires_grad(made, requires_grad);
  if (is_parameter) autograd::mark_parameter(made);
  return made;
}

// Advice for a name that PyTorch's tensors have and these do not; empty if there is none.
std::string habit(py::handle type, py::handle name) {
  if (py::hasattr(type, name)) return {};  // a property raised the error
  return py::str(py::module_::import("rooflab._habits").attr("advice")("Tensor", name));
}

// The error for a missing attribute says what to write instead.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError) || PyUnicode_READ_CHAR(name, 0) == '_') return found;
  py::error_already_set error;
  try {
    const std::string instead = habit(py::handle(reinterpret_cast<PyObject*>(Py_TYPE(self))), name);
    if (!instead.empty())
      PyErr_SetString(PyExc_AttributeError,
                      message("'Tensor' object has no attribute '", text_of(name), "'", instead).c_str());
    else
      error.restore();
  } catch (const std::exception&) {  // no exception may leave a function that Python calls
    error.restore();
  }
  return nullptr;
}

// The distance from the first to the last element, in elements; -1 if there are no elements.
int64_t reach(const Shape& shape, const Shape& strides) {
  int64_t last = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return -1;
    last += (shape[i] - 1) * strides[i];
  }
  return last;
}

Tensor strided(const Tensor& base, const py::object& sizes, const py::object& steps, int64_t offset) {
  constexpr int64_t kMost = int64_t{1} << 40;  // so that no product overflows
  const Shape shape = to_shape(sizes), strides = to_shape(steps);
  RL_CHECK(shape.size() == strides.size(), "strided", "strides: expected ", shape.size(), " of them, got ", strides);
  int64_t elements = 1;
  for (int i = 0; i < shape.size(); ++i) {
    RL_CHECK(shape[i] >= 0 && shape[i] <= kMost && strides[i] >= 0, "strided", "shape or strides out of range: ", shape,
             " ", strides);
    RL_CHECK(shape[i] <= 1 || strides[i] <= kMost / shape[i], "strided", "strides: ", strides, " are too large");
    elements *= shape[i];
    RL_CHECK(elements <= kMost, "strided", "shape: ", shape, " is too large");
  }
  const int64_t last = reach(shape, strides);
  RL_CHECK(offset >= 0 && offset <= kMost && (last < 0 || offset + last <= reach(base.shape(), base.strides())),
           "strided", "shape ", shape, " with strides ", strides, " from ", offset, " lies outside of the tensor");
  return base.detach().as_strided(shape, strides, last < 0 ? 0 : offset);
}

}  // namespace

void register_protocols(py::module_& m, py::class_<Tensor>& tensor) {
  reinterpret_cast<PyTypeObject*>(tensor.ptr())->tp_getattro = &get_attribute;
  tensor
      .def(
          "item", [](const Tensor& self) { return element(self, "item"); }, kItemDoc)
      .def("__len__",
           [](const Tensor& self) {
             check_has_dimensions(self, "len");
             return self.size(0);
           })
      .def("__iter__", &iterate)
      .def("__bool__", &truth)
      .def("__float__", [](const Tensor& self) { return py::float_(element(self, "float")); })
      .def("__int__", [](const Tensor& self) { return whole(element(self, "int")); })
      .def("__index__", [](const Tensor& self) { return index(self); })
      .def("__format__", &format)
      .def("__copy__", &shallow_copy)
      .def("__deepcopy__", &deep_copy)
      .def("__reduce__", &reduce);
  m.def("_rebuild", &rebuild, py::arg("values"), py::arg("dtype"), py::arg("device"), py::arg("requires_grad"),
        py::arg("is_parameter") = false, "What pickle calls.");
  m.def(
      "_overlaps_itself", [](const Tensor& x) { return x.overlaps_itself(); }, py::arg("x"),
      "Whether elements of x share memory, so that none can be written to alone.");
  m.def("_apart_from_earlier", without_gil(&apart_from_earlier), py::arg("sources"), py::arg("destinations"),
        "The sources of copies that follow each other: one that lies in an earlier destination is copied first.");
  m.def("_strided", &strided, py::arg("base"), py::arg("shape"), py::arg("strides"), py::arg("offset"),
        "A view of what lies between the first and the last element of base; strides and offset in elements.");
}

}  // namespace rooflab
