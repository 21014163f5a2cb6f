// The ladder of gemma3_decode: see gemma3_decode.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/gemma3_decode/gemma3_decode.h"
#include "kernels/gemma3_decode/gemma3_decode_plan.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_CUDA_RUNG(gemma3_decode_cuda_v1_one_launch, Gemma3DecodeArgs)

namespace {

// Weights and rows of the caches are loaded 16 bytes at a time, vectors 8.
bool can_load(const Gemma3DecodeLayer& layer) {
  for (const void* vector : {layer.input_norm, layer.post_attention_norm, layer.pre_feedforward_norm,
                             layer.post_feedforward_norm, layer.q_norm, layer.k_norm, layer.cos, layer.sin})
    if (!is_aligned(vector, 8)) return false;
  const auto rows_aligned = [](const AttentionStrides& s) {
    return s.batch % 8 == 0 && s.head % 8 == 0 && s.token % 8 == 0;
  };
  return is_aligned(layer.qkv) && is_aligned(layer.o) && is_aligned(layer.gate_up) && is_aligned(layer.down) &&
         is_aligned(layer.k_cache) && is_aligned(layer.v_cache) && rows_aligned(layer.k_strides) &&
         rows_aligned(layer.v_strides);
}

bool gemma3_decode_cuda_v1_accepts(const Gemma3DecodeArgs& args, const Target& target) {
  if (target.code.number < 90 || size_of(args.dtype) != 2) return false;
  if (args.dtype != DType::kFloat16 && args.dtype != DType::kBFloat16) return false;
  const bool sizes = args.batch <= kDecodeMaxTexts && args.model <= kDecodeMaxModel && args.model % 16 == 0 &&
                     args.intermediate % 16 == 0 && (args.head_size == 128 || args.head_size == 256) &&
                     args.heads / args.kv_heads <= 16 && args.batch * args.kv_heads <= target.sm_count &&
                     is_aligned(args.x);
  if (!sizes) return false;
  for (int i = 0; i < args.count; ++i) {
    if (!can_load(args.layers[i])) return false;
  }
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
         "one kernel for all layers, whose blocks load weights ahead and pass numbers on; sm_90, 16 bits, B <= 16",
         gemma3_decode_cuda_v1_accepts, gemma3_decode_cuda_v1_one_launch, gemma3_decode_cuda_v1_footprint},
        {"v0_composed", kCuda, "composed of ops that end one step and begin the next: 9 or 10 launches a layer",
         nullptr, composed<Gemma3DecodeArgs>},
        {"v0_composed", kCpu, "the steps as separate ops", nullptr, composed<Gemma3DecodeArgs>},
    });

}  // namespace rooflab::kernels
