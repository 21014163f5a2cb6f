// NumPy arrays and everything that NumPy can read; __cuda_array_interface__ in both directions.
#include <pybind11/numpy.h>

#include "autograd/reads.h"
#include "bindings/bindings.h"
#include "bindings/dlpack.h"
#include "bindings/docs_tensor_values.h"
#include "bindings/text.h"
#include "core/cuda_runtime.h"
#include "ops/graph.h"
#include "ops/ops.h"
#include "ops/promotion.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

py::dtype numpy_dtype(DType dtype) {
  if (dtype == DType::kBFloat16) return py::dtype::from_args(py::module_::import("ml_dtypes").attr("bfloat16"));
  return py::dtype::from_args(py::str(name(dtype)));
}

// A typestr such as "<f4". The protocol has none for bfloat16: its bits are passed as "<V2".
std::string typestr(DType dtype) {
  constexpr const char* kTexts[] = {"<f8", "<f4", "<f2", "<V2", "<i8", "<i4", "|b1"};
  return kTexts[static_cast<int>(dtype)];
}

py::tuple byte_strides(const Tensor& self) {
  py::tuple strides(self.ndim());
  for (int i = 0; i < self.ndim(); ++i) strides[i] = py::int_(self.strides()[i] * size_of(self.dtype()));
  return strides;
}

// The tape does not know what another library writes or computes.
void check_detached(const char* what, const Tensor& self) {
  RL_CHECK(!autograd::requires_grad(self), what, "the tensor requires grad; call .detach() first");
}

py::dict cuda_array_interface(const Tensor& self) {
  if (!self.device().is_cuda())
    throw py::attribute_error("[__cuda_array_interface__] the tensor is on " + to_string(self.device()));
  check_detached("__cuda_array_interface__", self);
  autograd::note_read(self);
  self.storage()->use(Stream{});  // the consumer's stream is not known; most use the default one
  const Stream stream = cuda::current_stream(self.device().index);
  using namespace py::literals;
  return py::dict("shape"_a = self.shape(), "typestr"_a = typestr(self.dtype()), "version"_a = 3,
                  "strides"_a = byte_strides(self),
                  "data"_a = py::make_tuple(reinterpret_cast<uintptr_t>(self.data()), false),
                  "stream"_a = dlpack::stream_number(stream));
}

// A view of another library's CUDA array. The view keeps the array alive.
Tensor from_cuda_array(py::object owner) {
  // A tensor on the CPU says itself why it has none.
  RL_CHECK(py::isinstance<Tensor>(owner) || py::hasattr(owner, "__cuda_array_interface__"), "from_cuda_array",
           "array: expected an object with __cuda_array_interface__, got ", type_name(owner));
  const py::dict interface = owner.attr("__cuda_array_interface__");
  const std::string type = text_of(interface["typestr"]);
  std::optional<DType> dtype;
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i)
    if (typestr(static_cast<DType>(i)) == type) dtype = static_cast<DType>(i);
  RL_CHECK(dtype, "tensor", "__cuda_array_interface__: unsupported typestr ", type);
  const Shape shape = to_shape(py::object(interface["shape"]));
  Shape strides = contiguous_strides(shape);
  if (interface.contains("strides") && !interface["strides"].is_none()) {
    strides = to_shape(py::object(interface["strides"]));
    for (int64_t& stride : strides) {
      RL_CHECK(stride % size_of(*dtype) == 0, "tensor", "__cuda_array_interface__: strides are not whole elements");
      stride /= size_of(*dtype);
    }
  }
  const auto address = py::tuple(interface["data"])[0].cast<uintptr_t>();
  RL_CHECK(address % size_of(*dtype) == 0, "from_cuda_array", "array: expected an address that is a multiple of ",
           size_of(*dtype), " bytes, the size of an element");
  void* data = reinterpret_cast<void*>(address);
  cuda::check_device(0);
  const Device device{Device::Type::kCuda, static_cast<int8_t>(cuda::device_of(data))};
  if (interface.contains("stream") && !interface["stream"].is_none()) {
    const auto number = interface["stream"].cast<intptr_t>();
    RL_CHECK(number > 0, "tensor", "__cuda_array_interface__: stream: expected a stream or None, got ", number);
    cuda::wait(cuda::current_stream(device.index), dlpack::stream_of(number), device.index);
  }
  auto* keep = new py::object(std::move(owner));
  auto storage = std::make_shared<Storage>(data, device, [keep] {
    py::gil_scoped_acquire gil;
    delete keep;
  });
  return Tensor(std::move(storage), data, shape, strides, *dtype);
}

