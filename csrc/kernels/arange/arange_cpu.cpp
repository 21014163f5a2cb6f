// arange on the CPU: see arange.h for what it computes.
#include "kernels/arange/arange_element.h"

namespace rooflab::kernels {

void arange_cpu_v0_reference(const ArangeArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 16384;  // elements that are worth waking a thread for
  queue.parallel(args.count, kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) arange_element(args, i);
  });
}

}  // namespace rooflab::kernels
