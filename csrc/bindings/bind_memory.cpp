#include "bindings/bindings.h"
#include "bindings/by_reference.h"
#include "bindings/docs_memory.h"
#include "bindings/unrecorded.h"
#include "core/memory.h"
#include "ops/trace.h"
#include "profiler/memory_recorder.h"

namespace rooflab {
namespace {

using profiler::MemoryRecorder;

py::list blocks(const MemoryRecorder& recorder) {
  py::list list;
  for (const profiler::MemoryBlock& block : recorder.blocks())
    list.append(
        py::make_tuple(block.op, block.range, to_string(block.device), block.bytes, block.is_scratch, block.stack));
  return list;
}

py::list events(const MemoryRecorder& recorder) {
  py::list list;
  for (const profiler::MemoryEvent& event : recorder.events())
    list.append(py::make_tuple(event.time_ns, event.block, event.freed));
  return list;
}

}  // namespace

void register_memory(py::module_& m) {
  py::module_ memory = m.def_submodule("memory", "Bytes held by tensors, exact and the same on every run.");
  py::class_<memory::BlockInfo>(memory, "Block", "One live allocation.")
      .def_readonly("op", &memory::BlockInfo::op, "The op that allocated it; '' for tensors made by the user.")
      .def_readonly("bytes", &memory::BlockInfo::bytes)
      .def("__repr__",
           [](const memory::BlockInfo& b) { return message("Block(op='", b.op, "', bytes=", b.bytes, ")"); });
  const py::arg_v device = py::arg("device") = "cpu";
  memory.def("allocated", unrecorded("memory.allocated", &memory::allocated), device, kAllocatedDoc);
  memory.def("peak", unrecorded("memory.peak", &memory::peak), device, kPeakDoc);
  memory.def("reset_peak", unrecorded("memory.reset_peak", &memory::reset_peak), device, kResetPeakDoc);
  memory.def("reserved", unrecorded("memory.reserved", &memory::reserved), device, kReservedDoc);
  memory.def("available", unrecorded("memory.available", &memory::available), device, kAvailableDoc);
  memory.def("empty_cache", unrecorded("memory.empty_cache", &memory::empty_cache), device, py::arg("keep_bytes") = 0,
             kEmptyCacheDoc);
  memory.def("set_limit", unrecorded("memory.set_limit", &memory::set_limit), py::arg("bytes"), device, kSetLimitDoc);
  memory.def("snapshot", unrecorded("memory.snapshot", &memory::snapshot), device, kSnapshotDoc);

  py::class_<MemoryRecorder>(memory, "Recorder",
                             "Records every allocation and free; rooflab.memory.record() is built on it.")
      .def(py::init<std::optional<Device>>(), py::arg("device") = py::none())
      .def("start",
           [](MemoryRecorder& self) {
             Trace::refuse(
                 "memory",
                 "a recorded function is not run, so its memory could not be recorded; record around its call");
             self.start();
           })
      .def("stop", by_reference(&MemoryRecorder::stop))
      .def_property_readonly("resident_bytes", by_reference(&MemoryRecorder::resident_bytes),
                             "Bytes in tensors at the start.")
      .def_property_readonly("live_bytes", by_reference(&MemoryRecorder::live_bytes),
                             "Bytes held above `resident_bytes`, now or at the stop.")
      .def_property_readonly("peak_bytes", by_reference(&MemoryRecorder::peak_bytes),
                             "The highest value of `live_bytes`.")
      .def_property_readonly("duration_ns", by_reference(&MemoryRecorder::duration_ns))
      .def_property_readonly("dropped", by_reference(&MemoryRecorder::dropped))
      .def("blocks", &blocks, "(op, range, device, bytes, is_scratch, stack) of each block.")
      .def("events", &events, "(time_ns, block, freed) of each event, in order.");
}

}  // namespace rooflab
