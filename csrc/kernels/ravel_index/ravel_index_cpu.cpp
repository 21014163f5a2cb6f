// ravel_index on the CPU: see ravel_index.h for what it computes.
#include <atomic>

#include "kernels/ravel_index/ravel_index.h"

namespace rooflab::kernels {

void ravel_index_cpu_v0_reference(const RavelIndexArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 4096;  // numbers that are worth waking a thread for
  std::atomic<bool> are_inside = true;
  queue.parallel(args.count(), kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      args.y[i] = place_at(args, i, [&](const IndexLayout&, int64_t) { are_inside = false; });
  });
  for (int a = 0; !are_inside && a < args.array_count; ++a) check_indices(args.arrays[a], queue);  // names the first
}

}  // namespace rooflab::kernels
