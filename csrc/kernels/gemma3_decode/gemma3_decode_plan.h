// How v1_one_launch divides a layer among the blocks of a GPU: one block per multiprocessor.
#pragma once

#include "kernels/gemma3_decode/gemma3_decode.h"

namespace rooflab::kernels {

inline constexpr int kDecodeBatch = 8;      // texts that are multiplied at a time: the columns of a tensor core's tile
inline constexpr int kDecodeMaxTexts = 16;  // whose activations have room in shared memory
inline constexpr int kDecodeTileRows = 16;  // of a weight: the rows of such a tile
inline constexpr int kDecodeMaxTiles = 4;   // per block in one product
inline constexpr int kDecodeMaxModel = 1024;
inline constexpr int kDecodeWarps = 8;
inline constexpr int kDecodePad = 8;  // extra elements per row in shared memory, so that rows begin in different banks
inline constexpr int kDecodeMaxParts = 64;
inline constexpr int kDecodePartKeys = 64;  // that a block sees at once

// How a weight (rows, columns) is divided: a block has `tiles` tiles of 16 rows and one slice of their columns.
struct DecodeShare {
  int rows, columns;
  int tiles, groups;          // groups of tiles; a block has one of them
  int slices, slice_columns;  // the last slice may be shorter

  constexpr int blocks() const { return groups * slices; }
  constexpr int stride() const { return slice_columns + kDecodePad; }
  constexpr int64_t elements() const { return int64_t{tiles} * kDecodeTileRows * stride(); }
};

struct DecodePlan {
  int blocks;
  int parts;       // into how many parts a text's keys may be split for each key head
  int items_log2;  // threads side by side that combine parts, each for four columns
  DecodeShare qkv, o, gate_up, down;
  int max_stride;                         // of the four
  int64_t activation_elements;            // (texts, max_stride), or the queries of a text and key head
  int64_t weight_elements, shared_bytes;  // of one block
  // What the blocks exchange in a layer (gemma3_decode_slots.cuh).
  int64_t normal_slots, qkv_slots, part_slots, stat_slots, head_slots, o_slots, active_slots, down_slots;

  constexpr int64_t slots() const {
    return 2 * normal_slots + qkv_slots + part_slots + stat_slots + head_slots + o_slots + active_slots + down_slots;
  }
  constexpr int64_t scratch_bytes() const { return 2 * 8 * slots(); }  // of two layers, 8 bytes each
};

DecodePlan decode_plan(const Gemma3DecodeArgs&, const Target&);

}  // namespace rooflab::kernels
