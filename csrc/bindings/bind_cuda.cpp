#include "bindings/bindings.h"
#include "bindings/by_reference.h"
#include "bindings/docs_cuda.h"
#include "bindings/unrecorded.h"
#include "core/context.h"
#include "core/cpu_isa.h"
#include "core/cuda_runtime.h"
#include "core/dynamic_library.h"
#include "core/threads.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

// A queue of work on one GPU; `with stream:` makes it the current one.
struct StreamObject {
  explicit StreamObject(int device) : device(device), stream(cuda::create_stream(device)) {}
  ~StreamObject() { cuda::destroy_stream(stream); }
  StreamObject(const StreamObject&) = delete;
  StreamObject& operator=(const StreamObject&) = delete;
  const int device;
  const Stream stream;
};

void enter(const py::object& self) {
  const auto& [device, stream] = self.cast<const StreamObject&>();
  context().entered_streams.push_back({self.ptr(), cuda::current_stream(device)});
  self.inc_ref();
  cuda::set_current_stream(device, stream);
}

void exit(const py::object& self) {
  std::vector<EnteredStream>& entered = context().entered_streams;
  if (entered.empty() || entered.back().object != self.ptr())
    throw std::runtime_error("[stream] this thread has not entered it, or another one since");
  cuda::set_current_stream(self.cast<const StreamObject&>().device, entered.back().previous);
  entered.pop_back();
  self.dec_ref();
}

}  // namespace

