#include <cstring>

#include "bindings/bindings.h"
#include "bindings/text.h"
#include "core/cuda_module.h"
#include "ops/custom.h"

namespace rooflab {
namespace {

// What a kernel takes as one parameter, as rooflab/cuda_signature.py found it.
struct Parameter {
  std::string label;  // "q (const float*)"
  std::string kind;   // "pointer", "integer", "real"; "any": a pointer or a 64-bit integer; else one that Python lacks
  int bytes;
  bool is_signed;
  std::optional<DType> dtype;  // of what a pointer points to, if known
  bool is_written;             // a pointer through which the kernel may write
};

Dim3 to_dimensions(const std::string& kernel, const char* what, const py::handle& object) {
  int64_t dimensions[3] = {1, 1, 1};
  Shape shape;
  try {
    shape = to_shape(object);
  } catch (const std::exception&) {  // the message below says more
  }
  bool good = shape.size() >= 1 && shape.size() <= 3;
  for (int i = 0; good && i < shape.size(); ++i) good = (dimensions[i] = shape[i]) >= 1;
  RL_CHECK(good, kernel, what, ": expected one to three integers >= 1, got ", text_of(py::repr(object)));
  return {dimensions[0], dimensions[1], dimensions[2]};
}

// One launch's arguments, at most 8 bytes each, at the addresses from which the launch reads them.
class Arguments {
 public:
  Arguments(const std::string& kernel, size_t count) : kernel_(kernel), values_(count), places_(count) {
    for (size_t i = 0; i < count; ++i) places_[i] = &values_[i];
  }

  void set(size_t place, const Parameter& parameter, const py::handle& value) {
    const bool is_tensor = py::isinstance<Tensor>(value);
    if (parameter.kind == "pointer" || (parameter.kind == "any" && (is_tensor || value.is_none()))) {
      if (!is_tensor && !value.is_none()) refuse(parameter, "a tensor", value);
      put(place, is_tensor ? address(parameter, value.cast<const Tensor&>()) : nullptr);
    } else if (parameter.kind == "integer" || parameter.kind == "any") {
      set_integer(place, parameter, value);
    } else if (parameter.kind == "real") {
      if (!is_real(value)) refuse(parameter, "a number", value);
      const double number = value.cast<double>();
      parameter.bytes == 4 ? put(place, static_cast<float>(number)) : put(place, number);
    } else {
      RL_CHECK(false, kernel_, parameter.label, ": a kernel's parameters can be pointers and numbers, not ",
               parameter.kind);
    }
  }

  void check_device() const {
    for (const Given& each : given_) {
      const Given& first = given_.front();
      RL_CHECK(each.tensor.device().is_cuda(), kernel_, each.label, ": expected a tensor on a GPU, got one on the CPU");
      RL_CHECK(each.tensor.device() == first.tensor.device(), kernel_, each.label, ": expected a tensor on ",
               to_string(first.tensor.device()), " as ", first.label, " is, got one on ",
               to_string(each.tensor.device()));
    }
  }

  Tensors tensors(bool written) const {
    Tensors found;
    for (const Given& each : given_)
      if (each.is_written == written) found.push_back(each.tensor);
    return found;
  }

  void** places() { return places_.data(); }

 private:
  // A tensor of one element could be converted too, but its value may be on a GPU.
  static bool is_integer(const py::handle& value) {
    return PyIndex_Check(value.ptr()) && !py::isinstance<Tensor>(value);
  }
  static bool is_real(const py::handle& value) {
    return is_integer(value) || (py::hasattr(value, "__float__") && !py::isinstance<Tensor>(value));
  }

  template <class T>
  void put(size_t place, T value) {
    std::memcpy(&values_[place], &value, sizeof value);
  }

  [[noreturn]] void refuse(const Parameter& parameter, const char* expected, const py::handle& value) const {
    throw std::invalid_argument(message("[", kernel_, "] ", parameter.label, ": expected ", expected, ", got ",
                                        Py_TYPE(value.ptr())->tp_name, " ", text_of(py::repr(value))));
  }

  void* address(const Parameter& parameter, const Tensor& tensor) {
    RL_CHECK(!parameter.dtype || tensor.dtype() == *parameter.dtype, kernel_, parameter.label, ": expected a ",
             rooflab::name(*parameter.dtype), " tensor, got ", rooflab::name(tensor.dtype()));
    given_.push_back({parameter.label, tensor, parameter.is_written});
    return tensor.data();
  }

  void set_integer(size_t place, const Parameter& parameter, const py::handle& value) {
    if (!is_integer(value)) refuse(parameter, "an integer", value);
    const py::int_ number = py::reinterpret_steal<py::int_>(PyNumber_Index(value.ptr()));
    int overflow = 0;
    const int64_t as_signed = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    const int bits = 8 * parameter.bytes;
    uint64_t word = static_cast<uint64_t>(as_signed);
    bool fits = overflow == 0;
    if (parameter.is_signed) {
      fits = fits && as_signed == as_signed << (64 - bits) >> (64 - bits);
    } else {
      if (overflow > 0) word = PyLong_AsUnsignedLongLong(number.ptr());
      fits = !PyErr_Occurred() && (overflow > 0 || (fits && as_signed >= 0)) && (bits == 64 || word >> bits == 0);
      PyErr_Clear();
    }
    RL_CHECK(fits, kernel_, parameter.label, ": ", text_of(py::repr(value)), " does not fit into ", bits,
             parameter.is_signed ? " bits" : " unsigned bits");
    put(place, word);
  }

