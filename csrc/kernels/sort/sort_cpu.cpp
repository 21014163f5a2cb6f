// sort on the CPU: see sort.h for what it computes.
#include <algorithm>
#include <numeric>

#include "core/dispatch.h"
#include "kernels/common/order.h"
#include "kernels/sort/sort.h"

namespace rooflab::kernels {
namespace {

// `order` has room for n positions.
template <class T>
void sort_line(const SortArgs& args, int64_t line, int64_t* order) {
  using C = comparable_t<T>;
  const int64_t outer = line / args.inner, i = line % args.inner;
  const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + i * args.inner_stride;
  const auto before = [&](int64_t a, int64_t b) {
    return sorts_before(static_cast<C>(x[a * args.n_stride]), a, static_cast<C>(x[b * args.n_stride]), b,
                        args.descending);
  };
  std::iota(order, order + args.n, int64_t{0});
  if (args.keep < args.n)
    std::partial_sort(order, order + args.keep, order + args.n, before);
  else
    std::sort(order, order + args.n, before);
  for (int64_t k = 0; k < args.keep; ++k) {
    const int64_t at = (outer * args.keep + k) * args.inner + i;
    if (args.indices) args.indices[at] = order[k];
    static_cast<T*>(args.values)[at] = x[order[k] * args.n_stride];
  }
}

int64_t workers_of(const SortArgs& args, const Target& target) {
  return std::min<int64_t>(args.outer * args.inner, target.threads);
}

Footprint footprint(const SortArgs& args, int64_t workers) {
  return {.scratch_bytes = workers * part_of_worker(args.n, 8) * 8};
}

void run(const SortArgs& args, Queue& queue, int64_t workers) {
  constexpr int64_t kGrain = 4096;  // elements that are worth waking a thread for
  const int64_t part = part_of_worker(args.n, 8);
  int64_t* orders = queue.scratch<int64_t>(workers * part);
  dispatch_all(args.dtype, "sort", [&]<class T>() {
    queue.parallel(args.outer * args.inner, std::max<int64_t>(kGrain / args.n, 1), workers,
                   [&](int64_t begin, int64_t end, int worker) {
                     for (int64_t line = begin; line < end; ++line) sort_line<T>(args, line, orders + worker * part);
                   });
  });
}

}  // namespace

void sort_cpu_v0_reference(const SortArgs& args, Queue& queue) { run(args, queue, 1); }
void sort_cpu_v1_parallel(const SortArgs& args, Queue& queue) { run(args, queue, workers_of(args, queue.target())); }

Footprint sort_cpu_v0_footprint(const SortArgs& args, const Target&) { return footprint(args, 1); }
Footprint sort_cpu_v1_footprint(const SortArgs& args, const Target& target) {
  return footprint(args, workers_of(args, target));
}

}  // namespace rooflab::kernels
