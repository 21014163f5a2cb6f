#include "bindings/bindings.h"

PYBIND11_MODULE(_core, m) {
  using namespace rooflab;
  m.doc() = "The native half of rooflab. Use it through `import rooflab`.";
  py::register_exception<OutOfMemory>(m, "OutOfMemoryError", PyExc_MemoryError);
  py::register_exception<CudaError>(m, "CudaError", PyExc_RuntimeError);
  register_dtype(m);
  py::class_<Tensor> tensor(m, "Tensor", "An n-dimensional array on one device; copies and views share its memory.");
  register_tensor(m, tensor);
  register_arrays(m, tensor);
  register_dlpack(m, tensor);
  register_ops(m, tensor);
  register_counters(m);
  register_memory(m);
  register_cuda(m);
  register_profiler(m);
}
