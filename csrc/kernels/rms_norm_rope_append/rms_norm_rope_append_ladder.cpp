// The ladder of rms_norm_rope_append: see rms_norm_rope_append.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/rms_norm_rope_append/rms_norm_rope_append.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_CUDA_RUNG(rms_norm_rope_append_cuda_v1_warp_per_row, RmsNormRopeAppendArgs)

namespace {

bool rms_norm_rope_append_cuda_v1_accepts(const RmsNormRopeAppendArgs& args, const Target& target) {
  constexpr int64_t kMostBlocks = 65535;  // along y and along z
  const KvAppendArgs& append = args.append;
  return rms_norm_rope_cuda_v1_accepts(args.q, target) && kv_append_cuda_v1_accepts(append, target) &&
         is_aligned(args.k_weight) && append.length <= append.capacity && append.length <= kMostBlocks &&
         append.batch <= kMostBlocks;
}

}  // namespace

const Ladder<RmsNormRopeAppendArgs> rms_norm_rope_append_ladder(
    "rms_norm_rope_append",
    {
        {"v1_warp_per_row", kCuda, "a warp holds a row of queries, keys or values; aligned rows, room for all tokens",
         rms_norm_rope_append_cuda_v1_accepts, rms_norm_rope_append_cuda_v1_warp_per_row},
        {"v0_composed", kCuda, "rms_norm_rope twice, and kv_append", nullptr, composed<RmsNormRopeAppendArgs>},
        {"v0_composed", kCpu, "rms_norm_rope twice, and kv_append", nullptr, composed<RmsNormRopeAppendArgs>},
    });

}  // namespace rooflab::kernels
