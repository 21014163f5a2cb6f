#include "bindings/bindings.h"
#include "core/cuda_runtime.h"
#include "core/dynamic_library.h"
#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"

namespace rooflab {
namespace {

// A queue of work on one GPU; `with stream:` makes it the current one.
struct StreamObject {
  explicit StreamObject(int device) : device(device), stream(cuda::create_stream(device)) {}
  ~StreamObject() { cuda::destroy_stream(stream); }
  int device;
  Stream stream;
  std::vector<Stream> previous;
};

}  // namespace

void register_cuda(py::module_& m) {
  py::module_ cuda = m.def_submodule("cuda", "The GPU: what there is, streams, events.");
  const py::arg_v device = py::arg("device") = 0;
  cuda.def("is_available", &cuda::is_available, "Whether this build has CUDA and the machine a driver and a GPU.");
  cuda.def("unavailable_reason", &cuda::unavailable, "Why not, in a sentence; '' when available.");
  cuda.def("device_count", &cuda::device_count);
  cuda.def("synchronize", py::overload_cast<int>(&cuda::synchronize), device, "Waits for all work queued on the GPU.");
  cuda.def("free_memory", &cuda::free_memory, device, "Bytes that the GPU can still give.");
  cuda.def(
      "launch_empty", [](int device) { cuda::launch_empty(cuda::current_stream(device)); }, device,
      "Launches a kernel that does nothing, for measuring what a launch costs.");

  py::class_<cuda::Properties>(cuda, "Properties")
      .def_readonly("name", &cuda::Properties::name)
      .def_readonly("compute_capability", &cuda::Properties::compute_capability, "90 for sm_90.")
      .def_readonly("sm_count", &cuda::Properties::sm_count)
      .def_readonly("memory_bytes", &cuda::Properties::memory_bytes)
      .def_readonly("l2_bytes", &cuda::Properties::l2_bytes)
      .def_readonly("shared_memory_per_block_optin", &cuda::Properties::shared_memory_per_block_optin)
      .def_readonly("driver_version", &cuda::Properties::driver_version)
      .def_readonly("runtime_version", &cuda::Properties::runtime_version);
  cuda.def("properties", &cuda::properties, device, py::return_value_policy::reference);

  py::class_<StreamObject>(cuda, "Stream", "A queue of work; `with rl.cuda.Stream():` submits to it.")
      .def(py::init<int>(), device)
      .def_property_readonly("cuda_stream",
                             [](const StreamObject& self) { return reinterpret_cast<uintptr_t>(self.stream.handle); })
      .def("synchronize", [](const StreamObject& self) { cuda::synchronize(self.stream); })
      .def(
          "__enter__",
          [](StreamObject& self) -> StreamObject& {
            self.previous.push_back(cuda::current_stream(self.device));
            cuda::set_current_stream(self.device, self.stream);
            return self;
          },
          py::return_value_policy::reference)
      .def("__exit__", [](StreamObject& self, const py::args&) {
        cuda::set_current_stream(self.device, self.previous.back());
        self.previous.pop_back();
      });

  py::class_<cuda::Event>(cuda, "Event", "A point in a stream's time.")
      .def(py::init<>())
      .def(
          "record",
          [](cuda::Event& self, const StreamObject* stream) {
            self.record(stream ? stream->stream : cuda::current_stream(0));
          },
          py::arg("stream") = py::none())
      .def("synchronize", &cuda::Event::synchronize)
      .def("elapsed_ms", &cuda::Event::elapsed_ms, py::arg("later"), "Milliseconds from this event to `later`.");

  m.def("add_library_directory", &add_library_directory, py::arg("path"),
        "A folder in which CUDA libraries are looked for before the system's own.");
  m.def(
      "cpu_isa",
      [] {
        constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
        return kNames[static_cast<int>(kernels::cpu_isa())];
      },
      "The instruction set that CPU kernels use here.");
  m.def("num_threads", &omp_get_max_threads, "CPU threads that kernels use.");
  m.def(
      "set_num_threads",
      [](int threads) {
        RL_CHECK(threads >= 1, "set_num_threads", "threads: expected >= 1, got ", threads);
        omp_set_num_threads(threads);
      },
      py::arg("threads"));
}

}  // namespace rooflab
