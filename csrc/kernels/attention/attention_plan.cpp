// What the CUDA rungs of attention and attention_backward accept and start, on a target that need not be present.
#include <algorithm>

#include "core/target.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_backward.h"
#include "kernels/common/alignment.h"

namespace rooflab::kernels {
namespace {

constexpr int64_t kMostColumns = 256;  // of a head
constexpr int kVector = 8;             // 16-bit elements in 16 bytes

// Rows, keys and tiles are counted in 32 bits; offsets are 64-bit everywhere.
bool fits_int32(const AttentionArgs& args) {
  constexpr int64_t kMax = 1 << 29;
  return args.q_length + args.kv_length <= kMax &&
         args.batch * args.heads * ((args.q_length + args.kv_length) / 16 + 1) <= kMax;
}

// Shapes for the rungs on tensor cores, which load 16 bytes at a time.
bool has_tile_shape(const AttentionArgs& args) {
  return (args.dtype == DType::kFloat16 || args.dtype == DType::kBFloat16) && args.head_size % kVector == 0 &&
         args.head_size <= kMostColumns && fits_int32(args);
}

// True when vectors of eight 16-bit elements are aligned in every row of a tensor.
bool has_vectors(const void* data, const AttentionStrides& strides) {
  return is_aligned(data) && strides.batch % kVector == 0 && strides.head % kVector == 0 &&
         strides.token % kVector == 0;
}

bool operands_have_vectors(const AttentionArgs& args) {
  return has_vectors(args.q, args.q_strides) && has_vectors(args.k, args.k_strides) &&
         has_vectors(args.v, args.v_strides) && has_vectors(args.out, args.out_strides);
}

// Whether a tensor map (attention_hopper.cuh) can describe the operand: 16-byte aligned, and no axis that repeats or
// runs backwards.
bool fits_map(const void* data, const AttentionStrides& strides, int64_t batch, int64_t heads, int64_t length,
              DType dtype) {
  const auto fits = [&](int64_t extent, int64_t stride) {
    return extent <= 1 || (stride > 0 && stride < int64_t{1} << 38 && stride * size_of(dtype) % 16 == 0);
  };
  return is_aligned(data) && fits(length, strides.token) && fits(heads, strides.head) && fits(batch, strides.batch);
}

bool query_fits_map(const AttentionArgs& args, const void* data, const AttentionStrides& strides) {
  return fits_map(data, strides, args.batch, args.heads, args.q_length, args.dtype);
}
bool key_fits_map(const AttentionArgs& args, const void* data, const AttentionStrides& strides) {
  return fits_map(data, strides, args.batch, args.kv_heads, args.kv_length, args.dtype);
}

// What v3 requires, forward and backward.
bool suits_hopper(const AttentionArgs& args, const Target& target) {
  return target.compute_capability == 90 && has_tile_shape(args) && args.head_size > 0 && args.mask == nullptr &&
         query_fits_map(args, args.q, args.q_strides) && query_fits_map(args, args.out, args.out_strides) &&
         key_fits_map(args, args.k, args.k_strides) && key_fits_map(args, args.v, args.v_strides);
}

// Whether each query sees every key, apart from the explicit mask.
bool sees_all(const AttentionArgs& args) {
  return (!args.is_causal || args.q_length == 1) && args.window >= args.q_length + args.kv_length;
}

// What the rungs that split floats into bfloat16 parts require. With fewer queries or keys v1 is as fast.
bool suits_split(const AttentionArgs& args) {
  constexpr int64_t kSplitColumns = 128, kFewest = 64;
  return args.dtype == DType::kFloat32 && args.scale > 0 && args.mask == nullptr && args.head_size > 0 &&
         args.head_size <= kSplitColumns && args.q_length >= kFewest && args.kv_length >= kFewest && fits_int32(args);
}

Footprint backward_footprint(const AttentionBackwardArgs& args, bool has_dq_sum) {
  return {.launches = 3,
          .scratch_bytes = attention_backward_scratch_floats(args, has_dq_sum) * static_cast<int64_t>(sizeof(float))};
}

}  // namespace

bool attention_cuda_v1_accepts(const AttentionArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.head_size <= kMostColumns && fits_int32(args);
}

bool attention_cuda_v2_accepts(const AttentionArgs& args, const Target& target) {
  return target.compute_capability >= 80 && has_tile_shape(args) && operands_have_vectors(args);
}

bool attention_cuda_v3_accepts(const AttentionArgs& args, const Target& target) {
  return args.scale > 0 && !args.held && suits_hopper(args, target);
}

bool attention_cuda_v4_accepts(const AttentionArgs& args, const Target& target) {
  return target.compute_capability >= 80 && has_tile_shape(args) && operands_have_vectors(args) &&
         args.mask == nullptr && args.head_size > 0 && (!args.held || sees_all(args)) &&
         args.q_length * (args.heads / std::max<int64_t>(args.kv_heads, 1)) <= kAttentionSplitRows;
}

Footprint attention_cuda_v4_footprint(const AttentionArgs& args, const Target&) {
  return {.launches = attention_splits(args) > 1 ? 2 : 1,
          .scratch_bytes = attention_partial_floats(args) * static_cast<int64_t>(sizeof(float))};
}

bool attention_cuda_v5_accepts(const AttentionArgs& args, const Target& target) {
  return !args.held && target.compute_capability == 90 && suits_split(args);
}

Footprint attention_cuda_v5_footprint(const AttentionArgs& args, const Target&) {
  return {.launches = 2, .scratch_bytes = attention_split_elements(args) * 2};
}

bool attention_backward_cuda_v1_accepts(const AttentionBackwardArgs& args, const Target& target) {
  return attention_cuda_v1_accepts(args.forward, target);
}

Footprint attention_backward_cuda_v1_footprint(const AttentionBackwardArgs& args, const Target&) {
  return backward_footprint(args, false);
}

int attention_backward_v2_stages(int64_t head, const Target& target) {
  constexpr int64_t kReserved = 1024;  // per block; without it a block could ask for a whole multiprocessor's memory
  const auto blocks = [&](int stages) {
    const int64_t bytes = attention_backward_v2_bytes(head, stages), most = target.shared_bytes_of_block;
    if (bytes > most) return int64_t{0};
    return std::min<int64_t>((most + kReserved) / (bytes + kReserved), attention_backward_v2_blocks(head));
  };
  return blocks(1) == 0 ? 0 : blocks(2) == blocks(1) ? 2 : 1;
}

bool attention_backward_cuda_v2_accepts(const AttentionBackwardArgs& args, const Target& target) {
  return attention_cuda_v2_accepts(args.forward, target) && has_vectors(args.dout, args.dout_strides) &&
         has_vectors(args.dq, args.dq_strides) && has_vectors(args.dk, args.dk_strides) &&
         has_vectors(args.dv, args.dv_strides) &&
         attention_backward_v2_stages(attention_backward_v2_head(args.forward.head_size), target) > 0;
}

Footprint attention_backward_cuda_v2_footprint(const AttentionBackwardArgs& args, const Target&) {
  Footprint footprint = backward_footprint(args, !args.deterministic);
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
  return backward_footprint(args, true);
}

bool attention_backward_cuda_v4_accepts(const AttentionBackwardArgs& args, const Target& target) {
  return target.compute_capability >= 80 && suits_split(args.forward) &&
         attention_backward_v4_bytes(args.forward.head_size <= 64 ? 64 : 128) <= target.shared_bytes_of_block;
}

Footprint attention_backward_cuda_v4_footprint(const AttentionBackwardArgs& args, const Target&) {
  return {.launches = 4, .scratch_bytes = attention_backward_v4_scratch_bytes(args)};
}

}  // namespace rooflab::kernels
