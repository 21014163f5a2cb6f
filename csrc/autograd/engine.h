// Runs a tape backwards.
#pragma once

#include "autograd/tape.h"

namespace rooflab::autograd {

// What the engine needs from the ops, which are in a layer above it.
struct Arithmetic {
  Tensor (*add)(const Tensor&, const Tensor&);
  void (*add_into)(const Tensor& sum, const Tensor&);
  Tensor (*copy)(const Tensor&);
};

// ValueError unless shape, dtype and device are those of the tensor it is the gradient of.
void check_gradient(const std::string& op, const Meta& meta, const Tensor& gradient);

// Notices that code of the user writes into a gradient that it gets, where other gradients may have the same memory. It
// holds none, because a gradient that nothing else holds may be written to.
class SharedGradient {
 public:
  explicit SharedGradient(const Tensor& gradient);                     // which outlives it
  void check_unwritten(const std::string& op, const char* who) const;  // ValueError

 private:
  const Storage* storage_;  // null if the gradient has it for itself
  Version version_;
};

// Takes `gradients` of `outputs` back through the graph, and adds what reaches the leaves to their grad. A grad that is
// there and held by nothing else takes it as soon as it is complete; the others wait for the end, so that the pass
// reads what they were. What a node saved is freed as soon as it has run, unless `retain_graph`.
void backward(const Tensors& outputs, Tensors gradients, bool retain_graph, const Arithmetic& arithmetic);

// The same towards `inputs` alone. Returns their gradients, not defined where outputs do not depend on an input.
Tensors grad(const Tensors& outputs, Tensors gradients, const Tensors& inputs, bool retain_graph,
             const Arithmetic& arithmetic);

// One block of memory that a graph holds for its backward.
struct SavedTensor {
  std::string op;  // the first to save it
  Shape shape;
  DType dtype;
  int64_t bytes;    // of the whole block
  bool is_outside;  // a leaf or a constant, which the user holds anyway
};

// All that the graph of y holds, each block once, in the order of recording.
std::vector<SavedTensor> saved_tensors(const Tensor& y);

}  // namespace rooflab::autograd
