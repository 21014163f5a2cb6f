#include "bindings/bindings.h"
#include "bindings/by_reference.h"
#include "core/cuda_runtime.h"
#include "ops/graph.h"

namespace rooflab {
namespace {

struct Capture {
  py::object graph;
  Graph& get() const { return graph.cast<Graph&>(); }
};

constexpr const char* kDoc =
    R"(Ops that are captured once and replayed by one host call each time.

device: where the captured ops run. None means the GPU if there is one, otherwise the CPU.

What runs inside `with graph.capture():` is captured and not run: results hold no values before the first replay().
Replays read and write the tensors of the capture, so new inputs are copied into them with copy_(), and results are read
from them. On a GPU it is a CUDA graph; on the CPU the list of kernels. Random numbers differ from replay to replay.
Counters and profiles see the kernels of every replay. What a graph cannot hold, such as reading a value, raises
ValueError with the op's name.

Examples
--------
>>> import rooflab as rl
>>> x = rl.ones(4)
>>> graph = rl.Graph(device="cpu")
>>> with graph.capture():
...     y = rl.exp(x * 0)
>>> graph.replay()
>>> y.tolist()
[1.0, 1.0, 1.0, 1.0])";

}  // namespace

void register_graph(py::module_& m) {
  py::class_<Capture>(m, "_Capture")
      .def("__enter__",
           [](const Capture& self) {
             self.get().begin();
             return self.graph;
           })
      .def("__exit__", [](const Capture& self, const py::object& error, const py::object&, const py::object&) {
        if (error.is_none())
          self.get().end();
        else
          self.get().abandon();
      });
  py::class_<Graph>(m, "Graph", kDoc)
      .def(py::init([](const py::object& device) {
             const char* fastest = cuda::is_available() ? "cuda" : "cpu";
             return std::make_unique<Graph>(device.is_none() ? to_device(py::str(fastest)) : to_device(device));
           }),
           py::arg("device") = py::none())
      .def(
          "capture", [](py::object self) { return Capture{std::move(self)}; },
          "`with graph.capture():` captures the ops inside.")
      .def("replay", without_gil(by_reference(&Graph::replay)),
           "Runs what was captured, on the current stream. ValueError when nothing was.")
      .def_static(
          "is_capturing", [] { return Graph::capturing() != nullptr; },
          "Whether this thread captures ops into a graph.")
      .def_property_readonly("device", by_reference(&Graph::device))
      .def_property_readonly("launches", by_reference(&Graph::launches), "Kernels that each replay runs.")
      .def("__repr__", [](const Graph& self) {
        return self.is_captured() ? message("Graph(", to_string(self.device()), ", ", self.launches(), " launches)")
                                  : message("Graph(", to_string(self.device()), ", nothing captured)");
      });
}

}  // namespace rooflab
