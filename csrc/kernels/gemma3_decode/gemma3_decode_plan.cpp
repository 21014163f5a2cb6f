#include "kernels/gemma3_decode/gemma3_decode_plan.h"

#include <algorithm>

#include "kernels/common/alignment.h"

namespace rooflab::kernels {
namespace {

constexpr int divide_up(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

// Groups of whole `unit`s of rows, so that as many blocks as there are have work.
DecodeShare share(int64_t rows, int64_t columns, int unit_tiles, int slices, int blocks) {
  DecodeShare result{};
  result.rows = static_cast<int>(rows);
  result.columns = static_cast<int>(columns);
  result.slice_columns = divide_up(columns, int64_t{slices} * kDecodeTileRows) * kDecodeTileRows;
  result.slices = divide_up(columns, result.slice_columns);
  const int units = divide_up(rows, int64_t{unit_tiles} * kDecodeTileRows);
  const int units_of_block = divide_up(units, std::max(1, blocks / result.slices));
  result.tiles = units_of_block * unit_tiles;
  result.groups = divide_up(units, units_of_block);
  return result;
}

// What a block keeps beside its weights: the steps' own data, of which the largest counts.
int64_t step_bytes(const Gemma3DecodeArgs& args, const DecodePlan& plan) {
  const int64_t ring = 4 * (2 * (256 / args.head_size) + 1) * 16 * args.head_size * 2;  // attention_split_tile.cuh
  const int64_t q = 16 * (args.head_size + kDecodePad) * 2;
  int64_t most = 0;
  for (const DecodeShare* share : {&plan.qkv, &plan.o, &plan.gate_up, &plan.down}) {
    const int64_t activations = kDecodeBatch * share->stride() * 2;
    const int64_t sums = int64_t{kDecodeWarps} * share->tiles * kDecodeTileRows * kDecodeBatch * 4;
    most = std::max(most, activations + sums);
  }
  const int64_t rows = 2 * kDecodeBatch * args.model * 4;  // h, and what is normalised
  const int64_t weights = kDecodeBatch * args.heads * kDecodeMaxParts * 4;
  return std::max(ring + q, rows + most + weights);
}

}  // namespace

int64_t DecodePlan::scratch_bytes() const {
  return 4 * (qkv_floats + part_floats + stat_floats + o_floats + down_floats) + 2 * active_elements;
}

DecodePlan decode_plan(const Gemma3DecodeArgs& args, const Target& target) {
  constexpr int kSlices = 8;
  DecodePlan plan{};
  plan.blocks = target.sm_count;
  const int64_t wide = args.heads * args.head_size, rows = wide + 2 * args.kv_heads * args.head_size;
  plan.qkv = share(rows, args.model, 1, 1, plan.blocks);
  plan.o = share(args.model, wide, 1, kSlices, plan.blocks);
  plan.gate_up = share(2 * args.intermediate, args.model, 2, 1, plan.blocks);
  plan.down = share(args.model, args.intermediate, 1, kSlices, plan.blocks);
  const int64_t items = args.batch * args.kv_heads;
  plan.parts = static_cast<int>(std::clamp<int64_t>(plan.blocks / std::max<int64_t>(items, 1), 1, kDecodeMaxParts));
  plan.weight_elements = plan.qkv.elements() + plan.o.elements() + plan.gate_up.elements() + plan.down.elements();
  plan.shared_bytes = 2 * plan.weight_elements + step_bytes(args, plan);
  plan.qkv_floats = args.batch * rows;
  plan.part_floats = args.batch * wide * plan.parts;
  plan.stat_floats = 2 * args.batch * args.heads * plan.parts;
  plan.o_floats = plan.o.slices * args.batch * args.model;
  plan.down_floats = plan.down.slices * args.batch * args.model;
  plan.active_elements = args.batch * args.intermediate;
  return plan;
}

bool gemma3_decode_cuda_v1_accepts(const Gemma3DecodeArgs& args, const Target& target) {
  if (target.compute_capability < 80 || size_of(args.dtype) != 2) return false;
  if (args.dtype != DType::kFloat16 && args.dtype != DType::kBFloat16) return false;
  const bool sizes = args.batch <= kDecodeBatch && args.model <= kDecodeMaxModel && args.model % 16 == 0 &&
                     args.intermediate % 16 == 0 &&
                     (args.head_size == 64 || args.head_size == 128 || args.head_size == 256) &&
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
  return plan.shared_bytes <= target.shared_bytes_of_block;
}

Footprint gemma3_decode_cuda_v1_footprint(const Gemma3DecodeArgs& args, const Target& target) {
  return {.scratch_bytes = decode_plan(args, target).scratch_bytes()};
}

}  // namespace rooflab::kernels
