#include "ops/call.h"

#include <algorithm>
#include <array>

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
  }

  int64_t size() const {
    int64_t count = bytes;
    for (int i = 0; i < dims; ++i) count *= steps[i].second;
    return count;
  }
  bool is_dense() const { return dims == 0 || (dims == 1 && steps[0].first == 1); }
  bool operator==(const Footing& other) const {
    return begin == other.begin && bytes == other.bytes && dims == other.dims &&
           std::equal(steps.begin(), steps.begin() + dims, other.steps.begin());
  }
};

// Bytes of the distinct elements of a view: an expanded dimension repeats one element.
int64_t distinct_bytes(const Tensor& x) {
  int64_t bytes = size_of(x.dtype());
  for (int i = 0; i < x.ndim(); ++i)
    if (x.strides()[i] != 0) bytes *= x.shape()[i];
  return bytes;
}

// The bytes of x that no earlier operand of the same storage has. If views have gaps, only equal ones are recognised.
int64_t new_bytes(const Footing& x, const std::vector<Footing>& earlier) {
  if (std::find(earlier.begin(), earlier.end(), x) != earlier.end()) return 0;
  if (!x.is_dense()) return x.size();
  std::vector<std::pair<int64_t, int64_t>> seen;  // intervals, sorted by their beginnings
  for (const Footing& other : earlier)
    if (other.is_dense()) seen.emplace_back(other.begin, other.begin + other.size());
  std::sort(seen.begin(), seen.end());
  int64_t bytes = 0, at = x.begin;
  const int64_t end = x.begin + x.size();
  for (const auto& [from, to] : seen) {
    bytes += std::clamp<int64_t>(from - at, 0, end - at);
    at = std::clamp(to, at, end);
  }
  return bytes + end - at;
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

int64_t compulsory_bytes(const Tensors& operands) {
  int64_t bytes = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& x = operands[i];
    if (!x.defined() || x.numel() == 0) continue;
    std::vector<Footing> earlier;  // of the same storage; usually none
    for (size_t j = 0; j < i; ++j)
      if (operands[j].storage() == x.storage() && operands[j].numel() > 0) earlier.emplace_back(operands[j]);
    bytes += earlier.empty() ? distinct_bytes(x) : new_bytes(Footing(x), earlier);
  }
  return bytes;
}

}  // namespace rooflab
