// What several rungs of attention and of its backward ask of their operands, on a target that need not be present.
#pragma once

#include "core/target.h"
#include "kernels/attention/attention.h"
#include "kernels/common/alignment.h"

namespace rooflab::kernels {

inline constexpr int64_t kMostColumns = 256;  // of a head
inline constexpr int kVector = 8;             // 16-bit elements in 16 bytes

// Rows, keys and tiles are counted in 32 bits; offsets are 64-bit everywhere.
inline bool fits_int32(const AttentionArgs& args) {
  constexpr int64_t kMax = 1 << 29;
  return args.q_length + args.kv_length <= kMax &&
         args.batch * args.heads * ((args.q_length + args.kv_length) / 16 + 1) <= kMax;
}

// Shapes for the rungs on tensor cores, which load 16 bytes at a time.
inline bool has_tile_shape(const AttentionArgs& args) {
  return (args.dtype == DType::kFloat16 || args.dtype == DType::kBFloat16) && args.head_size % kVector == 0 &&
         args.head_size <= kMostColumns && fits_int32(args);
}

// True when vectors of eight 16-bit elements are aligned in every row of a tensor.
inline bool has_vectors(const void* data, const AttentionStrides& strides) {
  return is_aligned(data) && strides.batch % kVector == 0 && strides.head % kVector == 0 &&
         strides.token % kVector == 0;
}

inline bool operands_have_vectors(const AttentionArgs& args) {
  return has_vectors(args.q, args.q_strides) && has_vectors(args.k, args.k_strides) &&
         has_vectors(args.v, args.v_strides) && has_vectors(args.out, args.out_strides);
}

// Whether a tensor map (attention_hopper.cuh) can describe the operand: 16-byte aligned, and no axis that repeats or
// runs backwards.
inline bool fits_map(const void* data, const AttentionStrides& strides, int64_t batch, int64_t heads, int64_t length,
                     DType dtype) {
  const auto fits = [&](int64_t extent, int64_t stride) {
    return extent <= 1 || (stride > 0 && stride < int64_t{1} << 38 && stride * size_of(dtype) % 16 == 0);
  };
  return is_aligned(data) && fits(length, strides.token) && fits(heads, strides.head) && fits(batch, strides.batch);
}

inline bool query_fits_map(const AttentionArgs& args, const void* data, const AttentionStrides& strides) {
  return fits_map(data, strides, args.batch, args.heads, args.q_length, args.dtype);
}
inline bool key_fits_map(const AttentionArgs& args, const void* data, const AttentionStrides& strides) {
  return fits_map(data, strides, args.batch, args.kv_heads, args.kv_length, args.dtype);
}

// What v3 requires, forward and backward, apart from the mask.
inline bool operands_suit_hopper(const AttentionArgs& args, const Target& target) {
  return target.code.is_sm90a && has_tile_shape(args) && args.head_size > 0 &&
         query_fits_map(args, args.q, args.q_strides) && query_fits_map(args, args.out, args.out_strides) &&
         key_fits_map(args, args.k, args.k_strides) && key_fits_map(args, args.v, args.v_strides);
}
inline bool suits_hopper(const AttentionArgs& args, const Target& target) {
  return args.mask == nullptr && operands_suit_hopper(args, target);
}

// What the rungs that split floats into bfloat16 parts require. With fewer queries or keys v1 or v1a is as fast.
inline bool suits_split(const AttentionArgs& args) {
  constexpr int64_t kSplitColumns = 128, kFewest = 64;
  return args.dtype == DType::kFloat32 && args.scale > 0 && args.head_size > 0 && args.head_size <= kSplitColumns &&
         args.q_length >= kFewest && args.kv_length >= kFewest && fits_int32(args);
}

// A tile of v1 with the most rows, halved until a block has room for it.
inline AttentionFlashTile flash_tile(int64_t most_rows, int64_t fewest_rows, int64_t head_size, int64_t resident,
                                     const Target& target) {
  AttentionFlashTile tile{most_rows, head_size <= 128 ? 128 : kMostColumns};
  while (tile.rows > fewest_rows &&
         attention_v1_bytes(tile.rows, tile.columns, resident) > target.shared_bytes_of_block)
    tile.rows /= 2;
  return tile;
}

// The CUDA rungs v1 and v2, forward and backward.
inline bool attention_cuda_v1_accepts(const AttentionArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.head_size <= kMostColumns && fits_int32(args);
}

inline bool attention_cuda_v2_accepts(const AttentionArgs& args, const Target& target) {
  return target.code.number >= 80 && has_tile_shape(args) && operands_have_vectors(args);
}

}  // namespace rooflab::kernels
