// ravel_index on the CPU: see ravel_index.h for what it computes.
#include <atomic>

#include "kernels/ravel_index/ravel_index.h"

namespace rooflab::kernels {
namespace {

// Of the first array that has a number outside, the first such number.
[[noreturn]] void raise_first(RavelIndexArgs args) {
  for (int a = 0; a < args.array_count; ++a) {
    args.arrays[0] = args.arrays[a];
    RavelIndexArgs one = args;
    one.array_count = 1;
    for (int64_t i = 0; i < args.count; ++i)
      place_at(one, i, [](const IndexedDim& array, int64_t number) { raise(out_of_range(array, number)); });
  }
  __builtin_unreachable();
}

}  // namespace

void ravel_index_cpu_v0_reference(const RavelIndexArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 4096;  // numbers that are worth waking a thread for
  std::atomic<bool> are_inside = true;
  queue.parallel(args.count, kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      args.y[i] = place_at(args, i, [&](const IndexedDim&, int64_t) { are_inside = false; });
  });
  if (!are_inside) raise_first(args);
}

}  // namespace rooflab::kernels
