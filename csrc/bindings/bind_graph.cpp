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

constexpr const char* kGraphDoc = R"(Ops that are captured once and replayed by one host call each time.

What runs inside `with graph.capture():` is captured and not run: results hold no values before the first replay().
Replays read and write the tensors of the capture, so new inputs are copied into them with copy_(), and results are read
from them. On a GPU it is a CUDA graph; on the CPU the list of kernels. Random numbers differ from replay to replay.
Counters and profiles see the kernels of every replay. What a graph cannot hold, such as reading a value, raises
ValueError with the op's name.

Parameters
----------
device : str, optional
    Where the captured ops run. By default the GPU if there is one, otherwise the CPU.

Raises
------
ValueError
    For what is neither the CPU nor a GPU.
CudaError
    For a GPU that is not there.

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

constexpr const char* kCaptureDoc = R"(Capture what runs inside `with graph.capture():`.

Returns
-------
context manager
    It gives the graph. An error inside ends the capture, and the graph stays empty.

Raises
------
ValueError
    On entering, when the graph holds a capture already, and when this thread captures another one. Inside, for an op
    that a graph cannot hold.

Examples
--------
>>> x = rl.ones(2)
>>> with rl.Graph(device="cpu").capture() as graph:
...     y = x + 1
>>> graph.launches
1)";

constexpr const char* kReplayDoc = R"(Run what was captured once more, on the current stream.

It reads and writes the tensors of the capture. Those that it writes to were changed in place: `rl.autocast` casts them
again, and backward refuses what ops had saved of them before, unless these ops were captured too. It is one host call.
Counters and profiles see each call in the range that was open at its capture, inside of the one that is open now.

Raises
------
ValueError
    When nothing was captured, and inside the capture of another graph.

Examples
--------
>>> x = rl.ones(2)
>>> with rl.Graph(device="cpu").capture() as graph:
...     y = x + 1
>>> _ = x.fill_(5)
>>> graph.replay()
>>> y.tolist()
[6.0, 6.0])";

constexpr const char* kIsCapturingDoc = R"(Whether this thread captures ops into a graph.

Returns
-------
bool
    True inside `with graph.capture():`.

Examples
--------
>>> rl.Graph.is_capturing()
False)";

constexpr const char* kGraphDeviceDoc = R"(Where the captured ops run.

Returns
-------
str
    Such as "cpu" or "cuda:0".

Examples
--------
>>> rl.Graph(device="cpu").device
'cpu')";

constexpr const char* kLaunchesDoc = R"(How many kernels each replay runs.

Returns
-------
int
    0 before the capture.

Examples
--------
>>> rl.Graph(device="cpu").launches
0)";

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
  py::class_<Graph>(m, "Graph", kGraphDoc)
      .def(py::init([](const py::object& device) {
             const char* fastest = cuda::is_available() ? "cuda" : "cpu";
             return std::make_unique<Graph>(device.is_none() ? to_device(py::str(fastest)) : to_device(device));
           }),
           py::arg("device") = py::none())
      .def(
          "capture", [](py::object self) { return Capture{std::move(self)}; }, kCaptureDoc)
      .def("replay", without_gil(by_reference(&Graph::replay)), kReplayDoc)
      .def_static(
          "is_capturing", [] { return Graph::capturing() != nullptr; }, kIsCapturingDoc)
      .def_property_readonly("device", by_reference(&Graph::device), kGraphDeviceDoc)
      .def_property_readonly("launches", by_reference(&Graph::launches), kLaunchesDoc)
      .def("__repr__", [](const Graph& self) {
        return self.is_captured() ? message("Graph(", to_string(self.device()), ", ", self.launches(), " launches)")
                                  : message("Graph(", to_string(self.device()), ", nothing captured)");
      });
}

}  // namespace rooflab
