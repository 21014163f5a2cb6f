// The first of many items for which something holds, found by all threads of the CPU.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/queue.h"

namespace rooflab::kernels {

// The smallest i in [0, count) for which holds(i); count if there is none. It does not depend on the threads.
template <class Holds>
int64_t find_first(Queue& queue, int64_t count, const Holds& holds) {
  constexpr int64_t kGrain = 16384;  // items that are worth waking a thread for
  constexpr int64_t kTogether = 64;  // items that are looked at with one branch for all
  std::atomic<int64_t> first{count};
  queue.parallel(count, kGrain, [&](int64_t begin, int64_t end, int) {
    int64_t i = begin;
    for (; end - i >= kTogether; i += kTogether) {
      bool any = false;
      for (int64_t k = 0; k < kTogether; ++k) any |= holds(i + k);
      if (any) break;
    }
    while (i < end && !holds(i)) ++i;
    int64_t known = first.load();
    while (i < end && i < known && !first.compare_exchange_weak(known, i)) {
    }
  });
  return first.load();
}

}  // namespace rooflab::kernels
