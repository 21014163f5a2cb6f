#include "bindings/bindings.h"
#include "bindings/by_reference.h"
#include "ops/trace.h"
#include "profiler/nvtx.h"
#include "profiler/session.h"

namespace rooflab {
namespace {

using profiler::HostRecord;
using profiler::KernelRecord;
using profiler::RangeRecord;
using profiler::Session;
using profiler::StepRecord;

py::dict to_dict(const KernelRecord& kernel) {
  using namespace py::literals;
  return py::dict("name"_a = kernel.name, "op"_a = kernel.op, "kernel"_a = kernel.kernel, "range"_a = kernel.range,
                  "device"_a = to_string(kernel.device), "stream"_a = kernel.stream, "thread"_a = kernel.thread,
                  "id"_a = kernel.id, "step"_a = kernel.step, "start_ns"_a = kernel.start_ns,
                  "duration_ns"_a = kernel.duration_ns, "grid"_a = py::tuple(py::cast(kernel.grid)),
                  "block"_a = py::tuple(py::cast(kernel.block)), "shared_bytes"_a = kernel.shared_bytes,
                  "registers"_a = kernel.registers, "cost"_a = kernel.cost, "dtype"_a = name(kernel.dtype));
}

py::dict to_dict(const RangeRecord& range) {
  using namespace py::literals;
  return py::dict("path"_a = range.path, "thread"_a = range.thread, "step"_a = range.step,
                  "start_ns"_a = range.start_ns, "duration_ns"_a = range.duration_ns, "ended"_a = range.ended);
}

py::dict to_dict(const HostRecord& host) {
  using namespace py::literals;
  return py::dict("kind"_a = host.kind, "name"_a = host.name, "range"_a = host.range,
                  "device"_a = host.launch ? to_string(host.device) : "", "thread"_a = host.thread,
                  "step"_a = host.step, "start_ns"_a = host.start_ns, "duration_ns"_a = host.duration_ns,
                  "launch"_a = host.launch, "shapes"_a = host.shapes, "stack"_a = host.stack);
}

py::dict to_dict(const StepRecord& step) {
  using namespace py::literals;
  return py::dict("number"_a = step.number, "start_ns"_a = step.start_ns, "duration_ns"_a = step.duration_ns);
}

template <class Record>
py::list to_list(const std::vector<Record>& records) {
  py::list list;
  for (const Record& record : records) list.append(to_dict(record));
  return list;
}

void refuse_trace() {
  Trace::refuse("profile", "a recorded function is not run, so nothing would be profiled; profile around its call");
}

}  // namespace

void register_profiler(py::module_& m) {
  m.def("take_stacks", &take_stacks, py::arg("source"),
        "From here on each call is noted with the number that `source()` gives the stack of its caller; None ends it.");
  profiler::show_ranges_to_nvtx();
  py::class_<Session>(m, "ProfilerSession", "Records the kernels of its steps; rooflab.profile() is built on it.")
      .def(py::init<std::string, bool, bool>(), py::arg("source") = "auto", py::arg("hears_host") = true,
           py::arg("wants_shapes") = false)
      .def_static("has_nvtx", &profiler::has_nvtx, "Whether tools such as Nsight Systems can see ranges.")
      .def("start",
           [](Session& self) {
             refuse_trace();
             self.start();
           })
      .def("stop", by_reference(&Session::stop))
      .def(
          "begin_step",
          [](Session& self, int number) {
            refuse_trace();
            self.begin_step(number);
          },
          py::arg("number"))
      .def("end_step",
           [](Session& self) {
             refuse_trace();
             self.end_step();
           })
      .def("kernels", [](const Session& self) { return to_list(self.kernels()); })
      .def("ranges", [](const Session& self) { return to_list(self.ranges()); })
      .def("steps", [](const Session& self) { return to_list(self.steps()); })
      .def("host", [](const Session& self) { return to_list(self.host()); })
      .def_property_readonly("dropped", by_reference(&Session::dropped))
      .def_property_readonly("unfinished", by_reference(&Session::unfinished))
      .def_property_readonly("without_memory", by_reference(&Session::without_memory))
      .def_property_readonly("source", by_reference(&Session::source))
      .def_property_readonly("reason", by_reference(&Session::reason));
}

}  // namespace rooflab
