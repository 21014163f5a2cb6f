#include "ops/call.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "autograd/reads.h"
#include "core/context.h"
#include "core/counters.h"
#include "core/error.h"
#include "core/range.h"
#include "ops/graph.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

// The memory that a view occupies, whatever the order of its dimensions: they are sorted from the innermost out,
// repeated ones are left out, and neighbours without a gap are merged.
struct Footing {
  int64_t begin, bytes;  // address of the first element; bytes of one element
  int dims = 0;
  std::array<std::pair<int64_t, int64_t>, kMaxDims> steps{};  // (stride, size)

  explicit Footing(const Tensor& x) : begin(reinterpret_cast<intptr_t>(x.data())), bytes(size_of(x.dtype())) {
    for (int i = 0; i < x.ndim(); ++i)
      if (x.strides()[i] != 0 && x.shape()[i] != 1) steps[dims++] = {x.strides()[i], x.shape()[i]};
    std::sort(steps.begin(), steps.begin() + dims);
    int merged = 0;
    for (int i = 0; i < dims; ++i) {
      if (merged && steps[merged - 1].first * steps[merged - 1].second == steps[i].first)
        steps[merged - 1].second *= steps[i].second;
      else
        steps[merged++] = steps[i];
    }
    dims = merged;
    std::fill(steps.begin() + dims, steps.end(), std::pair<int64_t, int64_t>{});  // compared too
  }

  int64_t size() const {
    int64_t count = bytes;
    for (int i = 0; i < dims; ++i) count *= steps[i].second;
    return count;
  }
  bool is_dense() const { return dims == 0 || (dims == 1 && steps[0].first == 1); }
  bool operator==(const Footing&) const = default;
  bool operator<(const Footing& other) const {  // libc++ 16 has no <=> for arrays
    return std::tie(begin, bytes, dims, steps) < std::tie(other.begin, other.bytes, other.dims, other.steps);
  }
};

// Bytes of the distinct elements of a view: an expanded dimension repeats one element.
int64_t distinct_bytes(const Tensor& x) {
  int64_t bytes = size_of(x.dtype());
  for (int i = 0; i < x.ndim(); ++i)
    if (x.strides()[i] != 0) bytes *= x.shape()[i];
  return bytes;
}

// Whether two of them lie in one storage. Mostly none do, and they are few.
bool any_share_storage(const Tensors& operands) {
  for (size_t i = 1; i < operands.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (operands[i].defined() && operands[i].storage() == operands[k].storage()) return true;
  return false;
}

// The distinct bytes of footings of one storage. Where views have gaps, only equal ones are recognised.
int64_t distinct_bytes(std::vector<Footing> footings) {
  std::sort(footings.begin(), footings.end());
  int64_t bytes = 0, covered = INT64_MIN;  // by the dense ones so far
  for (size_t i = 0; i < footings.size(); ++i) {
    const Footing& x = footings[i];
    if (i > 0 && x == footings[i - 1]) continue;
    const int64_t end = x.begin + x.size();
    if (x.is_dense()) {
      bytes += std::max<int64_t>(end - std::max(x.begin, covered), 0);
      covered = std::max(covered, end);
    } else {
      bytes += x.size();
    }
  }
  return bytes;
}

// The dtype whose peak rate limits the call: that of its first floating operand.
DType computed_in(const AnyCall& call) {
  for (const Tensors* tensors : {&call.inputs, &call.outputs})
    for (const Tensor& x : *tensors)
      if (x.defined() && is_floating(x.dtype())) return x.dtype();
  return call.outputs[0].dtype();
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
  if (std::any_of(call.outputs.begin(), call.outputs.end(), [](const Tensor& y) { return y.numel() > 0; })) {
    if (Graph* graph = Graph::capturing()) {
      graph->add(call.op->name, call.inputs);
      graph->add(call.op->name, call.outputs);
    }
    scope.begin(call.cost, computed_in(call));
    call.run();
  }
  scope.done();
}

Tensor operand_as(const Tensor& x, Tensor laid_out) {
  if (laid_out.storage() != x.storage()) OpScope::current()->reads_more(laid_out.nbytes() - distinct_bytes(x));
  return laid_out;
}

int64_t flops_of(const char* op, const Shape& factors, const Shape& a, const Shape& b) {
  int64_t flops = 1;
  for (int64_t factor : factors)
    RL_CHECK(!__builtin_mul_overflow(flops, factor, &flops), op,
             "expected fewer than 2^63 FLOPs, got more for the shapes ", a, " and ", b);
  return flops;
}

int64_t compulsory_bytes(const Tensors& operands) {
  constexpr size_t kFew = 4;  // of more, each pair would take longer
  if (operands.size() <= kFew && !any_share_storage(operands))
    return std::transform_reduce(operands.begin(), operands.end(), int64_t{0}, std::plus<>{},
                                 [](const Tensor& x) { return x.defined() && x.numel() > 0 ? distinct_bytes(x) : 0; });
  std::vector<const Tensor*> by_storage;
  by_storage.reserve(operands.size());
  for (const Tensor& x : operands)
    if (x.defined() && x.numel() > 0) by_storage.push_back(&x);
  std::sort(by_storage.begin(), by_storage.end(),
            [](const Tensor* a, const Tensor* b) { return std::less<>{}(a->storage(), b->storage()); });
  int64_t bytes = 0;
  for (auto first = by_storage.begin(); first != by_storage.end();) {
    const auto& storage = (*first)->storage();
    const auto end = std::find_if(first, by_storage.end(), [&](const Tensor* x) { return x->storage() != storage; });
    if (end - first == 1) {
      bytes += distinct_bytes(**first);
    } else {
      std::vector<Footing> footings;
      for (auto x = first; x != end; ++x) footings.emplace_back(**x);
      bytes += distinct_bytes(std::move(footings));
    }
    first = end;
  }
  return bytes;
}

}  // namespace rooflab
