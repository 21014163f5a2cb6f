#include "autograd/checkpoint.h"
#include "autograd/draws.h"
#include "autograd/engine.h"
#include "bindings/bindings.h"
#include "bindings/by_reference.h"
#include "bindings/docs_autograd.h"
#include "bindings/shown_grads.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

using autograd::Meta;
using autograd::Node;
using autograd::SavedTensor;

std::vector<std::optional<Tensor>> to_optional(const Tensors& tensors) {
  std::vector<std::optional<Tensor>> found;
  for (const Tensor& x : tensors) found.push_back(x.defined() ? std::optional(x) : std::nullopt);
  return found;
}

Tensors from_optional(const std::vector<std::optional<Tensor>>& tensors) {
  Tensors found;
  for (const std::optional<Tensor>& x : tensors) found.push_back(x.value_or(Tensor()));
  return found;
}

// An argument of a function that is traced has no gradient, whatever that of the tensor is for which it stands, and is
// a leaf. What is set in a tensor from elsewhere happens once, and not whenever the function runs.
void check_reads_grad(const Tensor& self) {
  if (const Trace* trace = Trace::current(); trace && trace->is_argument(self))
    Trace::refuse("grad", "reads the grad of an argument; use rl.autograd.grad, which returns gradients");
}

void check_reads_node(const Tensor& self) {
  if (const Trace* trace = Trace::current(); trace && trace->is_inner(self))
    Trace::refuse("grad_fn", "asks how an argument was made");
}

void check_changes(const char* what, const Tensor& self) {
  if (const Trace* trace = Trace::current(); trace && !trace->knows(self))
    Trace::refuse(what, "changes a tensor that is neither an argument nor made by a recorded op");
}

// Changes a tensor, and the leaves whose gradient it is.
template <class Change>
void change_also_in_owners(const PythonTensor& self, const Change& change) {
  const std::vector<std::shared_ptr<Meta>> owners = shown_grads().owners_of(self);
  Tensor& x = self.cast<Tensor&>();
  change(x, owners);
  for (const std::shared_ptr<Meta>& owner : owners) const Tensor before = owner->exchange_grad(x);
}

void set_requires_grad(const PythonTensor& self, bool requires_grad) {
  change_also_in_owners(self, [requires_grad](Tensor& x, const auto&) {
    check_changes("requires_grad", x);
    autograd::set_requires_grad(x, requires_grad);
  });
}

std::optional<PythonTensor> grad_of(const Tensor& self) {
  Tensor grad = self.meta() ? self.meta()->grad() : Tensor();
  return grad.defined() ? std::optional(shown_grads().show(self.meta(), std::move(grad))) : std::nullopt;
}

void set_grad(Tensor& self, const std::optional<PythonTensor>& grad) {
  Trace::refuse("grad", "sets the grad of a tensor; do it outside of the function");
  if (!self.meta()) {
    if (!grad) return;
    self.set_meta(std::make_shared<Meta>(self));
  }
  const Tensor given = grad ? grad->cast<Tensor>() : Tensor();
  if (grad) autograd::check_gradient("grad", *self.meta(), given);
  const bool is_plain = grad && !given.meta();
  const Tensor before = self.meta()->exchange_grad(grad ? given.detach() : Tensor());
  if (is_plain)
    shown_grads().remember(self.meta(), *grad);
  else
    shown_grads().forget(self.meta().get());
}

// Gives a leaf other values, in its own Python object, so that optimizers that know it go on. Its gradient stays where
// it still fits. A graph that was recorded before finds gradients of another shape, dtype or device, and says so.
void replace_data(Tensor& self, const Tensor& value) {
  check_changes("data", self);
  RL_CHECK(!self.meta() || !self.meta()->node, "data", "the tensor is a result of ", self.meta()->node->op,
           "; only a leaf can get other data");
  const std::shared_ptr<Meta> meta = self.meta();
  RL_CHECK(!meta || !meta->requires_grad || is_floating(value.dtype()), "data",
           "expected a floating-point dtype for a tensor that requires grad, got ", name(value.dtype()));
  const Tensor before = std::exchange(self, value.detach());
  if (!meta) return;
  self.set_meta(meta);
  if (meta->shape == value.shape() && meta->dtype == value.dtype() && meta->device == value.device()) return;
  const Tensor grad = meta->exchange_grad(Tensor());
  meta->shape = value.shape(), meta->dtype = value.dtype(), meta->device = value.device();
}

