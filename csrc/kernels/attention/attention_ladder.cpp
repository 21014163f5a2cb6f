// The ladder of attention: see attention.h for what it computes.
//
// [measured attention] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                                            decode B8
//                     H4 D128       H4 D128  H4:1 D256
//                  L1024 full  L1024 causal      L4096
//                     float32       float32   bfloat16
//                     GFLOP/s       GFLOP/s  % of copy
//   v0_composed           259           112         28
//   v1_flash              8.9           8.8        3.1
//   v2_flash_simd         388           356        6.5
//   v3_split_kv             -             -         48
//   copy, GB/s              -             -         38
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                                                                                  decode B64
//                      H4 D128  D64 L16384  D128 L16384  D128 L16384  D256 L16384  H32:8 D128  decode B8 H8
//                   L4096 full        full         full       causal         full       L4096     D64 L4096
//                      float32    bfloat16     bfloat16     bfloat16     bfloat16    bfloat16       float32
//                      TFLOP/s     TFLOP/s      TFLOP/s      TFLOP/s      TFLOP/s   % of copy     % of copy
//   v0_composed             30          63          123           35          239          88            71
//   v1_flash                29          33           34           33           30         4.3             8
//   v1a_split_kv             -           -            -            -            -          46            42
//   v2_tensor_core           -         283          323          288          287          22             -
//   v2a_wgmma                -         191          253          267            -          19             -
//   v2b_tma                  -         496          482          499            -          35             -
//   v2c_ping_pong            -         547          650          686            -          46             -
//   v3_hopper                -         562          727          741          814          34             -
//   v3a_mask_bits            -           -            -            -            -           -             -
//   v4_split_kv              -           -            -            -            -         102             -
//   v5_split_bf16          105           -            -            -            -           -             -
//   torch                   45         514          699          644          757         102            11
//   torch flash              -         316          345          327          318          89             -
//   torch cudnn              -         497          686          640          748         102             -
//   copy, GB/s               -           -            -            -            -        3008          2781
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_accepts.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

void attention_cpu_v1_flash(const AttentionArgs&, Queue&);
ROOFLAB_PER_ISA(attention_cpu_v2_flash_simd, AttentionArgs)
ROOFLAB_PER_ISA(attention_cpu_v3_split_kv, AttentionArgs)
Footprint attention_cpu_v1_footprint(const AttentionArgs&, const Target&);
ROOFLAB_FOOTPRINT_PER_ISA(attention_cpu_v2_footprint, AttentionArgs)
ROOFLAB_FOOTPRINT_PER_ISA(attention_cpu_v3_footprint, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v1_flash, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v1a_split_kv, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v2_tensor_core, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v2a_wgmma, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v2b_tma, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v2c_ping_pong, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v3_hopper, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v3a_mask_bits, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v4_split_kv, AttentionArgs)
ROOFLAB_CUDA_RUNG(attention_cuda_v5_split_bf16, AttentionArgs)

