// A call of an op as a value: what was asked of which tensors, and what it costs. It holds tensors and numbers, but no
// kernel's arguments. So a call can be counted without memory, captured into a graph, traced, or run by another process
// from the same values.
//
// An op is written in two halves. Its plan checks the arguments, makes the outputs and computes the cost:
//
//   const OpScope scope("softmax");
//   Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
//   return submit({&kOp, {x}, {y}, {{"dim", dim}}, cost, variant}, autograd::saving(y), rule);
//
// Its run prepares the operands for the kernels and starts a rung of the ladder. submit() is the only path between
// them: it skips calls that have nothing to do, counts the call and records it on the tape.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/tape.h"
#include "core/cost.h"
#include "core/error.h"
#include "core/tensor.h"
#include "kernels/elementwise/elementwise.h"

namespace rooflab {

using Scalar = kernels::ElementwiseScalar;  // a Python number: takes the dtype of the tensor it meets

struct Call;

struct Op {
  Op(const char* name, void (*run)(const Call&)) : name(name), run(run) {}
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  const char* name;
  void (*run)(const Call&);  // writes the outputs of a planned call that is not empty
};

using Attribute = std::variant<bool, int64_t, double, DType, Scalar, Shape>;

struct Call {
  const Op* op;
  Tensors inputs;   // not defined() where an optional one is absent or a number takes its place
  Tensors outputs;  // not yet written
  std::vector<std::pair<const char*, Attribute>> attributes;
  Cost cost;
  std::string variant;  // a rung's name; if empty, the fastest rung that accepts the operands runs

  Device device() const { return outputs[0].device(); }

  // The attribute `name`; null if the call has none of that name and type.
  template <class T>
  const T* find(std::string_view name) const {
    for (const auto& [key, value] : attributes)
      if (key == name) return std::get_if<T>(&value);
    return nullptr;
  }
  template <class T>
  const T& get(std::string_view name) const {
    const T* found = find<T>(name);
    RL_CHECK(found, op->name, "call: has no attribute ", name);
    return *found;
  }
};

// Runs a call inside the scope of its op, and counts it.
void submit(const Call& call);

// The same, and then records how gradients go back through it, if an input requires them (autograd/tape.h). Returns the
// first output.
template <size_t N, class Rule>
Tensor submit(Call call, const std::array<autograd::Ref, N>& saved, Rule rule) {
  submit(call);
  const bool records =
      autograd::is_enabled() &&
      std::any_of(call.inputs.begin(), call.inputs.end(), [](const Tensor& x) { return autograd::requires_grad(x); });
  if (records) {
    const std::vector<autograd::Ref> inputs(call.inputs.begin(), call.inputs.end());
    autograd::record(call.op->name, {&call.outputs[0]}, inputs, saved, std::move(rule));
  }
  return std::move(call.outputs[0]);
}

// The bytes that an op must read: each piece of memory once, however many operands share it and however often a view
// repeats it. Operands may be not defined().
int64_t compulsory_bytes(const Tensors& operands);

// `laid_out`, which the kernel of the current call reads in place of its operand x. If it is a copy, all of its bytes
// are counted as read, while a view may have repeated some.
Tensor operand_as(const Tensor& x, Tensor laid_out);

}  // namespace rooflab
