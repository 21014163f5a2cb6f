#include "bindings/bindings.h"
#include "core/cpu_isa.h"
#include "core/zero_division.h"
#include "ops/trace.h"

PYBIND11_MODULE(_core, m) {
  using namespace rooflab;
  cpu_isa();  // a build without code for this CPU cannot be imported
  m.doc() = "The native half of rooflab. Use it through `import rooflab`.";
  py::register_exception<OutOfMemory>(m, "OutOfMemoryError", PyExc_MemoryError).attr("__doc__") =
      "The device has no memory left; the message says what was asked for, and which ops hold how much.";
  py::register_exception<CudaError>(m, "CudaError", PyExc_RuntimeError).attr("__doc__") =
      "A CUDA call or library failed or is missing.";
  py::register_local_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const ZeroDivision& zero) {
      py::set_error(PyExc_ZeroDivisionError, zero.what());
    } catch (const WithoutMemory& wrong) {
      Trace::note_error(wrong.what());
      throw;
    } catch (const py::buffer_error& wrong) {
      Trace::note_error(wrong.what());
      throw;
    }
  });
  register_no_gil();
  register_dtype(m);
  py::class_<Tensor> tensor(m, "Tensor", "An n-dimensional array on one device; copies and views share its memory.",
                            tensor_type());
  register_tensor(m, tensor);
  register_operators(tensor);
  register_protocols(m, tensor);
  register_autograd(m, tensor);
  register_arrays(m, tensor);
  register_dlpack(m, tensor);
  register_ops(m, tensor);
  register_indexing(m, tensor);
  register_order(m, tensor);
  register_nn(m, tensor);
  register_training(m);
  register_autocast(m);
  register_statistics(m, tensor);
  register_factories(m);
  register_attention(m);
  register_backward(m);
  register_gemma3(m);
  register_counters(m);
  register_graph(m);
  register_compiler(m);
  register_memory(m);
  register_cuda(m);
  register_cuda_module(m);
  register_profiler(m);
  adopt_functions(m);
}