// A copy from Python would happen once, and not at every replay.
void check_not_capturing() {
  RL_CHECK(!Graph::capturing(), "tensor", "a graph cannot capture it; make the tensor before the capture");
}

py::array read_array(py::handle object) {
  try {
    return py::array(py::module_::import("numpy").attr("asarray")(object));
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_ValueError)) throw;
    throw std::invalid_argument(message("[tensor] data: ", text_of(error.value())));
  }
}

// Numbers in Python objects as float64, if that is asked for or one of them is a float, else as int64. The error says
// which of them is not a number, or which number is too large.
py::array from_objects(const py::array& objects, bool as_floats) {
  const py::module_ numpy = py::module_::import("numpy");
  for (py::handle item : objects.attr("flat")) {
    const bool is_float = PyFloat_Check(item.ptr()) || py::isinstance(item, numpy.attr("floating"));
    RL_CHECK(is_float || PyLong_Check(item.ptr()) || py::isinstance(item, numpy.attr("integer")), "tensor",
             "data: expected numbers in equal rows, got ", type_name(item));
    as_floats |= is_float;
  }
  for (py::handle item : objects.attr("flat")) {
    as_floats ? void(PyFloat_AsDouble(item.ptr())) : void(PyLong_AsLongLong(item.ptr()));
    if (!PyErr_Occurred()) continue;
    PyErr_Clear();
    throw std::invalid_argument(message("[tensor] data: expected numbers that ", as_floats ? "float64" : "int64",
                                        " can hold, got ", text_of(item)));
  }
  return objects.attr("astype")(numpy_dtype(as_floats ? DType::kFloat64 : DType::kInt64));
}

// The integers in a list's numbers, exactly, where NumPy has made float64 of all because one of them is a float. None
// if one is no integer of 64 bits after it is rounded towards zero.
std::optional<py::array> exact_integers(py::handle numbers, const py::array& floats) {
  using namespace py::literals;
  const py::module_ numpy = py::module_::import("numpy");
  const py::object objects = numpy.attr("asarray")(numbers, "dtype"_a = "object");
  py::list found;
  for (py::handle item : objects.attr("flat")) {
    const auto integer = py::reinterpret_steal<py::object>(PyNumber_Long(item.ptr()));
    if (integer) PyLong_AsLongLong(integer.ptr());
    if (PyErr_Occurred()) {
      PyErr_Clear();
      return std::nullopt;
    }
    found.append(integer);
  }
  return py::array(numpy.attr("array")(found, numpy_dtype(DType::kInt64)).attr("reshape")(floats.attr("shape")));
}

// The dtype that holds what one of NumPy's does. Types that no tensor has are converted: integers to int64, and long
// doubles to float64.
DType nearest_dtype(const py::dtype& given) {
  return find_dtype(given).value_or(given.kind() == 'f' ? DType::kFloat64 : DType::kInt64);
}

// The dtype of floats that are not in an array, as in PyTorch: float32 for Python's, while NumPy's numbers, and arrays
// in lists, keep their own. Nothing if there is no float.
std::optional<DType> dtype_of_floats(py::handle data) {
  if (PyFloat_CheckExact(data.ptr())) return DType::kFloat32;
  if (PyLong_Check(data.ptr())) return std::nullopt;
  std::optional<DType> found;
  if (py::hasattr(data, "dtype")) {
    const py::object own = data.attr("dtype");  // NumPy's, or a tensor's
    found = py::isinstance<py::dtype>(own) ? nearest_dtype(py::dtype::from_args(own)) : find_dtype(own);
    return found && is_floating(*found) ? found : std::nullopt;
  }
  if (PyList_Check(data.ptr()) || PyTuple_Check(data.ptr()))
    for (py::handle item : data)
      if (const std::optional<DType> dtype = dtype_of_floats(item)) found = found ? promoted(*found, *dtype) : dtype;
  return found;
}