void register_cuda(py::module_& m) {
  py::module_ cuda = m.def_submodule("cuda", "The GPU: what there is, streams, events.");
  const py::arg_v device = py::arg("device") = 0;
  cuda.def("is_available", &cuda::is_available, kIsAvailableDoc);
  cuda.def("unavailable_reason", &cuda::unavailable, kUnavailableReasonDoc);
  cuda.def("device_count", &cuda::device_count, kDeviceCountDoc);
  cuda.def("synchronize", unrecorded("synchronize", without_gil([](int device) {
                                       const OpScope wait("synchronize", OpScope::kWait);
                                       cuda::synchronize(device);
                                       cuda::raise_out_of_range(device);
                                     })),
           device, kSynchronizeDoc);
  cuda.def("free_memory", unrecorded("free_memory", &cuda::free_memory), device, kFreeMemoryDoc);
  cuda.def("launch_empty",
           unrecorded("launch_empty",
                      [](int device) {
                        const cuda::OnDevice scope(device);
                        cuda::launch_empty(cuda::current_stream(device));
                      }),
           device, kLaunchEmptyDoc);

  py::class_<cuda::Properties>(cuda, "Properties")
      .def_readonly("name", &cuda::Properties::name)
      .def_readonly("compute_capability", &cuda::Properties::compute_capability, "90 for sm_90.")
      .def_readonly("sm_count", &cuda::Properties::sm_count)
      .def_readonly("memory_bytes", &cuda::Properties::memory_bytes)
      .def_readonly("l2_bytes", &cuda::Properties::l2_bytes)
      .def_readonly("shared_memory_per_block_optin", &cuda::Properties::shared_memory_per_block_optin)
      .def_readonly("driver_version", &cuda::Properties::driver_version)
      .def_readonly("runtime_version", &cuda::Properties::runtime_version);
  cuda.def("properties", &cuda::properties, device, py::return_value_policy::reference, kPropertiesDoc);

  py::class_<StreamObject>(cuda, "Stream", kStreamDoc)
      .def(py::init<int>(), device)
      .def_readonly("device", &StreamObject::device, kStreamDeviceDoc)
      .def_property_readonly(
          "cuda_stream", [](const StreamObject& self) { return reinterpret_cast<uintptr_t>(self.stream.handle); },
          kCudaStreamDoc)
      .def("synchronize", unrecorded("synchronize", without_gil([](const StreamObject& self) {
                                       const OpScope wait("synchronize stream", OpScope::kWait);
                                       cuda::synchronize(self.stream, self.device);
                                       cuda::raise_out_of_range(self.device);
                                     })),
           kStreamSynchronizeDoc)
      .def("__enter__", unrecorded("stream",
                                   [](const py::object& self) {
                                     enter(self);
                                     return self;
                                   }))
      .def("__exit__", [](const py::object& self, const py::args&) { exit(self); });

  const auto elapsed_ms = unrecorded("event", without_gil([](const cuda::Event& self, const cuda::Event& later) {
                                       const double milliseconds = self.elapsed_ms(later);
                                       cuda::raise_out_of_range(self.device());
                                       return milliseconds;
                                     }));
  py::class_<cuda::Event>(cuda, "Event", kEventDoc)
      .def(py::init([](int device, bool) { return cuda::Event(device); }), device, py::arg("enable_timing") = true)
      .def_property_readonly("device", by_reference(&cuda::Event::device), kEventDeviceDoc)
      .def(
          "record",
          [](cuda::Event& self, const StreamObject* stream) {
            Trace::refuse("event", "a recorded function is not run, so it has no times; record events around its call");
            RL_CHECK(!stream || stream->device == self.device(), "event",
                     "stream: expected one of cuda:", self.device(), ", got one of cuda:", stream->device);
            self.record(stream ? stream->stream : cuda::current_stream(self.device()));
          },
          py::arg("stream") = py::none(), kRecordDoc)
      .def("synchronize", unrecorded("synchronize", without_gil([](const cuda::Event& self) {
                                       const OpScope wait("synchronize event", OpScope::kWait);
                                       self.synchronize();
                                       cuda::raise_out_of_range(self.device());
                                     })),
           kEventSynchronizeDoc)
      .def("elapsed_ms", elapsed_ms, py::arg("later"), kElapsedDoc)
      .def("elapsed_time", elapsed_ms, py::arg("end_event"), kElapsedTimeDoc);

  m.def("add_library_directory", &add_library_directory, py::arg("path"),
        "Adds a folder that is searched for CUDA libraries before the system's own.");
  m.def(
      "cpu_isa", [] { return name(cpu_isa()); }, R"doc(The instruction set that CPU kernels use here.

Returns
-------
str
    "avx512_bf16", "avx512", "avx2", "neon_bf16", "neon" or "baseline".

Examples
--------
>>> rl.cpu_isa().partition("_")[0] in ("avx512", "avx2", "neon", "baseline")
True)doc");
  m.def("set_cpu_isa", unrecorded("set_cpu_isa", &set_cpu_isa), py::arg("isa"),
        R"doc(Makes CPU kernels use another instruction set, for tests and comparisons.

Parameters
----------
isa : str
    "baseline", "avx2" ..., as far as this CPU can run it and kernels are compiled for it.

Raises
------
ValueError
    For any other; the error lists those that can be used.

Examples
--------
>>> best = rl.cpu_isa()
>>> rl.set_cpu_isa(best)
>>> rl.cpu_isa() == best
True)doc");
  m.def("num_threads", &num_threads, R"doc(How many CPU threads kernels use.

Returns
-------
int
    1 or more.

Examples
--------
>>> rl.num_threads() >= 1
True)doc");
  m.def("set_num_threads",
        unrecorded("set_num_threads",
                   [](int threads) {
                     RL_CHECK(threads >= 1, "set_num_threads", "threads: expected >= 1, got ", threads);
                     set_num_threads(threads);
                   }),
        py::arg("threads"), R"doc(Makes kernels use that many CPU threads.

Parameters
----------
threads : int
    1 or more.

Raises
------
ValueError
    For fewer than 1.

Examples
--------
>>> before = rl.num_threads()
>>> rl.set_num_threads(1)
>>> rl.num_threads()
1
>>> rl.set_num_threads(before))doc");
}

}  // namespace rooflab
