// The ladder of attention_backward: see attention_backward.h for what it computes.
//
// [measured attention_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                  H4 D128 L512       H4 D128
//                        causal  L2048 causal
//                       float32       float32
//                       GFLOP/s       GFLOP/s
//   v0_composed             110           102
//   v1_flash                5.2           5.2
//   v2_flash_simd           338           376
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                        H4 D128  D64 L16384  D128 L16384  D128 L16384  D256 L16384
//                   L2048 causal        full         full       causal         full
//                        float32    bfloat16     bfloat16     bfloat16     bfloat16
//                        TFLOP/s     TFLOP/s      TFLOP/s      TFLOP/s      TFLOP/s
//   v0_composed              9.6           -          117           37          227
//   v1_flash                 7.7          19           20           20           18
//   v2_tensor_core             -         224          249          251          224
//   v3_hopper                  -         567          549          563          456
//   v4_split_bf16             21           -            -            -            -
//   torch                     18         492          604          586          360
//   torch flash                -         289          292          304          247
//   torch cudnn                -         493          600          579          372
// [end measured]
#include <algorithm>

#include "kernels/attention/attention_accepts.h"
#include "kernels/attention/attention_backward.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

void attention_backward_cpu_v1_flash(const AttentionBackwardArgs&, Queue&);
ROOFLAB_PER_ISA(attention_backward_cpu_v2_flash_simd, AttentionBackwardArgs)
Footprint attention_backward_cpu_v1_footprint(const AttentionBackwardArgs&, const Target&);
ROOFLAB_FOOTPRINT_PER_ISA(attention_backward_cpu_v2_footprint, AttentionBackwardArgs)
ROOFLAB_CUDA_RUNG(attention_backward_cuda_v1_flash, AttentionBackwardArgs)
ROOFLAB_CUDA_RUNG(attention_backward_cuda_v2_tensor_core, AttentionBackwardArgs)
ROOFLAB_CUDA_RUNG(attention_backward_cuda_v3_hopper, AttentionBackwardArgs)
ROOFLAB_CUDA_RUNG(attention_backward_cuda_v4_split_bf16, AttentionBackwardArgs)

namespace {

Footprint backward_footprint(const AttentionBackwardArgs& args, bool has_dq_sum) {
  return {.launches = 3,
          .scratch_bytes = attention_backward_scratch_floats(args, has_dq_sum) * static_cast<int64_t>(sizeof(float))};
}

bool not_double(const AttentionBackwardArgs& args, const Target&) { return args.forward.dtype != DType::kFloat64; }

bool attention_backward_cuda_v1_accepts(const AttentionBackwardArgs& args, const Target& target) {
  return attention_cuda_v1_accepts(args.forward, target);
}

Footprint attention_backward_cuda_v1_footprint(const AttentionBackwardArgs& args, const Target& target) {
  Footprint footprint = backward_footprint(args, false);
  const auto [rows, columns] = attention_backward_v1_tile(args.forward, target);
  footprint.shared_bytes = attention_v1_bytes(rows, columns, 2);
  return footprint;
}

bool attention_backward_cuda_v2_accepts(const AttentionBackwardArgs& args, const Target& target) {
  return attention_cuda_v2_accepts(args.forward, target) && has_vectors(args.dout, args.dout_strides) &&
         has_vectors(args.dq, args.dq_strides) && has_vectors(args.dk, args.dk_strides) &&
         has_vectors(args.dv, args.dv_strides);
}

Footprint attention_backward_cuda_v2_footprint(const AttentionBackwardArgs& args, const Target& target) {
  Footprint footprint = backward_footprint(args, !args.deterministic);
  const int64_t mask_words = attention_backward_v2_mask_words(args.forward);
  footprint.launches += mask_words > 0 ? 1 : 0;
  footprint.scratch_bytes += mask_words * 4;
  const int64_t head = attention_head_room(args.forward.head_size);
  footprint.shared_bytes = attention_backward_v2_bytes(head, attention_backward_v2_stages(head, target));
  footprint.fills = args.deterministic ? 0 : 1;
  return footprint;
}

bool attention_backward_cuda_v3_accepts(const AttentionBackwardArgs& args, const Target& target) {
  const AttentionArgs& forward = args.forward;
  return suits_hopper(forward, target) && query_fits_map(forward, args.dout, args.dout_strides) &&
         query_fits_map(forward, args.dq, args.dq_strides) && key_fits_map(forward, args.dk, args.dk_strides) &&
         key_fits_map(forward, args.dv, args.dv_strides);
}

Footprint attention_backward_cuda_v3_footprint(const AttentionBackwardArgs& args, const Target&) {
  Footprint footprint = backward_footprint(args, true);
  footprint.shared_bytes = kSharedBytesOfSm90a;
  return footprint;
}

bool attention_backward_cuda_v4_accepts(const AttentionBackwardArgs& args, const Target& target) {
  return target.code.number >= 80 && suits_split(args.forward);
}

Footprint attention_backward_cuda_v4_footprint(const AttentionBackwardArgs& args, const Target&) {
  return {.launches = 4,
          .scratch_bytes = attention_backward_v4_scratch_bytes(args),
          .shared_bytes = attention_backward_v4_bytes(attention_head_room(args.forward.head_size))};
}

}  // namespace

