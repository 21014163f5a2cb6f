// The ladder of randperm: see randperm.h for what it computes.
#include <algorithm>
#include <bit>

#include "kernels/common/ladder.h"
#include "kernels/randperm/randperm.h"
#include "kernels/sort/sort.h"

namespace rooflab::kernels {

using enum Device::Type;

void randperm_cpu_v0_reference(const RandomArgs&, Queue&);
ROOFLAB_PER_ISA(randperm_cpu_v1_buckets, RandomArgs)
ROOFLAB_CUDA_RUNG(randperm_cuda_v0_reference, RandomArgs)
ROOFLAB_CUDA_RUNG(randperm_cuda_v1_radix, RandomArgs)

RandpermPlan randperm_plan(int64_t count, const Target& target) {
  constexpr int64_t kBucket = 1024, kPortion = 16384;  // items
  constexpr int kMostBits = 11;                        // more places to write to would not stay in a cache
  RandpermPlan plan{};
  while (plan.bits < kMostBits && count >> plan.bits > kBucket) ++plan.bits;
  plan.portions = std::clamp<int64_t>(count / kPortion, 1, 4 * target.threads);
  const int64_t mean = count >> plan.bits;
  plan.room = plan.bits == 0 ? count : mean + mean / 4 + 256;
  return plan;
}

int randperm_digits(int64_t count) {
  int digits = 1;
  while (count >> 8 * digits > kRandpermAlike) ++digits;
  return digits;
}

int64_t randperm_count_bytes(int64_t count) {
  SortArgs line{};
  line.outer = line.inner = 1;
  line.n = count;
  return sort_count_bytes(line);
}

namespace {

Footprint randperm_cpu_v1_footprint(const RandomArgs& args, const Target& target) {
  const RandpermPlan plan = randperm_plan(args.count, target);
  return {.scratch_bytes = args.count * 4 + ((plan.portions << plan.bits) + 1) * 8 +
                           2 * target.threads * part_of_worker(plan.room, 8) * 8};
}

Footprint randperm_cuda_v0_footprint(const RandomArgs& args, const Target&) {
  return {.launches = 2, .scratch_bytes = args.count * 8};
}

Footprint randperm_cuda_v1_footprint(const RandomArgs& args, const Target&) {
  return {.launches = 2 + 3 * randperm_digits(args.count),
          .scratch_bytes = args.count * 8 + randperm_count_bytes(args.count)};
}

}  // namespace

const Ladder<RandomArgs> randperm_ladder(
    "randperm",
    {
        {"v1_radix", kCuda, "draws are sorted by as few digits as leave few alike, which a thread each then ranks",
         nullptr, randperm_cuda_v1_radix, randperm_cuda_v1_footprint},
        {"v0_reference", kCuda, "one thread per number counts those that drew less: n^2 comparisons", nullptr,
         randperm_cuda_v0_reference, randperm_cuda_v0_footprint},
        {"v1_buckets", kCpu,
         "all threads throw numbers into buckets by the upper bits of their draws, then sort each bucket in a cache",
         nullptr, randperm_cpu_v1_buckets, randperm_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread, by comparisons", nullptr, randperm_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
