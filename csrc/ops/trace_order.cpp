// The elementwise calls of a trace whose results are turned, in the order of the results' memory: chains write in
// order.
#include <algorithm>
#include <set>

#include "ops/elementwise.h"
#include "ops/fusible.h"
#include "ops/program.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

bool is_elementwise(const TracedCall& traced) {
  return traced.continues < 0 &&
         (options_of<ElementwiseOptions>(*traced.call) || options_of<GeluOptions>(*traced.call));
}

// The view, which broadcasts to as many dimensions as `order` has, with its dimensions in that order.
View permuted(const View& x, const Shape& order) {
  View y = x;
  y.shape = y.strides = {};
  const int missing = order.size() - x.shape.size();
  for (const int64_t d : order) {
    const int at = static_cast<int>(d) - missing;
    y.shape.push_back(at < 0 ? 1 : x.shape[at]);
    y.strides.push_back(at < 0 ? 0 : x.strides[at]);
  }
  return y;
}

}  // namespace

bool Trace::is_turned(const View& y) const {
  return !is_in_order(y) && numel(y.shape) * size_of(y.dtype) == bytes_[y.storage] &&
         is_in_order(permuted(y, memory_order(y.strides)));
}

void Trace::put_in_order(const std::vector<View>& seen) {
  std::set<int> fixed;  // storages whose layout somebody else knows
  for (const View& x : seen) fixed.insert(x.storage);
  for (const TracedCall& traced : calls_) {
    fixed.insert(traced.continues);
    if (traced.continues >= 0) fixed.insert(traced.outputs[0].storage);
  }
  std::vector<std::vector<View*>> reads(bytes_.size());  // of each storage, by calls that come later
  for (auto traced = calls_.rbegin(); traced != calls_.rend(); ++traced) {
    View& y = traced->outputs[0];
    if (is_elementwise(*traced) && is_turned(y) && !fixed.contains(y.storage) && !reads[y.storage].empty() &&
        std::all_of(reads[y.storage].begin(), reads[y.storage].end(), [&](const View* x) { return *x == y; })) {
      y.strides = contiguous_strides(y.shape);
      for (View* x : reads[y.storage]) x->strides = y.strides;
    }
    const bool takes_any = reduced_dims(*traced) > 0 || (is_elementwise(*traced) && is_in_order(y));
    for (View& x : traced->inputs) {
      if (x.storage < 0) continue;
      reads[x.storage].push_back(&x);
      if (!takes_any || (reduced_dims(*traced) == 0 && x.shape != y.shape)) fixed.insert(x.storage);
    }
  }
  for (TracedCall& traced : calls_) {
    View& y = traced.outputs[0];
    if (!is_elementwise(traced) || !is_turned(y)) continue;
    const Shape order = memory_order(y.strides);
    for (View& x : traced.inputs)
      if (x.storage >= 0) x = permuted(x, order);
    y = permuted(y, order);
  }
}

}  // namespace rooflab