AttentionFlashTile attention_backward_v1_tile(const AttentionArgs& args, const Target& target) {
  if (args.head_size > 128) return flash_tile(32, 16, args.head_size, 2, target);
  return flash_tile(args.dtype == DType::kFloat32 ? 64 : 32, 32, args.head_size, 2, target);
}

int attention_backward_v2_stages(int64_t head, const Target& target) {
  constexpr int64_t kReserved = 1024;  // per block; without it a block could ask for a whole multiprocessor's memory
  const auto blocks = [&](int stages) {
    const int64_t bytes = attention_backward_v2_bytes(head, stages), most = target.shared_bytes_of_block;
    if (bytes > most) return int64_t{0};
    return std::min<int64_t>((most + kReserved) / (bytes + kReserved), attention_backward_v2_blocks(head));
  };
  return blocks(2) > 0 && blocks(2) == blocks(1) ? 2 : 1;
}

const Ladder<AttentionBackwardArgs> attention_backward_ladder(
    "attention_backward",
    {
        {"v4_split_bf16", kCuda,
         "float32 in three bfloat16 parts, six mma.sync for each product of v1; sm_80 and newer",
         attention_backward_cuda_v4_accepts, attention_backward_cuda_v4_split_bf16,
         attention_backward_cuda_v4_footprint},
        {"v3_hopper", kCuda, "wgmma and TMA, softmax under the products, dQ summed by bulk reductions; sm_90a, 16 bits",
         attention_backward_cuda_v3_accepts, attention_backward_cuda_v3_hopper, attention_backward_cuda_v3_footprint},
        {"v2_tensor_core", kCuda,
         "mma.sync: a block keeps its keys, dQ is summed in device memory; sm_80 and newer, 16 bits",
         attention_backward_cuda_v2_accepts, attention_backward_cuda_v2_tensor_core,
         attention_backward_cuda_v2_footprint},
        {"v1_flash", kCuda, "plain multiply-adds, scores recomputed tile by tile, two launches; D_h up to 256",
         attention_backward_cuda_v1_accepts, attention_backward_cuda_v1_flash, attention_backward_cuda_v1_footprint},
        {"v0_composed", kCuda, "five products and what is between them as separate ops", nullptr,
         composed<AttentionBackwardArgs>},
        {"v2_flash_simd", kCpu, "all five products by one SIMD register tile, all threads; not float64", not_double,
         attention_backward_cpu_v2_flash_simd, attention_backward_cpu_v2_footprint},
        {"v1_flash", kCpu, "scores recomputed tile by tile in plain loops, one thread; not float64", not_double,
         attention_backward_cpu_v1_flash, attention_backward_cpu_v1_footprint},
        {"v0_composed", kCpu, "five products and what is between them as separate ops", nullptr,
         composed<AttentionBackwardArgs>},
    });

}  // namespace rooflab::kernels
