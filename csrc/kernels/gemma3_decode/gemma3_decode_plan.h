// How v1_one_launch divides a layer among the blocks of a GPU: one block per multiprocessor.
#pragma once

#include "kernels/gemma3_decode/gemma3_decode.h"

namespace rooflab::kernels {

inline constexpr int kDecodeBatch = 8;      // texts: the columns of a tensor core's tile
inline constexpr int kDecodeTileRows = 16;  // of a weight: the rows of such a tile
inline constexpr int kDecodeMaxTiles = 4;   // per block in one product
inline constexpr int kDecodeMaxModel = 1024;
inline constexpr int kDecodeWarps = 8;
inline constexpr int kDecodePad = 8;  // extra elements per row in shared memory, so that rows begin in different banks
inline constexpr int kDecodeMaxParts = 64;

inline constexpr int kDecodeBarriers = 4, kDecodeBarrierStride = 32;  // counters, each in a cache line of its own

// How a weight (rows, columns) is divided: a block has `tiles` tiles of 16 rows and one slice of their columns. The
// number of slices is a power of two.
struct DecodeShare {
  int rows, columns;
  int tiles, groups;               // groups of tiles; a block has one of them
  int slices_log2, slice_columns;  // the last slice may be shorter

  constexpr int slices() const { return 1 << slices_log2; }
  constexpr int blocks() const { return groups << slices_log2; }
  constexpr int stride() const { return slice_columns + kDecodePad; }
  constexpr int64_t elements() const { return int64_t{tiles} * kDecodeTileRows * stride(); }
};

struct DecodePlan {
  int blocks;
  int parts;       // into how many parts a text's keys are split for each key head
  int items_log2;  // threads side by side that combine parts, each for four columns of a text
  DecodeShare qkv, o, gate_up, down;
  int max_stride;                         // of the four
  int64_t weight_elements, shared_bytes;  // in the shared memory of one block
  int64_t qkv_floats, part_floats, stat_floats, o_floats, down_floats, active_elements, barrier_floats;  // in scratch

  int64_t scratch_bytes() const;
};

DecodePlan decode_plan(const Gemma3DecodeArgs&, const Target&);

}  // namespace rooflab::kernels