namespace {

// Whether each query sees every key, apart from the explicit mask.
bool sees_all(const AttentionArgs& args) {
  return (!args.is_causal || args.q_length == 1) && args.window >= args.q_length + args.kv_length;
}

bool not_double(const AttentionArgs& args, const Target&) { return args.dtype != DType::kFloat64; }

bool has_few_rows(const AttentionArgs& args) { return attention_rows(args) <= kAttentionSplitRows; }

// v2 pads the queries of a head to whole panels, of 32 with AVX-512. Where they fill most of them, and there are panels
// for several threads, v2 is faster than v3.
bool attention_cpu_v3_accepts(const AttentionArgs& args, const Target&) {
  constexpr int64_t kPanel = 32, kEnoughPanels = 8;
  const int64_t panels = (args.q_length + kPanel - 1) / kPanel;
  const bool fills_panels = 5 * panels * kPanel <= 8 * args.q_length;
  if (fills_panels && args.batch * args.heads * panels >= kEnoughPanels) return false;
  return args.dtype != DType::kFloat64 && has_few_rows(args) && attention_splits(args) > 1;
}

Footprint attention_cuda_v1_footprint(const AttentionArgs& args, const Target& target) {
  const auto [rows, columns] = attention_v1_tile(args.head_size, target);
  return {.shared_bytes = attention_v1_bytes(rows, columns)};
}

// Whether one tile holds the rows of the heads that share a key head, or the keys are split all the same.
bool suits_split_kv(const AttentionArgs& args) {
  return (!args.held || sees_all(args)) && args.head_size > 0 && (has_few_rows(args) || attention_splits(args) > 1);
}

int64_t attention_v1a_bytes(const AttentionArgs& args) {
  return attention_v1_bytes(attention_v1a_rows(args), args.head_size <= 128 ? 128 : kMostColumns);
}

// Where blocks do not share the keys, v1a has smaller tiles of rows than v1, and each row costs more. That pays where
// v1's tile would be nearly empty: the longer the head, and the more keys, the more rows, by an H200's times. It also
// pays where the heads of a group share v1a's tile, and v1 would have more tiles than run at a time.
bool small_tiles_pay(const AttentionArgs& args) {
  constexpr int64_t kFewest = 8, kTileRows = 32, kManyKeys = 128, kAtATime = 264;
  if (attention_splits(args) > 1) return true;
  if (args.heads > args.kv_heads && args.batch * args.heads > kAtATime) return true;
  const int64_t few = args.kv_length >= kManyKeys ? kTileRows : args.head_size / 8;
  return attention_rows(args) <= std::max(few, kFewest);
}

bool attention_cuda_v1a_accepts(const AttentionArgs& args, const Target& target) {
  constexpr int64_t kColumns = 4;
  const auto& [batch, head, token] = args.out_strides;
  return attention_cuda_v1_accepts(args, target) && suits_split_kv(args) && small_tiles_pay(args) &&
         args.head_size % kColumns == 0 && is_aligned(args.out, kColumns * size_of(args.dtype)) &&
         batch % kColumns == 0 && head % kColumns == 0 && token % kColumns == 0 &&
         attention_v1a_bytes(args) <= target.shared_bytes_of_block;
}

Footprint attention_cuda_v1a_footprint(const AttentionArgs& args, const Target&) {
  return {.launches = attention_splits(args) > 1 ? 2 : 1,
          .scratch_bytes = attention_partial_floats(args) * static_cast<int64_t>(sizeof(float)),
          .shared_bytes = attention_v1a_bytes(args)};
}

Footprint attention_cuda_v2_footprint(const AttentionArgs& args, const Target&) {
  const bool packs = attention_v2_packs_mask(args);
  return {.launches = packs ? 2 : 1,
          .scratch_bytes = packs ? attention_v2_mask_words(args) * 4 : 0,
          .shared_bytes = attention_v2_bytes(attention_head_room(args.head_size))};
}

bool attention_cuda_v3_accepts(const AttentionArgs& args, const Target& target) {
  return args.scale > 0 && !args.held && suits_hopper(args, target);
}

Footprint attention_cuda_v3_footprint(const AttentionArgs&, const Target&) {
  return {.shared_bytes = kSharedBytesOfSm90a};
}

bool attention_cuda_v3a_accepts(const AttentionArgs& args, const Target& target) {
  return args.mask != nullptr && args.mask_is_bool && args.scale > 0 && !args.held &&
         operands_suit_hopper(args, target);
}

// Where v2 would pack the mask too, and a window does not leave most of it unread.
bool attention_cuda_v3a_by_default(const AttentionArgs& args, const Target&) {
  return attention_v2_packs_mask(args) && args.window >= args.kv_length;
}

Footprint attention_cuda_v3a_footprint(const AttentionArgs& args, const Target&) {
  return {.launches = 2, .scratch_bytes = attention_v2_mask_words(args) * 4, .shared_bytes = kSharedBytesOfSm90a};
}

bool attention_cuda_v2a_accepts(const AttentionArgs& args, const Target& target) {
  return attention_cuda_v3_accepts(args, target) && args.head_size <= 128;
}

bool attention_cuda_v4_accepts(const AttentionArgs& args, const Target& target) {
  return target.code.number >= 80 && has_tile_shape(args) && operands_have_vectors(args) && suits_split_kv(args);
}

// v2b has the smallest tiles of queries, so the blocks of a short head differ less in how much they see.
bool small_tiles_balance(const AttentionArgs& args) {
  constexpr int64_t kLongest = 512, kTile = 64, kAtATime = 396;
  return !sees_all(args) && args.head_size <= 64 && args.kv_length <= kLongest &&
         args.batch * args.heads * ((args.q_length + kTile - 1) / kTile) <= kAtATime;
}

bool attention_cuda_v3_by_default(const AttentionArgs& args, const Target&) { return !small_tiles_balance(args); }

// v3 gives each head tiles of its own, however few queries fill them. Where every tile has a multiprocessor to itself
// and there are few keys, that is faster all the same, by an H200's times: from half of one of v4's tiles of rows on,
// or from more than a whole one where the keys are in parts.
bool attention_cuda_v4_by_default(const AttentionArgs& args, const Target& target) {
  constexpr int64_t kTileRows = 16, kManyKeys = 768, kV3Rows = 128, kMultiprocessors = kAttentionSplitParts / 2;
  const int64_t v3_tiles = args.batch * args.heads * ((args.q_length + kV3Rows - 1) / kV3Rows);
  if (!attention_cuda_v3_accepts(args, target) || args.kv_length >= kManyKeys || v3_tiles > kMultiprocessors)
    return true;
  return attention_rows(args) <= (attention_splits(args) > 1 ? kTileRows : kTileRows / 2);
}

Footprint attention_cuda_v4_footprint(const AttentionArgs& args, const Target& target) {
  const int64_t partial_floats = attention_v4_parts(args, target).has_clusters ? 0 : attention_partial_floats(args);
  return {.launches = partial_floats > 0 ? 2 : 1,
          .scratch_bytes = partial_floats * static_cast<int64_t>(sizeof(float)),
          .shared_bytes =
              attention_ring_bytes(attention_head_room(args.head_size), attention_v4_parts(args, target).warps)};
}

// Where v1a can split the keys, it is several times as fast (64 queries, 32768 keys and 8 heads of D_h 64).
bool attention_cuda_v5_accepts(const AttentionArgs& args, const Target& target) {
  const bool is_split = attention_splits(args) > 1 && attention_cuda_v1a_accepts(args, target);
  return !args.held && target.code.is_sm90a && suits_split(args) && !is_split;
}

Footprint attention_cuda_v5_footprint(const AttentionArgs& args, const Target&) {
  return {.launches = 2, .scratch_bytes = attention_split_elements(args) * 2, .shared_bytes = kSharedBytesOfSm90a};
}

}  // namespace