  const std::string& kernel_;
  std::vector<uint64_t> values_;
  std::vector<void*> places_;
  struct Given {
    std::string_view label;
    Tensor tensor;
    bool is_written;
  };
  std::vector<Given> given_;
};

struct KernelObject {
  cuda::Kernel kernel;
  std::vector<Parameter> parameters;

  void operator()(const py::object& grid, const py::object& block, const py::args& args, int64_t shared_bytes,
                  const std::optional<Cost>& cost) {
    const std::string& name = kernel.name();
    if (args.size() != parameters.size()) {
      std::string labels;
      for (const Parameter& parameter : parameters) labels += (labels.empty() ? "" : ", ") + parameter.label;
      RL_CHECK(false, name, "expected ", parameters.size(), " arguments (", labels, "), got ", args.size());
    }
    RL_CHECK(shared_bytes >= 0, name, "shared_bytes: expected >= 0, got ", shared_bytes);
    const LaunchShape shape{to_dimensions(name, "grid", grid), to_dimensions(name, "block", block), shared_bytes};
    Arguments arguments(name, parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) arguments.set(i, parameters[i], args[i]);
    if (!cuda::is_available()) throw CudaError(message("[", name, "] cannot launch: ", cuda::unavailable()));
    arguments.check_device();
    launch_custom(kernel, shape, arguments.places(), arguments.tensors(false), arguments.tensors(true),
                  cost.value_or(Cost{}));
  }
};

}  // namespace

void register_cuda_module(py::module_& m) {
  py::module_ cuda = m.attr("cuda").cast<py::module_>();
  cuda.def(
      "compile_source",
      [](const std::string& source, const std::vector<std::string>& options, const cuda::Headers& headers) {
        const cuda::Compilation made = run_without_gil([=] { return cuda::compile(source, options, headers); });
        const auto size = static_cast<Py_ssize_t>(made.log.size());
        const auto log = py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(made.log.data(), size, "replace"));
        return py::make_tuple(log, py::bytes(made.image), made.ptx);
      },
      py::arg("source"), py::arg("options"), py::arg("headers") = cuda::Headers{},
      "(log, machine code, PTX) of CUDA C++, by NVRTC; no machine code when the source has errors. headers: what it "
      "may\n"
      "include besides files, as (name, text).");
  cuda.def("demangle", &cuda::demangle, py::arg("symbol"), "The source form of a mangled C++ symbol.");

  cuda.def(
      "launch_on_cpu",
      [](const std::string& kernel, const py::function& run, const Tensors& written, const Cost& cost) {
        launch_custom_on_cpu(
            kernel, [&] { run(); }, written, cost);
      },
      py::arg("kernel"), py::arg("run"), py::arg("written"), py::arg("cost"),
      "Calls run(), which runs a kernel that may write those tensors, and counts one launch of op \"custom\".");

  py::class_<cuda::Module, std::shared_ptr<cuda::Module>>(cuda, "Code", "Machine code that was compiled at run time.")
      .def(py::init([](const py::bytes& image) { return std::make_shared<cuda::Module>(std::string(image)); }),
           py::arg("image"));

  py::class_<Parameter>(cuda, "Parameter", "One parameter of a kernel.")
      .def(py::init([](std::string label, std::string kind, int bytes, bool is_signed, const py::object& dtype,
                       bool is_written) {
             std::optional<DType> known;
             if (!dtype.is_none()) known = to_dtype(dtype);
             return Parameter{std::move(label), std::move(kind), bytes, is_signed, known, is_written};
           }),
           py::arg("label"), py::arg("kind"), py::arg("bytes"), py::arg("is_signed") = true,
           py::arg("dtype") = py::none(), py::arg("is_written") = true)
      .def_readonly("label", &Parameter::label)
      .def_readonly("kind", &Parameter::kind)
      .def_readonly("bytes", &Parameter::bytes)
      .def_readonly("is_signed", &Parameter::is_signed)
      .def_readonly("is_written", &Parameter::is_written,
                    "Whether the kernel may write where it points: it is no pointer to const.")
      .def_property_readonly(
          "dtype", [](const Parameter& self) { return self.dtype ? py::object(from_dtype(*self.dtype)) : py::none(); })
      .def("__repr__", [](const Parameter& self) { return self.label; });

  py::class_<KernelObject>(cuda, "Kernel", "A __global__ function: kernel(grid, block, *args) launches it.")
      .def(py::init([](const std::shared_ptr<cuda::Module>& code, std::string symbol, const std::string& name,
                       std::vector<Parameter> parameters) {
             return KernelObject{cuda::Kernel(code, std::move(symbol), name), std::move(parameters)};
           }),
           py::arg("code"), py::arg("symbol"), py::arg("name"), py::arg("parameters"))
      .def_property_readonly("name", [](const KernelObject& self) { return self.kernel.name(); })
      .def_readonly("parameters", &KernelObject::parameters)
      .def(
          "__call__", &KernelObject::operator(), py::arg("grid"), py::arg("block"), py::kw_only(),
          py::arg("shared_bytes") = 0, py::arg("cost") = py::none(),
          "Launches on the current stream of the GPU that the tensors are on; counted as one launch of op "
          "\"custom\".\n\n"
          "grid and block are one to three numbers. A tensor is passed as the address of its first element, None as a\n"
          "null pointer; the caller passes strides. The dynamic shared memory, shared_bytes, may exceed 48 KB.")
      .def("__repr__", [](const KernelObject& self) {
        std::string labels;
        for (const Parameter& parameter : self.parameters) labels += (labels.empty() ? "" : ", ") + parameter.label;
        return message("Kernel ", self.kernel.name(), "(", labels, ")");
      });
}

}  // namespace rooflab