void set_data(const PythonTensor& self, const Tensor& value) {
  change_also_in_owners(self, [&value](Tensor& x, const auto& owners) {
    for (const std::shared_ptr<Meta>& owner : owners) autograd::check_gradient("data", *owner, value);
    replace_data(x, value);
  });
}

// A Python function that a node keeps. Each of several results stands for its own reference to it, so that each can
// show one to the garbage collector. The first result that is left also stands for the references of those that are
// gone.
struct HeldFunction {
  py::function function;
  std::vector<py::function> more;  // one less than there are results
  std::vector<std::weak_ptr<Meta>> results;

  // 0 if somebody else owns the node too.
  size_t references_of(const Meta& result) const {
    long left = 0;
    const Meta* first = nullptr;
    for (const std::weak_ptr<Meta>& each : results)
      if (const std::shared_ptr<Meta> meta = each.lock()) {
        if (!left++) first = meta.get();
      }
    if (result.node.use_count() != left) return 0;
    return &result == first ? results.size() - left + 1 : 1;
  }
};

// Graphs are destroyed and run backward without the GIL, but a Python function needs the GIL for both.
std::shared_ptr<HeldFunction> held(const py::function& function, size_t results = 1) {
  return {new HeldFunction{function, std::vector<py::function>(results - 1, function), {}}, [](HeldFunction* held) {
            const py::gil_scoped_acquire gil;
            delete held;
          }};
}

// The backward of a Function as a rule of the tape.
struct PythonRule {
  std::shared_ptr<HeldFunction> held;
  size_t inputs;
  std::string op;

  Tensors operator()(const Gradients& d, const Tensors& saved) const {
    const py::gil_scoped_acquire gil;
    Tensors gradients;
    std::vector<bool> wanted;
    std::vector<autograd::SharedGradient> given;
    for (size_t i = 0; i < held->results.size(); ++i) given.emplace_back(d[static_cast<int>(i)]);
    for (size_t i = 0; i < held->results.size(); ++i) gradients.push_back(d[static_cast<int>(i)]);
    for (size_t i = 0; i < inputs; ++i) wanted.push_back(d.wanted(static_cast<int>(i)));
    const py::object returned = held->function(to_optional(gradients), to_optional(saved), wanted);
    for (const autograd::SharedGradient& each : given) each.check_unwritten(op, "backward");
    return from_optional(returned.cast<std::vector<std::optional<Tensor>>>());
  }
};

// A Python function that backward calls with a gradient.
struct PythonHook {
  std::shared_ptr<HeldFunction> held;

  Tensor operator()(const Tensor& gradient) const {
    const py::gil_scoped_acquire gil;
    const py::object given = held->function(gradient);
    if (given.is_none()) return {};
    if (!py::isinstance<Tensor>(given))
      throw py::type_error(message("[register_hook] the hook returned ", type_name(given), ", no tensor"));
    return given.cast<Tensor>();
  }
};

int64_t add_hook(Tensor& self, const py::function& hook) {
  RL_CHECK(autograd::requires_grad(self), "register_hook", "the tensor does not require grad");
  if (const Trace* trace = Trace::current(); trace && (trace->is_argument(self) || !trace->knows(self)))
    Trace::refuse("register_hook", "a hook of a tensor that outlives the call; register it outside of the function");
  return self.meta()->add_hook(PythonHook{held(hook)});
}

// What rooflab.autograd.checkpoint calls: returns the result of run(), which again() repeats in the backward pass.
py::object checkpoint(const Tensors& inputs, const py::function& run, const py::function& again) {
  auto repeat = [again = held(again)] {
    const py::gil_scoped_acquire gil;
    again->function();
  };
  const autograd::Checkpoint::Scope scope(std::make_shared<autograd::Checkpoint>(inputs, std::move(repeat)));
  return run();
}

