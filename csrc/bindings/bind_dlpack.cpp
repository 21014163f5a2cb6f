// DLPack in both directions: tensors move to PyTorch, CuPy, JAX and back without a copy.
#include "bindings/bindings.h"
#include "bindings/dlpack.h"
#include "core/cuda_runtime.h"

namespace rooflab {
namespace {

constexpr const char* kFresh = "dltensor";
constexpr const char* kUsed = "used_dltensor";

dlpack::DataType to_dlpack(DType dtype) {
  uint8_t code = is_floating(dtype) ? dlpack::kFloat : dlpack::kInt;
  if (dtype == DType::kBFloat16) code = dlpack::kBfloat;
  if (dtype == DType::kBool) code = dlpack::kBool;
  return {code, static_cast<uint8_t>(size_of(dtype) * 8), 1};
}

DType from_dlpack(dlpack::DataType type) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const auto dtype = static_cast<DType>(i);
    const dlpack::DataType known = to_dlpack(dtype);
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return dtype;
  }
  throw std::invalid_argument(message("[from_dlpack] dtype: no rooflab type for DLPack code ", int{type.code}, " with ",
                                      int{type.bits}, " bits"));
}

dlpack::Device dlpack_device(const Tensor& self) {
  if (self.device().is_meta())
    throw py::buffer_error("[__dlpack__] a tensor on " + to_string(self.device()) + " has no data");
  return {self.device().is_cpu() ? dlpack::kCpu : dlpack::kCuda, self.device().index};
}

// What a capsule owns: the tensor, and its sizes in a form that DLPack can point to.
struct Exported {
  Tensor tensor;
  Shape shape, strides;
  dlpack::ManagedTensor managed;
};

// The consumer's work on its stream runs after what is queued here so far, and before the memory is reused.
void hand_over(const Tensor& self, const py::object& stream) {
  if (!self.device().is_cuda()) {
    RL_CHECK(stream.is_none(), "__dlpack__", "stream: expected None for a tensor on ", to_string(self.device()));
    return;
  }
  const auto number = stream.is_none() ? intptr_t{1} : stream.cast<intptr_t>();
  RL_CHECK(number >= -1 && number != 0, "__dlpack__", "stream: expected a stream, or -1 for no order, got ", number);
  const Stream consumer = dlpack::stream_of(number);
  const int device = self.device().index;
  if (number != -1) cuda::wait(consumer, cuda::current_stream(device), device);
  self.storage()->use(consumer);
}

py::capsule export_capsule(const Tensor& self, const py::kwargs& options) {
  note_host_read("dlpack", self);
  RL_CHECK(!autograd::requires_grad(self), "__dlpack__", "the tensor requires grad; call .detach() first");
  const dlpack::Device device = dlpack_device(self);
  if (options.contains("copy") && py::bool_(options["copy"]))
    throw py::buffer_error("[__dlpack__] copy=True is not offered; clone() the tensor");
  const py::object wanted = options.contains("dl_device") ? py::object(options["dl_device"]) : py::none();
  if (!wanted.is_none() && !wanted.equal(py::make_tuple(device.type, device.id)))
    throw py::buffer_error("[__dlpack__] dl_device: expected None or the tensor's own device, " +
                           to_string(self.device()) + "; move it by .to()");
  hand_over(self, options.contains("stream") ? py::object(options["stream"]) : py::none());
  auto* out = new Exported{self, self.shape(), self.strides(), {}};
  out->managed.tensor = {self.data(),          device, self.ndim(), to_dlpack(self.dtype()), out->shape.begin(),
                         out->strides.begin(), 0};
  out->managed.context = out;
  out->managed.deleter = [](dlpack::ManagedTensor* managed) { delete static_cast<Exported*>(managed->context); };
  PyObject* capsule = PyCapsule_New(&out->managed, kFresh, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, kFresh)) return;  // the consumer took it over
    auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(self, kFresh));
    managed->deleter(managed);
  });
  return py::reinterpret_steal<py::capsule>(capsule);
}

