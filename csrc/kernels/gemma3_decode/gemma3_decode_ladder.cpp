// The ladder of gemma3_decode: see gemma3_decode.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/gemma3_decode/gemma3_decode.h"
#include "kernels/gemma3_decode/gemma3_decode_plan.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_CUDA_RUNG(gemma3_decode_cuda_v1_one_launch, Gemma3DecodeArgs)

namespace {

bool gemma3_decode_cuda_v1_accepts(const Gemma3DecodeArgs& args, const Target& target) {
  if (target.code.number < 90 || size_of(args.dtype) != 2) return false;
  if (args.dtype != DType::kFloat16 && args.dtype != DType::kBFloat16) return false;
  const bool sizes = args.batch <= kDecodeBatch && args.model <= kDecodeMaxModel && args.model % 16 == 0 &&
                     args.intermediate % 16 == 0 && (args.head_size == 128 || args.head_size == 256) &&
                     args.heads / args.kv_heads <= 16 && args.batch * args.kv_heads <= target.sm_count;
  if (!sizes) return false;
  const auto rows_aligned = [](const AttentionStrides& s) {
    return s.batch % 8 == 0 && s.head % 8 == 0 && s.token % 8 == 0;
  };
  const bool aligned = is_aligned(args.x) && is_aligned(args.qkv) && is_aligned(args.o) && is_aligned(args.gate_up) &&
                       is_aligned(args.down) && is_aligned(args.k_cache) && is_aligned(args.v_cache) &&
                       rows_aligned(args.k_strides) && rows_aligned(args.v_strides);
  if (!aligned) return false;
  const DecodePlan plan = decode_plan(args, target);
  for (const DecodeShare* share : {&plan.qkv, &plan.o, &plan.gate_up, &plan.down})
    if (share->tiles > kDecodeMaxTiles || share->blocks() > plan.blocks) return false;
  constexpr int64_t kStaticBytes = 1024;  // static shared memory of the kernel
  return plan.shared_bytes + kStaticBytes <= target.shared_bytes_of_block;
}

Footprint gemma3_decode_cuda_v1_footprint(const Gemma3DecodeArgs& args, const Target& target) {
  const DecodePlan plan = decode_plan(args, target);
  return {.scratch_bytes = plan.scratch_bytes(), .shared_bytes = plan.shared_bytes};
}

}  // namespace

const Ladder<Gemma3DecodeArgs> gemma3_decode_ladder(
    "gemma3_decode",
    {
        {"v1_one_launch", kCuda,
         "one kernel, whose blocks keep the weights and wait for each other five times; sm_90, 16 bits, B <= 8",
         gemma3_decode_cuda_v1_accepts, gemma3_decode_cuda_v1_one_launch, gemma3_decode_cuda_v1_footprint},
        {"v0_composed", kCuda, "the steps as separate ops: 13 launches", nullptr, composed<Gemma3DecodeArgs>},
        {"v0_composed", kCpu, "the steps as separate ops", nullptr, composed<Gemma3DecodeArgs>},
    });

}  // namespace rooflab::kernels
