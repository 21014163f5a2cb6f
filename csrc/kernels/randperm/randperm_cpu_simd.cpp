// The SIMD rung of randperm on the CPU: see randperm.h for what it computes. Draws are spread evenly, so their upper
// bits tell about where each one belongs: first in which bucket, then in which slot of the bucket, for which there is
// room in a cache. What is left to do in a slot are a few comparisons.
#include "kernels/random/philox_simd.h"
#include "kernels/randperm/randperm.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Calls f(number, draw) for the numbers in [begin, end). begin is a multiple of 4.
template <class F>
ROOFLAB_INLINE void each_draw(const RandomArgs& args, int64_t begin, int64_t end, F&& f) {
  for (int64_t at = begin; at < end; at += 4 * kGroup) {
    const PhiloxGroup group(args, static_cast<uint64_t>(at / 4));
    uint32_t draws[kGroup][4];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < kGroup; ++j) draws[j][i] = group.words[i][j];
    const int64_t count = smaller(end - at, 4 * kGroup);
    for (int64_t i = 0; i < count; ++i) f(at + i, draws[i / 4][i % 4]);
  }
}

// Draws again, which is rare, and would cost a lot if the compiler did it before it is asked for.
[[gnu::noinline]] bool is_before_alike(const DrawnOrder& order, uint64_t a, uint64_t b) { return order(a, b); }

// Compares neighbours, in turns those from an even and from an odd place on. No branch depends on them, and then few
// are left that are out of order.
void put_in_order(uint64_t* items, int64_t n) {
  constexpr int kTurns = 3;
  for (int turn = 0; turn < kTurns; ++turn)
    for (int64_t i = turn % 2; i + 1 < n; i += 2) {
      const uint64_t a = items[i], b = items[i + 1];
      items[i] = a < b ? a : b;
      items[i + 1] = a < b ? b : a;
    }
}

// Puts n items in order, which are alike in their first `bits` bits, and turns them into their numbers. There is room
// for n more, and for two slots an item.
void sort_bucket(uint64_t* items, int64_t n, int bits, int64_t room, uint64_t* spread, uint32_t* slots,
                 const DrawnOrder& order) {
  const auto is_before = [&](uint64_t a, uint64_t b) __attribute__((always_inline)) {
    return (a ^ b) >> 32 != 0 ? a < b : is_before_alike(order, a, b);
  };
  const uint64_t* from = items;
  if (n > 1 && n <= room) {
    const int slot_bits = 64 - __builtin_clzll(static_cast<uint64_t>(n));
    const auto slot = [&](uint64_t item) { return item << bits >> (64 - slot_bits); };
    for (int64_t s = 0; s < int64_t{1} << slot_bits; ++s) slots[s] = 0;
    for (int64_t i = 0; i < n; ++i) ++slots[slot(items[i])];
    uint32_t next = 0;
    for (int64_t s = 0; s < int64_t{1} << slot_bits; ++s) {
      const uint32_t count = slots[s];
      slots[s] = next;
      next += count;
    }
    for (int64_t i = 0; i < n; ++i) spread[slots[slot(items[i])]++] = items[i];
    from = spread;
    put_in_order(spread, n);
  }
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t item = from[i];
    int64_t at = i;
    for (; at > 0 && is_before(item, items[at - 1]); --at) items[at] = items[at - 1];
    items[at] = item;
  }
  for (int64_t i = 0; i < n; ++i) items[i] = static_cast<uint32_t>(items[i]);
}

}  // namespace

void randperm_cpu_v1_buckets(const RandomArgs& args, Queue& queue) {
  const RandpermPlan plan = randperm_plan(args.count, queue.target());
  const int64_t n = args.count, buckets = int64_t{1} << plan.bits, workers = queue.target().threads;
  const int64_t part = part_of_worker(plan.room, 8);
  uint32_t* draws = queue.scratch<uint32_t>(n);
  int64_t* places = queue.scratch<int64_t>(plan.portions * buckets + 1);
  uint64_t* spread = queue.scratch<uint64_t>(2 * workers * part);
  uint64_t* items = static_cast<uint64_t*>(args.out);
  const auto bucket = [&](uint32_t draw) { return uint64_t{draw} << plan.bits >> 32; };
  const auto begin_of = [&](int64_t portion) {
    return portion == plan.portions ? n : n / plan.portions * portion / 64 * 64;
  };

  queue.parallel(plan.portions, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t* counts = places + p * buckets;
      for (int64_t b = 0; b < buckets; ++b) counts[b] = 0;
      each_draw(args, begin_of(p), begin_of(p + 1), [&](int64_t i, uint32_t draw) {
        draws[i] = draw;
        ++counts[bucket(draw)];
      });
    }
  });
  int64_t next = 0;
  for (int64_t b = 0; b < buckets; ++b)
    for (int64_t p = 0; p < plan.portions; ++p) {
      const int64_t count = places[p * buckets + b];
      places[p * buckets + b] = next;
      next += count;
    }
  queue.parallel(plan.portions, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = begin_of(p); i < begin_of(p + 1); ++i)
        items[places[p * buckets + bucket(draws[i])]++] = drawn_item(draws[i], i);
  });
  // The last portion's place of a bucket is now where the bucket ends.
  const int64_t* ends = places + (plan.portions - 1) * buckets;
  queue.parallel(buckets, 4, workers, [&](int64_t begin, int64_t end, int worker) {
    uint64_t* own = spread + 2 * worker * part;
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b == 0 ? 0 : ends[b - 1];
      sort_bucket(items + first, ends[b] - first, plan.bits, plan.room, own, reinterpret_cast<uint32_t*>(own + part),
                  DrawnOrder(args));
    }
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