Tensor make_tensor(py::handle data, py::handle dtype, py::handle device) {
  check_not_capturing();
  std::optional<DType> wanted;
  if (!dtype.is_none()) wanted = to_dtype(dtype);
  if (!py::isinstance<Tensor>(data) && py::hasattr(data, "__cuda_array_interface__")) {
    const Tensor given = from_cuda_array(py::reinterpret_borrow<py::object>(data));
    const Device on = device.is_none() ? given.device() : Trace::stand_in(to_device(device));
    return run_without_gil([=] {
      const Tensor copied = copy(given);
      return to_device(wanted ? cast(copied, *wanted) : copied, on);
    });
  }
  return from_array(data, wanted, device.is_none() ? Device{} : to_device(device));
}

}  // namespace

Tensor from_array(py::handle object, std::optional<DType> dtype, Device device) {
  check_not_capturing();
  if (py::isinstance<Tensor>(object)) {
    const Tensor given = object.cast<const Tensor&>().detach();
    return run_without_gil([=] {
      const Tensor copied = copy(given);
      return to_device(dtype ? cast(copied, *dtype) : copied, device);
    });
  }
  using namespace py::literals;
  const py::module_ numpy = py::module_::import("numpy");
  const bool is_array = py::isinstance<py::array>(object), wants_floats = dtype && is_floating(*dtype);
  const bool is_list = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  py::array array = read_array(object);
  char kind = array.dtype().kind();
  std::optional<DType> floats;
  if (!is_array && kind == 'f' && !wants_floats) floats = dtype_of_floats(object);
  // NumPy makes float64 of a list's integers that neither int64 nor uint64 can hold together, and objects of larger
  // ones.
  const bool is_rounded = is_list && kind == 'f' && !wants_floats && !floats && array.size() > 0;
  if (kind == 'O' || is_rounded) {
    const py::array read = from_objects(numpy.attr("asarray")(object, "dtype"_a = "object"), wants_floats);
    RL_CHECK(!is_array, "tensor", "data: expected an array of numbers, got one of Python objects");
    array = read;
    kind = array.dtype().kind();
    if (kind == 'f') floats = dtype_of_floats(object);
  }
  constexpr double kExact = 0x1p53;  // larger integers are not all in float64
  if (is_list && kind == 'f' && dtype == DType::kInt64 && array.size() > 0 &&
      numpy.attr("abs")(array).attr("max")().cast<double>() >= kExact) {
    if (const std::optional<py::array> integers = exact_integers(object, array)) array = *integers, kind = 'i';
  }
  RL_CHECK(find_dtype(array.dtype()) || kind == 'f' || kind == 'i' || kind == 'u', "tensor",
           "data: expected numbers in equal rows, got ", text_of(array.attr("dtype")));
  DType from = nearest_dtype(array.dtype());
  // NumPy uses uint64 for Python integers that int64 cannot hold.
  const bool is_uint64 = kind == 'u' && array.itemsize() == 8;
  if (is_uint64 && array.size() > 0) {
    const auto largest = array.attr("max")().attr("item")().cast<uint64_t>();
    const bool is_large = largest > uint64_t{INT64_MAX};
    RL_CHECK(!is_large || wants_floats, "tensor", "data: expected numbers that int64 can hold, got ", largest);
    if (is_large) from = DType::kFloat64;
  }
  if (!dtype) dtype = !is_array && kind == 'f' ? floats.value_or(DType::kFloat32) : from;
  const py::object converted = numpy.attr("ascontiguousarray")(array, numpy_dtype(from));
  const py::array source = py::reinterpret_borrow<py::array>(converted);
  const Shape shape(array.shape(), array.shape() + array.ndim());  // ascontiguousarray makes 0-d arrays 1-d
  const void* values = source.data();
  return run_without_gil([=] { return from_host(values, from, shape, *dtype, device); });
}

void note_host_read(const char* what, const Tensor& self) {
  RL_CHECK_AS(
      WithoutMemory, !Trace::current() || self.device().is_meta(), what,
      "reads the value of a tensor, which a program would not read again; read it before, and pass the number as "
      "an argument");
  autograd::note_read(self);
}

