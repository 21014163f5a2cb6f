#include "bindings/bindings.h"
#include "core/context.h"
#include "core/cpu_isa.h"
#include "core/threads.h"
#include "ops/program.h"

namespace rooflab {
namespace {

// A traced call as the planner sees it.
struct CallView {
  const TracedCall& traced;
};

bool is_leaf(const Tensor& x) { return !x.meta() || !x.meta()->node; }

// Everything about tensors that a program depends on: dtype, device, layout, whether gradients are wanted, and how
// tensors that share memory lie in it. If the texts are equal, so are the programs.
std::string layouts(const Tensors& tensors) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    size_t first = 0;
    while (tensors[first].storage() != x.storage()) ++first;
    text += message(name(x.dtype()), " ", to_string(x.device()), x.shape(), x.strides(),
                    autograd::requires_grad(x) ? "g" : "", i - first, ":",
                    static_cast<const char*>(x.data()) - static_cast<const char*>(tensors[first].data()), ";");
  }
  return text;
}

// What the thread and the process have set, which functions can ask for. A program holds for one of it.
std::string settings() {
  const std::optional<DType> low = context().low_dtype;
  std::string text = autograd::is_enabled() ? "g " : " ";
  for (const std::string_view each :
       {std::string_view(low ? name(*low) : ""), float32_matmul_precision(), std::string_view(name(cpu_isa()))})
    text.append(each) += ' ';
  return text + std::to_string(num_threads());
}

// Graphs are destroyed and run backward without the GIL, but a Python function needs the GIL for both.
Program::BackwardOf backward_of(const py::function& alone) {
  const std::shared_ptr<py::function> held(new py::function(alone), [](const py::function* function) {
    const py::gil_scoped_acquire gil;
    delete function;
  });
  return [held](int result) {
    const py::gil_scoped_acquire gil;
    const auto [program, targets] = (*held)(result).cast<std::pair<std::shared_ptr<Program>, std::vector<int>>>();
    return Program::Backward{program, targets};
  };
}

}  // namespace

