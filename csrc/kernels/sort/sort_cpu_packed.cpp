// The rungs of sort on the CPU that move numbers, not positions: see sort.h. An element of up to 32 bits and its place
// become one number of 64 bits: the element above, in bits that compare as an unsigned number, and its place below, so
// that equal elements keep their order.
#include <algorithm>
#include <bit>
#include <utility>

#include "core/dispatch.h"
#include "kernels/common/order.h"
#include "kernels/sort/sort.h"
#include "kernels/sort/sort_key.h"

namespace rooflab::kernels {
namespace {

using kernels::key_of;  // of integers and bool, beside that of float
uint32_t key_of(float x) { return key_of_float(std::bit_cast<uint32_t>(x), x != x); }

// By one digit after another, the lowest first; each pass keeps the order of the one before. Returns where the sorted
// numbers are: `items` or `other`. Their lower halves are in order already.
uint64_t* sort_by_digits(uint64_t* items, uint64_t* other, int64_t n) {
  constexpr int kBits = 8, kDigits = 1 << kBits, kPasses = 32 / kBits;
  const auto digit = [](uint64_t item, int pass) { return item >> (32 + pass * kBits) & (kDigits - 1); };
  int64_t places[kPasses][kDigits] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int pass = 0; pass < kPasses; ++pass) ++places[pass][digit(items[i], pass)];
  for (int pass = 0; pass < kPasses; ++pass) {
    if (places[pass][digit(items[0], pass)] == n) continue;  // all have this digit
    int64_t next = 0;
    for (int64_t& place : places[pass]) next += std::exchange(place, next);
    for (int64_t i = 0; i < n; ++i) other[places[pass][digit(items[i], pass)]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

// Calls order(items, worker), which returns where the first args.keep of them are in order, for the items of each line.
template <class T, class Order>
void sort_lines(const SortArgs& args, Queue& queue, int64_t workers, uint64_t* items, const Order& order) {
  constexpr int64_t kGrain = 4096;  // elements that are worth waking a thread for
  const uint32_t flip = args.descending ? ~0u : 0;
  queue.parallel(args.outer * args.inner, std::max<int64_t>(kGrain / args.n, 1), workers,
                 [&](int64_t begin, int64_t end, int worker) {
                   uint64_t* own = items + worker * args.n;
                   for (int64_t line = begin; line < end; ++line) {
                     const int64_t outer = line / args.inner, i = line % args.inner;
                     const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + i * args.inner_stride;
                     for (int64_t k = 0; k < args.n; ++k)
                       own[k] = uint64_t{key_of(static_cast<comparable_t<T>>(x[k * args.n_stride])) ^ flip} << 32 | k;
                     const uint64_t* sorted = order(own, worker);
                     for (int64_t k = 0; k < args.keep; ++k) {
                       const int64_t at = (outer * args.keep + k) * args.inner + i, place = sorted[k] & 0xffffffffu;
                       args.indices[at] = place;
                       static_cast<T*>(args.values)[at] = x[place * args.n_stride];
                     }
                   }
                 });
}

int64_t workers_of(const SortArgs& args, const Target& target) {
  return std::min<int64_t>(args.outer * args.inner, target.threads);
}

// `buffers` arrays of a line's items for each worker.
Footprint footprint(const SortArgs& args, const Target& target, int buffers) {
  return {.scratch_bytes = buffers * workers_of(args, target) * args.n * static_cast<int64_t>(sizeof(uint64_t))};
}

template <class Order>
void run(const SortArgs& args, Queue& queue, uint64_t* items, const Order& order) {
  const int64_t workers = workers_of(args, queue.target());
  dispatch_all(args.dtype, "sort", [&]<class T>() {
    if constexpr (sizeof(T) <= 4) sort_lines<T>(args, queue, workers, items, order);
  });
}

}  // namespace

void sort_cpu_v2_packed(const SortArgs& args, Queue& queue) {
  uint64_t* items = queue.scratch<uint64_t>(workers_of(args, queue.target()) * args.n);
  run(args, queue, items, [&](uint64_t* own, int) {
    if (args.keep < args.n)
      std::partial_sort(own, own + args.keep, own + args.n);
    else
      std::sort(own, own + args.n);
    return own;
  });
}

void sort_cpu_v3_radix(const SortArgs& args, Queue& queue) {
  const int64_t all = workers_of(args, queue.target()) * args.n;
  uint64_t* items = queue.scratch<uint64_t>(2 * all);
  run(args, queue, items,
      [&](uint64_t* own, int worker) { return sort_by_digits(own, items + all + worker * args.n, args.n); });
}

Footprint sort_cpu_v2_footprint(const SortArgs& args, const Target& target) { return footprint(args, target, 1); }
Footprint sort_cpu_v3_footprint(const SortArgs& args, const Target& target) { return footprint(args, target, 2); }

}  // namespace rooflab::kernels