// What rooflab.autograd.Function calls: rule(gradients, saved, wanted) returns a gradient or None for each input.
Tensors record_function(const std::string& op, Tensors results, const std::vector<std::optional<Tensor>>& inputs,
                        const std::vector<std::optional<Tensor>>& saved, const py::function& rule) {
  std::vector<Tensor*> places;
  for (Tensor& y : results) places.push_back(&(y = y.detach()));
  const std::shared_ptr<HeldFunction> function = held(rule, results.size());
  autograd::attach(op, places, std::vector<autograd::Ref>(inputs.begin(), inputs.end()),
                   std::vector<autograd::Ref>(saved.begin(), saved.end()), PythonRule{function, inputs.size(), op});
  for (const Tensor& y : results) function->results.push_back(y.meta());
  return results;
}

// The tensor in a Python object; null before it has been put there.
Tensor* tensor_in(PyObject* object) {
  const auto place = reinterpret_cast<py::detail::instance*>(object)->get_value_and_holder();
  return place.holder_constructed() ? static_cast<Tensor*>(place.value_ptr()) : nullptr;
}

// Shows the garbage collector the Python functions in the graph of a tensor. They may lead back to the tensor, because
// a Function keeps what its forward put on ctx. It shows only what this tensor alone owns, and nothing while other
// threads run ops, which change owners.
int show_to_collector(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Tensor* x = tensor_in(self);
  if (!x || !x->meta() || NoGil::is_anywhere()) return 0;
  std::vector<const std::shared_ptr<Meta>*> left{&x->meta()};
  while (!left.empty()) {
    const std::shared_ptr<Meta>& meta = *left.back();
    left.pop_back();
    if (meta.use_count() != 1) continue;
    for (const auto& [number, hook] : meta->hooks())
      if (const auto* own = hook.target<PythonHook>();
          own && own->held.use_count() == 2)  // the meta's, and this copy's
        Py_VISIT(own->held->function.ptr());
    if (!meta->node) continue;
    const Node& node = *meta->node;
    if (const auto* rule = node.rule.target<PythonRule>(); rule && rule->held.use_count() == 1)
      for (size_t i = rule->held->references_of(*meta); i > 0; --i) Py_VISIT(rule->held->function.ptr());
    if (meta->node.use_count() != 1) continue;
    for (const std::shared_ptr<Meta>& input : node.inputs) left.push_back(&input);
  }
  return 0;
}

// A tensor that the collector clears leaves its graph.
int leave_graph(PyObject* self) {
  if (Tensor* x = tensor_in(self)) x->set_meta(nullptr);
  return 0;
}

void add_properties(py::class_<Tensor>& tensor) {
  const auto node = [](const Tensor& self) {
    check_reads_node(self);
    return self.meta() ? self.meta()->node : nullptr;
  };
  tensor
      .def_property(
          "requires_grad", [](const Tensor& self) { return autograd::requires_grad(self); }, &set_requires_grad,
          kRequiresGradDoc)
      .def(
          "requires_grad_",
          [](const PythonTensor& self, bool requires_grad) {
            set_requires_grad(self, requires_grad);
            return self;
          },
          py::arg("requires_grad") = true, kSetRequiresGradDoc)
      .def_property(
          "grad",
          [](const Tensor& self) -> std::optional<PythonTensor> {
            check_reads_grad(self);
            return grad_of(self);
          },
          &set_grad, kGradDoc)
      .def_property_readonly(
          "is_leaf", [node](const Tensor& self) { return !node(self); }, kIsLeafDoc)
      .def_property_readonly("grad_fn", node, kGradFnDoc)
      .def(
          "retain_grad",
          [](const Tensor& self) {
            RL_CHECK(autograd::requires_grad(self), "retain_grad", "the tensor does not require grad");
            Trace::refuse("retain_grad", "keeps a gradient that a compiled backward does not make");
            self.meta()->retains_grad = true;
          },
          kRetainGradDoc)
      .def("detach", by_reference(&Tensor::detach), kDetachDoc)
      .def("backward", without_gil([](const Tensor& self, const std::optional<Tensor>& gradient, bool retain_graph) {
             backward({self}, {gradient.value_or(Tensor())}, retain_graph);
           }),
           py::arg("gradient") = py::none(), py::arg("retain_graph") = false, kBackwardDoc);
}

}  // namespace

