// arg_reduce on the CPU: see arg_reduce.h for what it computes.
#include <algorithm>

#include "core/dispatch.h"
#include "kernels/arg_reduce/arg_reduce.h"
#include "kernels/common/order.h"

namespace rooflab::kernels {
namespace {

constexpr int64_t kColumns = 64;  // neighbouring outputs that go along the axis together

// Outputs [first, first + columns) of one outer position.
template <class T>
void reduce_columns(const ArgReduceArgs& args, int64_t outer, int64_t first, int64_t columns) {
  using C = comparable_t<T>;
  const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + first * args.inner_stride;
  C best[kColumns];
  int64_t places[kColumns];
  for (int64_t c = 0; c < columns; ++c) {
    best[c] = static_cast<C>(x[c * args.inner_stride]);
    places[c] = 0;
  }
  for (int64_t k = 1; k < args.reduced; ++k) {
    const T* row = x + k * args.reduced_stride;
    for (int64_t c = 0; c < columns; ++c) {
      const C value = static_cast<C>(row[c * args.inner_stride]);
      if (!is_chosen_over(value, best[c], args.largest)) continue;
      best[c] = value;
      places[c] = k;
    }
  }
  const int64_t at = outer * args.inner + first;
  std::copy_n(places, columns, args.indices + at);
  if (args.values)
    for (int64_t c = 0; c < columns; ++c)
      static_cast<T*>(args.values)[at + c] = x[places[c] * args.reduced_stride + c * args.inner_stride];
}

}  // namespace

void arg_reduce_cpu_v0_reference(const ArgReduceArgs& args, Queue&) {
  dispatch_all(args.dtype, "arg_reduce", [&]<class T>() {
    for (int64_t outer = 0; outer < args.outer; ++outer)
      for (int64_t i = 0; i < args.inner; ++i) reduce_columns<T>(args, outer, i, 1);
  });
}

void arg_reduce_cpu_v1_parallel(const ArgReduceArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 16384;  // elements that are worth a thread
  const int64_t width = std::min(args.inner, kColumns), tiles = (args.inner + kColumns - 1) / kColumns;
  dispatch_all(args.dtype, "arg_reduce", [&]<class T>() {
    queue.parallel(args.outer * tiles, std::max<int64_t>(kGrain / (args.reduced * width), 1),
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t first = task % tiles * kColumns;
                       reduce_columns<T>(args, task / tiles, first, std::min(kColumns, args.inner - first));
                     }
                   });
  });
}

bool arg_reduce_cuda_v1_accepts(const ArgReduceArgs& args, const Target&) { return args.inner == 1; }

}  // namespace rooflab::kernels
