// The ladder of random: see random.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/random/random.h"

namespace rooflab::kernels {

using enum Device::Type;

void random_cpu_v0_reference(const RandomArgs& args, Queue& queue);
ROOFLAB_PER_ISA(random_cpu_v1_blocked, RandomArgs)
ROOFLAB_CUDA_RUNG(random_cuda_v0_reference, RandomArgs)
ROOFLAB_CUDA_RUNG(random_cuda_v1_blocked, RandomArgs)

const Ladder<RandomArgs> random_ladder(
    "random",
    {
        {"v1_blocked", kCuda, "a whole Philox block per thread (4 of 32 random bits, 2 of 64), stored as one vector",
         nullptr, random_cuda_v1_blocked},
        {"v0_reference", kCuda, "one element per thread, each from its own Philox block", nullptr,
         random_cuda_v0_reference},
        {"v1_blocked", kCpu, "16 whole Philox blocks side by side, SIMD, all threads", nullptr, random_cpu_v1_blocked},
        {"v0_reference", kCpu, "one thread, one element at a time, each from its own Philox block", nullptr,
         random_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
