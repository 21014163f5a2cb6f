#include "kernels/gemma3_decode/gemma3_decode_plan.h"

#include <algorithm>

namespace rooflab::kernels {
namespace {

constexpr int divide_up(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

// Whole units of tiles, each in so many slices.
DecodeShare share_in(int slices, int64_t rows, int64_t columns, int unit_tiles, int blocks) {
  DecodeShare result{};
  result.rows = static_cast<int>(rows);
  result.columns = static_cast<int>(columns);
  result.slice_columns = divide_up(divide_up(columns, kDecodeTileRows), slices) * kDecodeTileRows;
  result.slices = divide_up(columns, result.slice_columns);  // none is empty
  const int units = divide_up(rows, int64_t{unit_tiles} * kDecodeTileRows);
  const int units_of_block = divide_up(units, std::max(1, blocks / result.slices));
  result.tiles = units_of_block * unit_tiles;
  result.groups = divide_up(units, units_of_block);
  return result;
}

// The slices, at most so many, with which a block has the least of the weight.
DecodeShare share(int most_slices, int64_t rows, int64_t columns, int unit_tiles, int blocks) {
  DecodeShare best = share_in(1, rows, columns, unit_tiles, blocks);
  for (int slices = 2; slices <= most_slices; ++slices) {
    const DecodeShare other = share_in(slices, rows, columns, unit_tiles, blocks);
    if (other.elements() < best.elements()) best = other;
  }
  return best;
}

// What a block keeps besides its weights: tiles of keys and values, activations or queries, and the sums of its warps.
int64_t step_bytes(const Gemma3DecodeArgs& args, const DecodePlan& plan) {
  int64_t tiles = 0;
  for (const DecodeShare* share : {&plan.qkv, &plan.o, &plan.gate_up, &plan.down})
    tiles = std::max<int64_t>(tiles, share->tiles);
  const int64_t sums = kDecodeWarps * tiles * kDecodeTileRows * kDecodeBatch * 4;
  return attention_ring_bytes(args.head_size) + plan.activation_elements * 2 + sums;
}

}  // namespace

DecodePlan decode_plan(const Gemma3DecodeArgs& args, const Target& target) {
  constexpr int kMostSlices = 8;
  DecodePlan plan{};
  plan.blocks = target.sm_count;
  const int64_t wide = args.heads * args.head_size, rows = wide + 2 * args.kv_heads * args.head_size;
  plan.qkv = share(1, rows, args.model, 1, plan.blocks);
  plan.o = share(kMostSlices, args.model, wide, 1, plan.blocks);
  plan.gate_up = share(1, 2 * args.intermediate, args.model, 2, plan.blocks);
  plan.down = share(kMostSlices, args.model, args.intermediate, 1, plan.blocks);
  const int64_t items = args.batch * args.kv_heads;
  plan.parts = static_cast<int>(std::clamp<int64_t>(plan.blocks / std::max<int64_t>(items, 1), 1, kDecodeMaxParts));
  const int64_t combined = args.batch == 1 ? plan.o.slice_columns : args.head_size;  // columns
  while (plan.items_log2 < 8 && 1 << plan.items_log2 < combined / 4) ++plan.items_log2;
  for (const DecodeShare* share : {&plan.qkv, &plan.o, &plan.gate_up, &plan.down}) {
    plan.weight_elements += share->elements();
    plan.max_stride = std::max(plan.max_stride, share->stride());
  }
  const int64_t texts = int64_t{divide_up(args.batch, kDecodeBatch)} * kDecodeBatch;
  plan.activation_elements =
      std::max(texts * plan.max_stride, int64_t{kDecodeTileRows} * (args.head_size + kDecodePad));
  plan.shared_bytes = 2 * plan.weight_elements + step_bytes(args, plan);
  plan.normal_slots = args.batch * args.model / 2;
  plan.qkv_slots = args.batch * rows;
  plan.part_slots = args.batch * wide * plan.parts;
  plan.stat_slots = 2 * args.batch * args.heads * plan.parts;
  plan.head_slots = args.batch * wide / 2;
  plan.o_slots = plan.o.slices * args.batch * args.model;
  plan.active_slots = args.batch * args.intermediate / 2;
  plan.down_slots = plan.down.slices * args.batch * args.model;
  return plan;
}

}  // namespace rooflab::kernels
