// The ladder of rope: see rope.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/rope/rope.h"

namespace rooflab::kernels {

using enum Device::Type;

void rope_cpu_v0_reference(const RopeArgs&, Queue&);
ROOFLAB_PER_ISA(rope_cpu_v1_simd, RopeArgs)
ROOFLAB_CUDA_RUNG(rope_cuda_v0_reference, RopeArgs)
ROOFLAB_CUDA_RUNG(rope_cuda_v1_vectorised, RopeArgs)

bool rope_cuda_v1_accepts(const RopeArgs& args, const Target&) {
  const int64_t size = size_of(args.dtype);
  const auto fits = [&](const void* data, const AttentionStrides& strides) {
    return is_aligned(data) && strides.batch * size % 16 == 0 && strides.head * size % 16 == 0 &&
           strides.token * size % 16 == 0;
  };
  return args.head_size / 2 * size % 16 == 0 && fits(args.x, args.x_strides) && fits(args.cos, args.cos_strides) &&
         fits(args.sin, args.sin_strides) && fits(args.y, args.y_strides);
}

const Ladder<RopeArgs> rope_ladder(
    "rope",
    {
        {"v1_vectorised", kCuda, "one thread per 16 bytes of each half; aligned halves of a multiple of 16 bytes",
         rope_cuda_v1_accepts, rope_cuda_v1_vectorised},
        {"v0_reference", kCuda, "one thread per pair of elements, in double", nullptr, rope_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads, a row at a time", nullptr, rope_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, in double", nullptr, rope_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
