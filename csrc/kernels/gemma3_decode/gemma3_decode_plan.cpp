#include "kernels/gemma3_decode/gemma3_decode_plan.h"

#include <algorithm>

namespace rooflab::kernels {
namespace {

constexpr int divide_up(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

// Groups of whole units of tiles, so that as many blocks as possible have work.
DecodeShare share(int64_t rows, int64_t columns, int unit_tiles, int most_slices_log2, int blocks) {
  DecodeShare result{};
  result.rows = static_cast<int>(rows);
  result.columns = static_cast<int>(columns);
  const int steps = divide_up(columns, kDecodeTileRows);
  result.slices_log2 = most_slices_log2;
  while (divide_up(steps, result.slices()) * (result.slices() - 1) >= steps) --result.slices_log2;  // none is empty
  result.slice_columns = divide_up(steps, result.slices()) * kDecodeTileRows;
  const int units = divide_up(rows, int64_t{unit_tiles} * kDecodeTileRows);
  const int units_of_block = divide_up(units, std::max(1, blocks >> result.slices_log2));
  result.tiles = units_of_block * unit_tiles;
  result.groups = divide_up(units, units_of_block);
  return result;
}

// What a block keeps besides its weights: tiles of keys and values, queries, activations and the sums of its warps.
int64_t step_bytes(const Gemma3DecodeArgs& args, const DecodePlan& plan) {
  const int64_t q = kDecodeTileRows * (args.head_size + kDecodePad) * 2;
  int64_t tiles = 0;
  for (const DecodeShare* share : {&plan.qkv, &plan.o, &plan.gate_up, &plan.down})
    tiles = std::max<int64_t>(tiles, share->tiles);
  const int64_t sums = kDecodeWarps * tiles * kDecodeTileRows * kDecodeBatch * 4;
  return attention_ring_bytes(args.head_size) + q + kDecodeBatch * plan.max_stride * 2 + sums;
}

}  // namespace

int64_t DecodePlan::scratch_bytes() const {
  return 4 * (qkv_floats + part_floats + stat_floats + o_floats + down_floats + barrier_floats) + 2 * active_elements;
}

DecodePlan decode_plan(const Gemma3DecodeArgs& args, const Target& target) {
  constexpr int kSlicesLog2 = 3;
  DecodePlan plan{};
  plan.blocks = target.sm_count;
  const int64_t wide = args.heads * args.head_size, rows = wide + 2 * args.kv_heads * args.head_size;
  plan.qkv = share(rows, args.model, 1, 0, plan.blocks);
  plan.o = share(args.model, wide, 1, kSlicesLog2, plan.blocks);
  plan.gate_up = share(2 * args.intermediate, args.model, 2, 0, plan.blocks);
  plan.down = share(args.model, args.intermediate, 1, kSlicesLog2, plan.blocks);
  const int64_t items = args.batch * args.kv_heads;
  plan.parts = static_cast<int>(std::clamp<int64_t>(plan.blocks / std::max<int64_t>(items, 1), 1, kDecodeMaxParts));
  while (plan.items_log2 < 8 && 1 << plan.items_log2 < args.batch * plan.o.slice_columns / 4) ++plan.items_log2;
  plan.weight_elements = plan.qkv.elements() + plan.o.elements() + plan.gate_up.elements() + plan.down.elements();
  plan.max_stride = std::max({plan.qkv.stride(), plan.o.stride(), plan.gate_up.stride(), plan.down.stride()});
  plan.shared_bytes = 2 * plan.weight_elements + step_bytes(args, plan);
  plan.qkv_floats = args.batch * rows;
  plan.part_floats = args.batch * wide * plan.parts;
  plan.stat_floats = 2 * args.batch * args.heads * plan.parts;
  plan.o_floats = plan.o.slices() * args.batch * args.model;
  plan.down_floats = plan.down.slices() * args.batch * args.model;
  plan.active_elements = args.batch * args.intermediate;
  plan.barrier_floats = kDecodeBarriers * kDecodeBarrierStride;
  return plan;
}

}  // namespace rooflab::kernels
