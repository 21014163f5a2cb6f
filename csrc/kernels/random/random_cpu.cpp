// Random numbers on the CPU: the reference.
#include "kernels/random/philox.h"

namespace rooflab::kernels {

void random_cpu_v0_reference(const RandomArgs& args, Queue&) {
  dispatch_random(args, [&]<RandomKind kKind, class T>() {
    for (int64_t i = 0; i < args.count; ++i) {
      T block[kPerBlock<T>];
      random_block<kKind>(args, static_cast<uint64_t>(i / kPerBlock<T>), block);
      static_cast<T*>(args.out)[i] = block[i % kPerBlock<T>];
    }
  });
}

}  // namespace rooflab::kernels