py::custom_type_setup tensor_type() {
  return py::custom_type_setup([](PyHeapTypeObject* type) {
    type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type->ht_type.tp_traverse = show_to_collector;
    type->ht_type.tp_clear = leave_graph;
  });
}

void register_autograd(py::module_& m, py::class_<Tensor>& tensor) {
  py::module_ autograd = m.def_submodule("_autograd", "What rooflab.autograd stands on.");
  py::class_<Node, std::shared_ptr<Node>>(autograd, "Node", "A recorded op.")
      .def_readonly("name", &Node::op)
      .def("__repr__", [](const Node& self) { return message("<", self.op, ">"); });
  py::class_<SavedTensor>(autograd, "Saved", "A block of memory that a graph holds for its backward.")
      .def_readonly("op", &SavedTensor::op, "The first op that saved it.")
      .def_readonly("shape", &SavedTensor::shape)
      .def_property_readonly("dtype", [](const SavedTensor& self) { return from_dtype(self.dtype); })
      .def_readonly("bytes", &SavedTensor::bytes, "Of the whole block, of which the tensor may be a view.")
      .def_readonly("is_input", &SavedTensor::is_outside,
                    "Whether it is memory of an input (a leaf or a constant), not of a recorded result.")
      .def("__repr__", [](const SavedTensor& self) {
        return message("Saved(op='", self.op, "', shape=", self.shape, ", dtype=", name(self.dtype),
                       ", bytes=", self.bytes, self.is_outside ? ", is_input=True)" : ")");
      });

  add_properties(tensor);
  m.def("is_grad_enabled", &autograd::is_enabled, R"doc(Whether ops are recorded now: False inside no_grad.

Returns
-------
bool
    Of this thread.

Examples
--------
>>> with rl.no_grad():
...     rl.is_grad_enabled()
False)doc");
  autograd.def("draws_again", &autograd::draws_again,
               "Whether this thread runs a function again, which draws the random numbers of its first run.");
  autograd.def("set_grad_enabled", &autograd::set_enabled, py::arg("enabled"),
               "Sets grad mode; returns the previous one.");
  autograd.def(
      "checkpoint", &checkpoint, py::arg("inputs"), py::arg("run"), py::arg("again"),
      "The result of run(), of which the graph keeps only the inputs; again() repeats it in the backward pass.");
  autograd.def("set_data", &set_data, py::arg("x"), py::arg("value"),
               "Gives a leaf other values, of any shape, dtype or device; its grad is dropped unless these stay.");
  autograd.def("add_hook", &add_hook, py::arg("x"), py::arg("hook"),
               "Lets backward call hook(gradient); returns its number.");
  autograd.def(
      "remove_hook",
      [](const Tensor& x, int64_t number) {
        if (x.meta()) x.meta()->remove_hook(number);
      },
      py::arg("x"), py::arg("number"), "Takes the hook of that number away, if it is there.");
  autograd.def("mark_parameter", &autograd::mark_parameter, py::arg("x"),
               "Makes x a parameter of modules for good: it stays one when it is frozen.");
  autograd.def(
      "is_marked", [](const Tensor& x) { return autograd::is_parameter(x); }, py::arg("x"),
      "Whether it was made a parameter.");
  autograd.def("record_function", &record_function, py::arg("op"), py::arg("results"), py::arg("inputs"),
               py::arg("saved"), py::arg("rule"), "Makes the results those of a new node, and returns them.");
  autograd.def("grad",
               without_gil([](const Tensors& outputs, const Tensors& inputs,
                              const std::vector<std::optional<Tensor>>& gradients, bool retain_graph) {
                 return to_optional(grad(outputs, from_optional(gradients), inputs, retain_graph));
               }),
               py::arg("outputs"), py::arg("inputs"), py::arg("grad_outputs"), py::arg("retain_graph"),
               "Gradients with respect to inputs; None where outputs do not depend on one.");
  autograd.def("saved_tensors", &autograd::saved_tensors, py::arg("y"));
}

}  // namespace rooflab