// The producer makes this thread's current stream wait for what it has queued.
py::object take_over(const py::object& source) {
  using namespace py::literals;
  const auto [type, id] = source.attr("__dlpack_device__")().cast<std::pair<int, int>>();
  if (type != dlpack::kCuda) return source.attr("__dlpack__")();
  const cuda::OnDevice scope(id);  // PyTorch exports from its current GPU alone
  return source.attr("__dlpack__")("stream"_a = dlpack::stream_number(cuda::current_stream(id)));
}

Tensor import_tensor(const py::object& source) {
  py::object capsule = source;
  if (!PyCapsule_CheckExact(source.ptr())) {
    if (!py::hasattr(source, "__dlpack__"))
      throw py::type_error("[from_dlpack] expected an object with __dlpack__, got " + type_name(source));
    capsule = take_over(source);
  }
  RL_CHECK(PyCapsule_IsValid(capsule.ptr(), kFresh), "from_dlpack", "the capsule was used before");
  auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kFresh));
  const dlpack::Tensor& in = managed->tensor;
  const DType dtype = from_dlpack(in.dtype);
  const bool is_cpu = in.device.type == dlpack::kCpu || in.device.type == dlpack::kCudaHost;
  RL_CHECK(is_cpu || in.device.type == dlpack::kCuda, "from_dlpack", "device: expected cpu or cuda, got type ",
           in.device.type);
  Device device;
  if (!is_cpu) {
    cuda::check_device(in.device.id);
    device = {Device::Type::kCuda, static_cast<int8_t>(in.device.id)};
  }
  RL_CHECK(in.ndim >= 0 && (in.ndim == 0 || in.shape), "from_dlpack", "ndim: expected >= 0 and as many sizes, got ",
           in.ndim);
  const Shape shape(in.shape, in.shape + in.ndim);
  const Shape strides = in.strides ? Shape(in.strides, in.strides + in.ndim) : contiguous_strides(shape);
  void* data = static_cast<char*>(in.data) + in.byte_offset;
  RL_CHECK(is_cpu || reinterpret_cast<uintptr_t>(data) % size_of(dtype) == 0, "from_dlpack",
           "data: expected an address that is a multiple of ", size_of(dtype), " bytes, the size of an element");
  RL_CHECK(data || numel(shape) == 0, "from_dlpack", "data: expected memory, got none for shape ", shape);
  auto storage = std::make_shared<Storage>(data, device, [managed] {
    if (managed->deleter) managed->deleter(managed);
  });
  PyCapsule_SetName(capsule.ptr(), kUsed);
  const Tensor made(std::move(storage), data, shape, strides, dtype);
  RL_CHECK(dtype != DType::kBool || !is_cpu || are_bools(made), "from_dlpack", "bool: expected bytes of 0 and 1");
  return made;
}

}  // namespace

void register_dlpack(py::module_& m, py::class_<Tensor>& tensor) {
  tensor.def("__dlpack__", [](const Tensor& self, const py::kwargs& options) { return export_capsule(self, options); })
      .def("__dlpack_device__", [](const Tensor& self) {
        const dlpack::Device device = dlpack_device(self);
        return py::make_tuple(device.type, device.id);
      });
  m.def("from_dlpack", &import_tensor, py::arg("source"),
        R"doc(A tensor that shares the memory of another library's array, by DLPack.

Parameters
----------
source : object
    An array with __dlpack__, of NumPy, PyTorch, CuPy, JAX; or a capsule.

Returns
-------
Tensor
    Of the array's shape, strides, dtype and device. A write to one is seen in the other.

Raises
------
ValueError
    For a dtype or device that rooflab lacks, and a capsule that was used before.
TypeError
    For an object without __dlpack__.

Examples
--------
>>> array = np.zeros(2, np.float32)
>>> rl.from_dlpack(array).fill_(7).tolist(), array.tolist()
([7.0, 7.0], [7.0, 7.0]))doc");
}

}  // namespace rooflab
