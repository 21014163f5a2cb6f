#include "bindings/bindings.h"
#include "core/memory.h"

namespace rooflab {

void register_memory(py::module_& m) {
  py::module_ memory = m.def_submodule("memory", "Bytes held by tensors, exact and the same on every run.");
  py::class_<memory::BlockInfo>(memory, "Block", "One live allocation.")
      .def_readonly("op", &memory::BlockInfo::op, "The op that allocated it; '' for tensors made by the user.")
      .def_readonly("bytes", &memory::BlockInfo::bytes)
      .def("__repr__",
           [](const memory::BlockInfo& b) { return message("Block(op='", b.op, "', bytes=", b.bytes, ")"); });
  const py::arg_v device = py::arg("device") = "cpu";
  memory.def("allocated", &memory::allocated, device, "Bytes in live tensors.");
  memory.def("peak", &memory::peak, device, "Highest `allocated` since `reset_peak`.");
  memory.def("reset_peak", &memory::reset_peak, device);
  memory.def("reserved", &memory::reserved, device, "Bytes taken from the system, cached blocks included.");
  memory.def("empty_cache", &memory::empty_cache, device, "Gives cached blocks back to the system.");
  memory.def("snapshot", &memory::snapshot, device, "Every live allocation, oldest first.");
}

}  // namespace rooflab