// Clusters of more than two blocks find room only if every block has a multiprocessor to itself: with two on each, an
// H200 took a fifth to a quarter longer than with two launches. But as clusters half as many parts were as fast or up
// to 13 % faster, at 128 to 4096 keys. Blocks of eight warps take 2 to 5 % less time than blocks of four in clusters of
// two, and up to 45 % more in larger ones.
AttentionParts attention_v4_parts(const AttentionArgs& args, const Target& target) {
  constexpr int64_t kMostKeys = 4096, kMultiprocessors = kAttentionSplitParts / 2;
  constexpr int kFewWarps = 4, kManyWarps = 8;
  const int64_t splits = attention_splits(args);
  if (target.code.number < 90 || splits == 1) return {splits, false, kFewWarps};
  const int64_t half = attention_splits(args, kMultiprocessors);
  const bool fits = half <= kAttentionClusterParts && attention_tiles(args) * half <= kMultiprocessors;
  if (half <= 1 || !fits || args.kv_length > kMostKeys) return {splits, splits == 2, kFewWarps};
  const int64_t room = attention_ring_bytes(attention_head_room(args.head_size), kManyWarps);
  const bool has_many = half == 2 && !args.mask && room <= target.shared_bytes_of_block;
  return {half, true, has_many ? kManyWarps : kFewWarps};
}

