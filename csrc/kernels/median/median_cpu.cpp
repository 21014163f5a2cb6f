// median on the CPU: see median.h for what it computes.
#include <algorithm>
#include <numeric>
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/median/median.h"
#include "kernels/sort/sort_key_cpu.h"

namespace rooflab::kernels {
namespace {

// Calls pick(x, worker) for each line, x(k) being its element k, and writes the one at the place that is returned.
template <class T, class Pick>
void for_lines(const MedianArgs& args, Queue& queue, int64_t workers, const Pick& pick) {
  constexpr int64_t kGrain = 4096;  // elements that are worth waking a thread for
  queue.parallel(args.outer * args.inner, std::max<int64_t>(kGrain / args.n, 1), workers,
                 [&](int64_t begin, int64_t end, int worker) {
                   for (int64_t line = begin; line < end; ++line) {
                     const int64_t outer = line / args.inner, i = line % args.inner;
                     const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + i * args.inner_stride;
                     const auto pick_in = [&](auto step) {
                       return pick([x, step](int64_t k) { return x[k * step]; }, worker);
                     };
                     using Adjacent = std::integral_constant<int64_t, 1>;
                     const int64_t place = args.n_stride == 1 ? pick_in(Adjacent{}) : pick_in(args.n_stride);
                     args.indices[line] = place;
                     static_cast<T*>(args.values)[line] = x[place * args.n_stride];
                   }
                 });
}

int64_t workers_of(const MedianArgs& args, const Target& target) {
  return std::min<int64_t>(args.outer * args.inner, target.threads);
}

}  // namespace

void median_cpu_v0_reference(const MedianArgs& args, Queue& queue) {
  int64_t* order = queue.scratch<int64_t>(args.n);
  dispatch_all(args.dtype, "median", [&]<class T>() {
    using C = comparable_t<T>;
    for_lines<T>(args, queue, 1, [&](const auto& x, int) {
      const auto value = [&](int64_t rank) { return static_cast<C>(x(order[rank])); };
      std::iota(order, order + args.n, int64_t{0});
      std::sort(order, order + args.n, [&](int64_t a, int64_t b) {
        return sorts_before(static_cast<C>(x(a)), a, static_cast<C>(x(b)), b, false);
      });
      const bool has_nan = value(args.n - 1) != value(args.n - 1);
      int64_t middle = has_nan ? args.n - 1 : (args.n - 1) / 2;
      while (middle > 0 && !sorts_before(value(middle - 1), value(middle), false)) --middle;  // they are equal
      return order[middle];
    });
  });
}

void median_cpu_v1_select(const MedianArgs& args, Queue& queue) {
  const int64_t workers = workers_of(args, queue.target());
  dispatch_all(args.dtype, "median", [&]<class T>() {
    using Key = sort_key_t<T>;
    const int64_t part = part_of_worker(args.n, sizeof(Key));
    Key* keys = queue.scratch<Key>(workers * part);
    for_lines<T>(args, queue, workers, [&](const auto& x, int worker) {
      Key* own = keys + worker * part;
      for (int64_t k = 0; k < args.n; ++k) own[k] = key_in_order(x(k), false);
      const Key largest = *std::max_element(own, own + args.n);
      Key* middle = own + (args.n - 1) / 2;
      std::nth_element(own, middle, own + args.n);
      const bool has_nan = is_floating(args.dtype) && largest == static_cast<Key>(~Key{0});
      const Key wanted = has_nan ? largest : *middle;
      int64_t place = 0;
      while (place + 1 < args.n && key_in_order(x(place), false) != wanted) ++place;
      return place;
    });
  });
}

Footprint median_cpu_v0_footprint(const MedianArgs& args, const Target&) { return {.scratch_bytes = args.n * 8}; }
Footprint median_cpu_v1_footprint(const MedianArgs& args, const Target& target) {
  const int64_t size = size_of(args.dtype);
  return {.scratch_bytes = workers_of(args, target) * part_of_worker(args.n, size) * size};
}

}  // namespace rooflab::kernels
