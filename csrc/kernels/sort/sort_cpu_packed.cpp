// The rungs of sort on the CPU that move numbers, not positions: see sort.h. An element and its place become one item,
// a number of 64 bits for elements of up to 32, else of 128: the element above, in bits that compare as an unsigned
// number, and its place below, so that equal elements keep their order. Where no positions are asked for, an item is
// those bits alone.
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "core/dispatch.h"
#include "kernels/sort/sort.h"
#include "kernels/sort/sort_key_cpu.h"

namespace rooflab::kernels {
namespace {

template <class T>
using item_t = std::conditional_t<sizeof(T) <= 4, uint64_t, unsigned __int128>;
template <class Item>
constexpr int kKeyBits = 4 * sizeof(Item);  // half of them; the place has the others

// By one digit after another, the lowest first; each pass keeps the order of the one before. Returns where the sorted
// items are: `items` or `other`. Their places are in order already.
template <class T, class Item>
Item* sort_by_digits(Item* items, Item* other, int64_t n) {
  constexpr int kBits = 8, kDigits = 1 << kBits, kPasses = sizeof(T);
  constexpr int kLowest = std::is_same_v<Item, sort_key_t<T>> ? 0 : kKeyBits<Item>;
  const auto digit = [](Item item, int pass) {
    return static_cast<int>(item >> (kLowest + pass * kBits) & (kDigits - 1));
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

// The pairs (low, high) of Batcher's odd-even mergesort ("Sorting networks and their applications", 1968): kWidth items
// are in order when those of each pair have been, one pair after another.
template <int kWidth>
constexpr auto kPairs = [] {
  constexpr int kCount = kWidth == 4 ? 5 : kWidth == 8 ? 19 : 63;
  std::array<std::array<int, 2>, kCount> pairs{};
  int count = 0;
  for (int sorted = 1; sorted < kWidth; sorted *= 2)
    for (int apart = sorted; apart >= 1; apart /= 2)
      for (int first = apart % sorted; first + apart < kWidth; first += 2 * apart)
        for (int low = first; low < first + apart && low + apart < kWidth; ++low)
          if (low / (2 * sorted) == (low + apart) / (2 * sorted)) pairs[count++] = {low, low + apart};
  return pairs;
}();

// Sorts n <= kWidth items. No branch depends on them, and so none is predicted wrongly.
template <int kWidth, class Item>
void sort_network(Item* items, int64_t n) {
  Item all[kWidth];
  for (int i = 0; i < kWidth; ++i) all[i] = i < n ? items[i] : ~Item{0};
  const auto put_in_order = [&](Item& low, Item& high) {
    const Item a = low, b = high;
    low = a < b ? a : b;
    high = a < b ? b : a;
  };
  [&]<size_t... kPair>(std::index_sequence<kPair...>) {
    (put_in_order(all[kPairs<kWidth>[kPair][0]], all[kPairs<kWidth>[kPair][1]]), ...);
  }
  (std::make_index_sequence<kPairs<kWidth>.size()>{});
  std::copy_n(all, n, items);
}

// Sorts up to kSortFew items.
template <class Item>
void sort_few(Item* items, int64_t n) {
  if (n <= 4)
    sort_network<4>(items, n);
  else if (n <= 8)
    sort_network<8>(items, n);
  else
    sort_network<16>(items, n);
}

// Puts the first `keep` <= kSortFew of n items in order. Most others are not among them, which one comparison shows;
// those that are take their places among them in steps without a branch.
template <class Item>
void select_few(Item* items, int64_t keep, int64_t n) {
  sort_few(items, keep);
  for (int64_t i = keep; i < n; ++i) {
    const Item item = items[i];
    if (item >= items[keep - 1]) continue;
    for (int64_t k = keep - 1; k > 0; --k) items[k] = std::min(items[k], std::max(items[k - 1], item));
    items[0] = std::min(items[0], item);
  }
}

// The items of n elements, which are `step` apart.
template <class T, class Item, class Step>
void pack(const T* x, Step step, int64_t n, sort_key_t<T> flip, Item* items) {
  constexpr bool kHasPlace = !std::is_same_v<Item, sort_key_t<T>>;
  for (int64_t k = 0; k < n; ++k) {
    const sort_key_t<T> key = key_in_order(x[k * step], !kHasPlace) ^ flip;
    if constexpr (kHasPlace)
      items[k] = Item{key} << kKeyBits<Item> | k;
    else
      items[k] = key;
  }
}

// Calls order(items, worker), which returns where the first args.keep of them are in order, for the items of each line.
template <class T, class Item, class Order>
void sort_lines(const SortArgs& args, Queue& queue, int64_t workers, Item* items, const Order& order) {
  constexpr int64_t kGrain = 4096;  // elements that are worth waking a thread for
  constexpr bool kHasPlace = !std::is_same_v<Item, sort_key_t<T>>;
  const auto flip = static_cast<sort_key_t<T>>(args.descending ? ~uint64_t{0} : 0);
  queue.parallel(args.outer * args.inner, std::max<int64_t>(kGrain / args.n, 1), workers,
                 [&](int64_t begin, int64_t end, int worker) {
                   Item* own = items + worker * part_of_worker(args.n, sizeof(Item));
                   for (int64_t line = begin; line < end; ++line) {
                     const int64_t outer = line / args.inner, i = line % args.inner;
                     const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + i * args.inner_stride;
                     using Adjacent = std::integral_constant<int64_t, 1>;
                     args.n_stride == 1 ? pack(x, Adjacent{}, args.n, flip, own)
                                        : pack(x, args.n_stride, args.n, flip, own);
                     const Item* sorted = order(own, worker);
                     for (int64_t k = 0; k < args.keep; ++k) {
                       const int64_t at = (outer * args.keep + k) * args.inner + i;
                       T& value = static_cast<T*>(args.values)[at];
                       if constexpr (kHasPlace) {
                         args.indices[at] = static_cast<int64_t>(sorted[k] & ~Item{0} >> kKeyBits<Item>);
                         value = x[args.indices[at] * args.n_stride];
                       } else {
                         value = element_of<T>(sorted[k] ^ flip);
                       }
                     }
                   }
                 });
}

int64_t workers_of(const SortArgs& args, const Target& target) {
  return std::min<int64_t>(args.outer * args.inner, target.threads);
}

// Calls f.operator()<T, Item>() for the elements and the items.
template <class F>
void dispatch_items(const SortArgs& args, F&& f) {
  dispatch_all(args.dtype, "sort", [&]<class T>() {
    if (args.indices)
      f.template operator()<T, item_t<T>>();
    else
      f.template operator()<T, sort_key_t<T>>();
  });
}

// `buffers` arrays of a line's items for each worker.
Footprint footprint(const SortArgs& args, const Target& target, int buffers) {
  const int64_t size = size_of(args.dtype), item = !args.indices ? size : size <= 4 ? 8 : 16;
  return {.scratch_bytes = buffers * workers_of(args, target) * part_of_worker(args.n, item) * item};
}

}  // namespace

void sort_cpu_v2_packed(const SortArgs& args, Queue& queue) {
  const int64_t workers = workers_of(args, queue.target());
  dispatch_items(args, [&]<class T, class Item>() {
    sort_lines<T>(args, queue, workers, queue.scratch<Item>(workers * part_of_worker(args.n, sizeof(Item))),
                  [&](Item* own, int) {
                    if (args.n <= kSortFew)
                      sort_few(own, args.n);
                    else if (args.keep <= kSortFew)
                      select_few(own, args.keep, args.n);
                    else if (args.keep < args.n)
                      std::partial_sort(own, own + args.keep, own + args.n);
                    else
                      std::sort(own, own + args.n);
                    return own;
                  });
  });
}

void sort_cpu_v3_radix(const SortArgs& args, Queue& queue) {
  const int64_t workers = workers_of(args, queue.target());
  dispatch_items(args, [&]<class T, class Item>() {
    const int64_t part = part_of_worker(args.n, sizeof(Item)), all = workers * part;
    Item* items = queue.scratch<Item>(2 * all);
    sort_lines<T>(args, queue, workers, items,
                  [&](Item* own, int worker) { return sort_by_digits<T>(own, items + all + worker * part, args.n); });
  });
}

Footprint sort_cpu_v2_footprint(const SortArgs& args, const Target& target) { return footprint(args, target, 1); }
Footprint sort_cpu_v3_footprint(const SortArgs& args, const Target& target) { return footprint(args, target, 2); }

}  // namespace rooflab::kernels