void register_compiler(py::module_& m) {
  py::module_ compiler = m.def_submodule("_compiler", "What rooflab.compiler stands on.");
  compiler.attr("MAX_NUMBERS") = kernels::kMaxFusedNumbers;
  compiler.attr("MAX_OPERANDS") = kernels::kMaxFusedOperands;
  compiler.attr("MAX_INSTRUCTIONS") = kernels::kMaxFusedInstructions;
  compiler.attr("MAX_RESULTS") = kernels::kMaxFusedResults;
  compiler.attr("MAX_REDUCTIONS") = kernels::kMaxFusedReductions;
  compiler.attr("MAX_ROW_INSTRUCTIONS") = kernels::kMaxFusedRowInstructions;
  compiler.attr("MAX_COLUMN_SUMS") = kernels::kMaxFusedColumnSums;
  compiler.def("holds_summed_row", &kernels::holds_summed_row, py::arg("columns"), py::arg("bytes"),
               "Whether a chain with sums of columns can have rows of so many elements. `bytes`: of an element of each "
               "operand and of each sum together, at least 4 each.");

  py::class_<View>(compiler, "View", "A tensor of a trace: which storage it shows, and how.")
      .def_readonly("storage", &View::storage, "The number of its storage, which is written once.")
      .def_readonly("shape", &View::shape)
      .def_property_readonly(
          "itemsize", [](const View& self) { return size_of(self.dtype); }, "Bytes of an element.")
      .def("shows_same", &shows_same, py::arg("other"),
           "Whether another view shows the same elements in the same order, whatever its shape.")
      .def("shows_rows", &shows_rows, py::arg("other"), py::arg("shape"), py::arg("reduced_dims"),
           "Whether it shows, broadcast to the shape, for each element the number that another has for its row.")
      .def("__eq__", [](const View& self, const View& other) { return self == other; })
      .def("__hash__", [](const View& self) { return self.storage; })
      .def("__repr__",
           [](const View& self) { return message("View(storage=", self.storage, ", shape=", self.shape, ")"); });

  py::class_<CallView>(compiler, "Call", "A recorded call of an op.")
      .def_property_readonly("op", [](const CallView& self) { return self.traced.call->op->name; })
      .def_property_readonly(
          "inputs",
          [](const CallView& self) {
            std::vector<View> tensors;
            for (const View& x : self.traced.inputs)
              if (x.storage >= 0) tensors.push_back(x);
            return tensors;
          },
          "The tensors among its operands.")
      .def_property_readonly(
          "continues", [](const CallView& self) { return self.traced.continues; },
          "The storage of which it writes a part, which makes that its output; -1: none.")
      .def_property_readonly("outputs", [](const CallView& self) { return self.traced.outputs; })
      .def_property_readonly(
          "is_constant", [](const CallView& self) { return is_constant(self.traced); },
          "Whether it fills a tensor with a number, which a chain uses in place of the tensor.")
      .def_property_readonly(
          "reduced_dims", [](const CallView& self) { return reduced_dims(self.traced); },
          "How many of the last dimensions of its operand it reduces; 0 when it is no reduction that a chain can "
          "contain.")
      .def_property_readonly(
          "summed_dims", [](const CallView& self) { return summed_dims(self.traced); },
          "How many of the first dimensions of its operand it adds up; 0 when it is no sum of columns that a chain can "
          "contain.")
      .def_property_readonly(
          "looks", [](const CallView& self) { return looks(self.traced); },
          "Whether it looks for a number out of range, which is an error also where nobody reads its results.")
      .def_property_readonly(
          "numbers", [](const CallView& self) { return chain_numbers(self.traced); },
          "How many numbers it has among its operands in a chain.")
      .def_property_readonly(
          "instructions", [](const CallView& self) { return chain_instructions(self.traced); },
          "How many instructions it takes in a chain; 0 if it cannot be part of one.");

  py::class_<Trace>(compiler, "Trace", "Records the calls made inside `with`, which are neither run nor counted.")
      .def(py::init<Device>(), py::arg("device"))
      .def("__enter__",
           [](py::object self) {
             self.cast<Trace&>().begin();
             return self;
           })
      .def("__exit__", [](Trace& self, const py::args&) { self.end(); })
      .def(
          "argument", [](Trace& self, const Tensor& x) { return self.argument(x, is_leaf(x)); }, py::arg("x"),
          "A tensor without memory that stands for x.")
      .def_property_readonly(
          "error", [](const Trace& self) { return self.error(); },
          "The first error that only a recording meets, caught or not; \"\": none.")
      .def("view", &Trace::view_of, py::arg("x"))
      .def("put_in_order", &Trace::put_in_order, py::arg("seen"),
           "After the last call: calls whose results are turned become calls on permuted dimensions. `seen` are the\n"
           "views that others know by their strides.")
      .def_property_readonly(
          "calls",
          [](const Trace& self) {
            py::list calls;
            for (const TracedCall& traced : self.calls()) calls.append(CallView{traced});
            return calls;
          },
          "Valid while the trace lives.");

  compiler.def("cuda_headers", &kernels::fused_headers, "What the sources of chains include, as (name, text).");
  compiler.def("cuda_options", &kernels::fused_options, "The options for NVRTC, except the architecture.");
  compiler.def("layouts", &layouts, py::arg("tensors"),
               "A text for the layouts of all tensors; equal texts mean equal programs.");
  compiler.def(
      "results_among",
      [](const Tensors& tensors) {
        std::vector<int> found;
        for (size_t i = 0; i < tensors.size(); ++i)
          if (!is_leaf(tensors[i])) found.push_back(static_cast<int>(i));
        return py::tuple(py::cast(found));
      },
      py::arg("tensors"), "The places of those that are no leaves, but results of recorded ops.");
  compiler.def("settings", &settings,
               "A text for grad mode, autocast, the precision of products, the CPU's instruction set and its threads.");
  compiler.def("is_tracing", [] { return Trace::current() != nullptr; });
  compiler.def(
      "has_values", [](const Tensor& x) { return !x.device().is_meta(); }, py::arg("x"),
      "Whether a tensor is not on a device without memory; `x.device` shows that of the argument while it is traced.");
  compiler.def(
      "has_grad", [](const Tensor& x) { return x.meta() && x.meta()->grad().defined(); }, py::arg("x"));

  py::class_<Program, std::shared_ptr<Program>>(compiler, "Program",
                                                "Calls of a trace that can be run again; each chain runs as one op.")
      .def(py::init([](const Trace& trace, std::vector<View> inputs,
                       const std::vector<std::pair<std::vector<int>, std::vector<int>>>& steps,
                       std::vector<View> results, const std::string& variant) {
             std::vector<Program::Step> all;
             for (const auto& [calls, made] : steps) all.push_back({calls, made});
             return std::make_shared<Program>(trace, std::move(inputs), all, std::move(results), variant);
           }),
           py::arg("trace"), py::arg("inputs"), py::arg("steps"), py::arg("results"), py::arg("variant") = "")
      .def("run", without_gil([](const Program& self, Tensors inputs) { return self.run(std::move(inputs)); }),
           py::arg("inputs"))
      .def(
          "record",
          [](const std::shared_ptr<Program>& self, const std::string& op, Tensors results, const Tensors& inputs,
             const Tensors& saved, std::vector<int> targets, const std::optional<py::function>& alone) {
            Program::record(op, results, inputs, saved, {self, std::move(targets)},
                            alone ? backward_of(*alone) : nullptr);
            return results;
          },
          py::arg("op"), py::arg("results"), py::arg("inputs"), py::arg("saved"), py::arg("targets"), py::arg("alone"),
          "Makes the results those of a node whose backward runs the program, and returns them. Where only some of\n"
          "several have a gradient, it runs alone(i) for each of these: a program and its targets.")
      .def(
          "cuda_sources",
          [](const Program& self, int width, int threads, int packs, bool keeps, int whole, uint32_t adjacent,
             uint32_t contiguous, uint32_t loose) {
            return self.cuda_sources({.width = width,
                                      .threads = threads,
                                      .packs = packs,
                                      .keeps = keeps,
                                      .whole = whole,
                                      .adjacent = adjacent,
                                      .contiguous = contiguous,
                                      .loose = loose});
          },
          py::arg("width"), py::arg("threads") = 32, py::arg("packs") = 1, py::arg("keeps") = true,
          py::arg("whole") = 0, py::arg("adjacent") = ~0u, py::arg("contiguous") = 0, py::arg("loose") = 0,
          "The CUDA C++ of each chain, for threads that move `width` neighbours in one access. Of a row that is "
          "reduced, each of `threads` threads holds `packs` times as many, either the whole row or a part at a time; "
          "all "
          "of them have the first `whole`. Bits of `adjacent`, `contiguous` and `loose` say how operands lie in memory "
          "(fused.h).");
}

}  // namespace rooflab