PythonArray to_numpy(const Tensor& self) {
  check_detached("numpy", self);
  RL_CHECK(!Graph::capturing(), "numpy",
           "values cannot be read while a graph is captured: nothing runs before replay()");
  RL_CHECK_AS(WithoutMemory, !self.device().is_meta(), "numpy", "a tensor on ", to_string(self.device()),
              " has no values");
  RL_CHECK(self.device().is_cpu(), "numpy", "the tensor is on ", to_string(self.device()), "; call .cpu() first");
  auto* keep = new Tensor(self);
  py::capsule owner(keep, [](void* tensor) { delete static_cast<Tensor*>(tensor); });
  std::vector<py::ssize_t> shape(self.shape().begin(), self.shape().end()), strides;
  bool repeats = false;  // holds one element in many places, which must not be written to
  for (int d = 0; d < self.ndim(); ++d) {
    strides.push_back(self.stride(d) * size_of(self.dtype()));
    repeats |= self.stride(d) == 0 && self.size(d) > 1;
  }
  static char nothing;  // NumPy allocates for itself when given no address
  py::array array(numpy_dtype(self.dtype()), shape, strides, self.data() ? self.data() : &nothing, owner);
  if (repeats) array.attr("setflags")(py::arg("write") = false);
  return array;
}

py::object on_cpu(const Tensor& self) {
  return to_numpy(run_without_gil([=] { return to_device(self.detach(), Device{}); }));
}

constexpr const char* kTensorDoc = R"doc(A new tensor with a copy of `data`.

Parameters
----------
data : number, nested lists, NumPy array, CUDA array or Tensor
    Python's floats become float32, its integers int64; arrays and NumPy's numbers keep their dtype, but other integers
    become int64 and long doubles float64.
dtype : dtype or str, optional
    Of the result.
device : str, optional
    "cpu" or "cuda:N"; where a CUDA array lies, else the CPU, when absent.
requires_grad : bool
    Whether ops on it are recorded.

Returns
-------
Tensor
    Contiguous, with memory of its own.

Raises
------
ValueError
    For rows of different lengths, what is no number, and integers that int64 cannot hold where no float is.

Examples
--------
>>> rl.tensor([[1, 2], [3, 4]])
tensor([[1, 2],
        [3, 4]], dtype=int64))doc";
constexpr const char* kFromCudaDoc = R"doc(A tensor that shares the memory of an object with __cuda_array_interface__.

Parameters
----------
array : object
    Such as an array of Numba or CuPy.

Returns
-------
Tensor
    On the GPU that holds the memory, which lives as long as the tensor.

Raises
------
ValueError
    For an object without that interface, a dtype that rooflab lacks, or strides that are not whole elements.
CudaError
    When there is no GPU.

Examples
--------
>>> x = rl.from_cuda_array(numba_array)  # doctest: +SKIP)doc";

void register_arrays(py::module_& m, py::class_<Tensor>& tensor) {
  tensor
      .def(
          "numpy",
          [](const Tensor& self) {
            note_host_read("numpy", self);
            return to_numpy(self);
          },
          kNumpyDoc)
      .def(
          "__array__",
          [](const Tensor& self, const py::object& dtype, const std::optional<bool>& copy) -> PythonArray {
            note_host_read("array", self);
            check_detached("numpy", self);
            RL_CHECK(self.device().is_cpu() || copy.value_or(true), "numpy", "copy: a tensor on ",
                     to_string(self.device()), " cannot be an array without a copy");
            const py::object array = on_cpu(self);
            const py::module_ numpy = py::module_::import("numpy");
            const bool copies = copy.value_or(false) && self.device().is_cpu();  // NumPy 1 knows no copy=None here
            if (copies) return numpy.attr("array")(array, dtype);
            const py::object same = numpy.attr("asarray")(array, dtype);
            RL_CHECK(copy.value_or(true) || same.is(array), "numpy", "copy: another dtype needs a copy");
            return same;
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def_property_readonly("__cuda_array_interface__", &cuda_array_interface);
  m.def(
      "tensor",
      [](py::object data, py::object dtype, py::object device, bool requires_grad) {
        Tensor made = make_tensor(data, dtype, device);
        autograd::set_requires_grad(made, requires_grad);
        return made;
      },
      py::arg("data"), py::kw_only(), py::arg("dtype") = py::none(), py::arg("device") = py::none(),
      py::arg("requires_grad") = false, kTensorDoc);
  m.def("from_cuda_array", &from_cuda_array, py::arg("array"), kFromCudaDoc);
}

}  // namespace rooflab
