// The rungs of sort on the CPU that move numbers, not positions: see sort.h. An element and its place become one item,
// a number of 64 bits for elements of up to 32, else of 128: the element above, in bits that compare as an unsigned
// number, and its place below, so that equal elements keep their order.
#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "core/dispatch.h"
#include "kernels/sort/sort.h"
#include "kernels/sort/sort_key.h"

namespace rooflab::kernels {
namespace {

using kernels::key_of;  // of integers and bool, beside that of float
uint32_t key_of(float x) { return key_of_float(std::bit_cast<uint32_t>(x), x != x); }
uint64_t key_of(double x) { return key_of_float(std::bit_cast<uint64_t>(x), x != x); }
template <class T>
requires(std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) uint16_t key_of(T x) {
  const auto number = static_cast<float>(x);
  return key_of_float(std::bit_cast<uint16_t>(x), number != number);
}

template <class T>
using item_t = std::conditional_t<sizeof(T) <= 4, uint64_t, unsigned __int128>;
template <class Item>
constexpr int kKeyBits = 4 * sizeof(Item);  // half of them; the place has the others

// By one digit after another, the lowest first; each pass keeps the order of the one before. Returns where the sorted
// items are: `items` or `other`. Their places are in order already.
template <class T, class Item = item_t<T>>
Item* sort_by_digits(Item* items, Item* other, int64_t n) {
  constexpr int kBits = 8, kDigits = 1 << kBits, kPasses = sizeof(T);
  const auto digit = [](Item item, int pass) {
    return static_cast<int>(item >> (kKeyBits<Item> + pass * kBits) & (kDigits - 1));
  };
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
void sort_lines(const SortArgs& args, Queue& queue, int64_t workers, item_t<T>* items, const Order& order) {
  using Item = item_t<T>;
  constexpr int64_t kGrain = 4096;  // elements that are worth waking a thread for
  constexpr Item kPlace = ~Item{0} >> kKeyBits<Item>;
  const uint64_t flip = args.descending ? ~uint64_t{0} >> (64 - 8 * sizeof(T)) : 0;
  queue.parallel(args.outer * args.inner, std::max<int64_t>(kGrain / args.n, 1), workers,
                 [&](int64_t begin, int64_t end, int worker) {
                   Item* own = items + worker * args.n;
                   for (int64_t line = begin; line < end; ++line) {
                     const int64_t outer = line / args.inner, i = line % args.inner;
                     const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + i * args.inner_stride;
                     for (int64_t k = 0; k < args.n; ++k)
                       own[k] = Item{key_of(x[k * args.n_stride]) ^ flip} << kKeyBits<Item> | k;
                     const Item* sorted = order(own, worker);
                     for (int64_t k = 0; k < args.keep; ++k) {
                       const int64_t at = (outer * args.keep + k) * args.inner + i,
                                     place = static_cast<int64_t>(sorted[k] & kPlace);
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
  const int64_t item = size_of(args.dtype) <= 4 ? 8 : 16;
  return {.scratch_bytes = buffers * workers_of(args, target) * args.n * item};
}

}  // namespace

void sort_cpu_v2_packed(const SortArgs& args, Queue& queue) {
  const int64_t workers = workers_of(args, queue.target());
  dispatch_all(args.dtype, "sort", [&]<class T>() {
    sort_lines<T>(args, queue, workers, queue.scratch<item_t<T>>(workers * args.n), [&](item_t<T>* own, int) {
      if (args.keep < args.n)
        std::partial_sort(own, own + args.keep, own + args.n);
      else
        std::sort(own, own + args.n);
      return own;
    });
  });
}

void sort_cpu_v3_radix(const SortArgs& args, Queue& queue) {
  const int64_t workers = workers_of(args, queue.target()), all = workers * args.n;
  dispatch_all(args.dtype, "sort", [&]<class T>() {
    item_t<T>* items = queue.scratch<item_t<T>>(2 * all);
    sort_lines<T>(args, queue, workers, items, [&](item_t<T>* own, int worker) {
      return sort_by_digits<T>(own, items + all + worker * args.n, args.n);
    });
  });
}

Footprint sort_cpu_v2_footprint(const SortArgs& args, const Target& target) { return footprint(args, target, 1); }
Footprint sort_cpu_v3_footprint(const SortArgs& args, const Target& target) { return footprint(args, target, 2); }

}  // namespace rooflab::kernels
