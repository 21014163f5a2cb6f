// randperm on the CPU: the reference.
#include <algorithm>

#include "kernels/randperm/randperm.h"

namespace rooflab::kernels {

void randperm_cpu_v0_reference(const RandomArgs& args, Queue&) {
  uint64_t* items = static_cast<uint64_t*>(args.out);
  for (int64_t i = 0; i < args.count; ++i) {
    const PhiloxBlock block(args.seed, stream_of(args), static_cast<uint64_t>(i / 4));
    items[i] = drawn_item(block.words[i % 4], i);
  }
  std::sort(items, items + args.count, DrawnOrder(args));
  for (int64_t i = 0; i < args.count; ++i) items[i] = static_cast<uint32_t>(items[i]);
}

}  // namespace rooflab::kernels