AttentionFlashTile attention_v1_tile(int64_t head_size, const Target& target) {
  return flash_tile(64, 32, head_size, 1, target);
}

const Ladder<AttentionArgs> attention_ladder(
    "attention",
    {
        {"v5_split_bf16", kCuda, "float32 in three bfloat16 parts, at float32's accuracy on tensor cores; sm_90a",
         attention_cuda_v5_accepts, attention_cuda_v5_split_bf16, attention_cuda_v5_footprint},
        {"v4_split_kv", kCuda, "for decode: blocks share the keys, then combine; the heads of a group share a tile",
         attention_cuda_v4_accepts, attention_cuda_v4_split_kv, attention_cuda_v4_footprint,
         attention_cuda_v4_by_default},
        {"v3a_mask_bits", kCuda, "v3 with a bool mask, which a kernel before packs into bits",
         attention_cuda_v3a_accepts, attention_cuda_v3a_mask_bits, attention_cuda_v3a_footprint,
         attention_cuda_v3a_by_default},
        {"v3_hopper", kCuda, "blocks stay, and begin the next tile while they end the last; sm_90a, 16 bits",
         attention_cuda_v3_accepts, attention_cuda_v3_hopper, attention_cuda_v3_footprint,
         attention_cuda_v3_by_default},
        {"v2c_ping_pong", kCuda, "a warpgroup copies; softmax of the others under each other's products and their own",
         attention_cuda_v2a_accepts, attention_cuda_v2c_ping_pong, attention_cuda_v3_footprint,
         attention_cuda_v3_by_default},
        {"v2b_tma", kCuda, "the copy engine brings whole tiles, the next while this one is multiplied",
         attention_cuda_v2a_accepts, attention_cuda_v2b_tma, attention_cuda_v3_footprint},
        {"v2a_wgmma", kCuda, "a warpgroup's products read shared memory themselves; sm_90a, 16 bits, D_h up to 128",
         attention_cuda_v2a_accepts, attention_cuda_v2a_wgmma, attention_cuda_v3_footprint},
        {"v2_tensor_core", kCuda,
         "mma.sync on tiles from a cp.async pipeline, weights stay in registers; sm_80 and newer, 16 bits",
         attention_cuda_v2_accepts, attention_cuda_v2_tensor_core, attention_cuda_v2_footprint},
        {"v1a_split_kv", kCuda, "v1 for few queries: small tiles of the heads of a group, and blocks share the keys",
         attention_cuda_v1a_accepts, attention_cuda_v1a_split_kv, attention_cuda_v1a_footprint},
        {"v1_flash", kCuda, "plain multiply-adds: a block keeps 64 queries and streams the keys; D_h up to 256",
         attention_cuda_v1_accepts, attention_cuda_v1_flash, attention_cuda_v1_footprint},
        {"v0_composed", kCuda, "scores, mask, softmax and weighted sum as separate ops", nullptr,
         composed<AttentionArgs>},
        {"v3_split_kv", kCpu, "for decode: threads share the keys, then combine; heads of a group together",
         attention_cpu_v3_accepts, attention_cpu_v3_split_kv, attention_cpu_v3_footprint},
        {"v2_flash_simd", kCpu, "SIMD register tiles with queries across the lanes, all threads; not float64",
         not_double, attention_cpu_v2_flash_simd, attention_cpu_v2_footprint},
        {"v1_flash", kCpu, "tiles with online softmax in plain loops, one thread; not float64", not_double,
         attention_cpu_v1_flash, attention_cpu_v1_footprint},
        {"v0_composed", kCpu, "scores, mask, softmax and weighted sum as separate ops", nullptr,
         composed<AttentionArgs>},
    });

}  // namespace rooflab::kernels
