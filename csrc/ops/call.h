// A call of an op as a value: what was asked of which tensors, and what it costs. It holds tensors and the op's own
// options, but no kernel's arguments. So a call can be counted without memory, captured into a graph, and recorded and
// run again on other tensors.
//
// An op is written in two halves. Its plan checks the arguments, makes the outputs and computes the cost:
//
//   const OpScope scope("softmax");
//   Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
//   return submit(Call(kOp, {x}, {y}, {dim}, cost, variant), autograd::saving(y), rule);
//
// Its run gets that call back with its options, prepares the operands for the kernels and starts a rung of the ladder:
//
//   struct Options { int64_t dim; };
//   void run(const Call<Options>& call) { run_rung(kernels::softmax_ladder, call, SoftmaxArgs{...}); }
//   const Op<Options> kOp("softmax", run);
//
// submit() is the only path between them: it skips calls that have nothing to do, counts the call and records it on the
// tape. It knows every call as an AnyCall, and so do graphs and traces.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "autograd/tape.h"
#include "core/cost.h"
#include "core/tensor.h"

namespace rooflab {

struct AnyOp {
  explicit AnyOp(const char* name, bool looks = false) : name(name), looks(looks) {}
  AnyOp(const AnyOp&) = delete;
  AnyOp& operator=(const AnyOp&) = delete;

  const char* name;
  bool looks;  // whether it looks for a number out of range, which is an error also where nobody reads its results
};
inline constexpr bool kLooks = true;

inline constexpr int kUnchosen = -1;

struct AnyCall {
  AnyCall(const AnyOp& op, Tensors inputs, Tensors outputs, const Cost& cost, std::string_view variant, int rung)
      : op(&op), inputs(std::move(inputs)), outputs(std::move(outputs)), cost(cost), variant(variant), rung(rung) {}
  virtual ~AnyCall() = default;

  virtual void run() const = 0;  // writes the outputs, which are not empty
  // The same call of other tensors, to which its cost applies too; its rung is chosen anew.
  virtual std::unique_ptr<AnyCall> of(Tensors inputs, Tensors outputs) const = 0;

  Device device() const { return outputs[0].device(); }

  const AnyOp* op;
  Tensors inputs;   // not defined() where an optional one is absent or a number takes its place
  Tensors outputs;  // not yet written
  Cost cost;
  std::string variant;  // a rung's name; if empty, the fastest rung that accepts the operands runs
  int rung;             // the one that the plan has chosen already, or kUnchosen
};

template <class Options>
struct Call;

// Options: what an op's calls hold besides tensors.
template <class Options>
struct Op : AnyOp {
  Op(const char* name, void (*run)(const Call<Options>&), bool looks = false) : AnyOp(name, looks), run(run) {}

  void (*run)(const Call<Options>&);
};
struct NoOptions {};

template <class Options>
struct Call final : AnyCall {
  Options options;

  Call(const Op<Options>& op, Tensors inputs, Tensors outputs, Options options, const Cost& cost,
       std::string_view variant = {}, int rung = kUnchosen)
      : AnyCall(op, std::move(inputs), std::move(outputs), cost, variant, rung), options(std::move(options)) {}

  const Op<Options>& typed_op() const { return static_cast<const Op<Options>&>(*op); }
  void run() const override { typed_op().run(*this); }
  std::unique_ptr<AnyCall> of(Tensors in, Tensors out) const override {
    return std::make_unique<Call>(typed_op(), std::move(in), std::move(out), options, cost, variant);
  }
};

// The options of a call, if they are of that type; otherwise null.
template <class Options>
const Options* options_of(const AnyCall& call) {
  const auto* typed = dynamic_cast<const Call<Options>*>(&call);
  return typed ? &typed->options : nullptr;
}

// Runs a call inside the scope of its op, and counts it.
void submit(const AnyCall& call);

// The same, and then records how gradients go back through it, if an input requires them (autograd/tape.h). Returns the
// first output.
template <size_t N, class Rule>
Tensor submit(AnyCall&& call, const std::array<autograd::Ref, N>& saved, Rule rule) {
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
// repeats it. Where views with gaps of unlike steps overlap, such as x[::2] and x[::3], it is an upper bound: each view
// whole, and at most the memory from the first to the last byte. So it is of very many views that overlap in several
// dimensions, where the exact number would take long, and where nobody counts. Operands may be not defined().
int64_t compulsory_bytes(const Tensors& operands);
// The product of the factors. ValueError, which names the shapes, if it is too large to be counted.
int64_t flops_of(const char* op, const Shape& factors, const Shape& a, const Shape& b);

// `laid_out`, which the kernel of the current call reads in place of its operand x. If it is a copy, all of its bytes
// are counted as read, while a view may have repeated some.
Tensor operand_as(const Tensor& x, Tensor laid_out);

}  // namespace rooflab
