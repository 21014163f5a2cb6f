#include "ops/call.h"

#include <algorithm>

#include "autograd/reads.h"
#include "core/context.h"
#include "core/counters.h"
#include "core/error.h"
#include "core/range.h"
#include "ops/graph.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

// The dtype whose peak rate limits the call: that of its first floating operand.
DType computed_in(const AnyCall& call) {
  for (const Tensors* tensors : {&call.inputs, &call.outputs})
    for (const Tensor& x : *tensors)
      if (x.defined() && is_floating(x.dtype())) return x.dtype();
  return call.outputs[0].dtype();
}

Device computed_on(const AnyCall& call) {
  const auto made = std::find_if(call.outputs.begin(), call.outputs.end(), [](const Tensor& y) { return y.defined(); });
  return made == call.outputs.end() ? Device{} : made->device();
}

// "[[2, 3], [], [3]]": one list an operand, empty where a number or nothing takes its place.
std::string shapes_of(const Tensors& operands) {
  std::string text = "[";
  for (const Tensor& x : operands) {
    text += text.size() > 1 ? ", [" : "[";
    for (int i = 0; x.defined() && i < x.ndim(); ++i) text += message(i ? ", " : "", x.size(i));
    text += "]";
  }
  return text + "]";
}

}  // namespace

void submit(const AnyCall& call) {
  if (Trace* trace = Trace::current()) return trace->add(call);
  if (context().reads) [[unlikely]]
    for (const Tensor& x : call.inputs)
      if (x.defined()) autograd::note_read(x);
  OpScope& scope = *OpScope::current();
  if (shapes_are_wanted.load(std::memory_order_relaxed)) [[unlikely]]
    notify_shapes(scope, shapes_of(call.inputs));
  const bool works =
      std::any_of(call.outputs.begin(), call.outputs.end(), [](const Tensor& y) { return y.numel() > 0; });
  scope.begin(works ? call.cost : Cost{}, works ? computed_in(call) : DType::kFloat32, computed_on(call));
  if (works) {
    if (Graph* graph = Graph::capturing()) graph->add(call.op->name, call.inputs, call.outputs);
    call.run();
  }
  scope.done();
}

Tensor operand_as(const Tensor& x, Tensor laid_out) {
  if (laid_out.storage() != x.storage()) OpScope::current()->reads_more(laid_out.nbytes() - compulsory_bytes({x}));
  return laid_out;
}

int64_t flops_of(const char* op, const Shape& factors, const Shape& a, const Shape& b) {
  int64_t flops = 1;
  for (int64_t factor : factors)
    RL_CHECK(!__builtin_mul_overflow(flops, factor, &flops), op,
             "expected fewer than 2^63 FLOPs, got more for the shapes ", a, " and ", b);
  return flops;
}

}  // namespace rooflab
