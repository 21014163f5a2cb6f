// attention: out[i] = sum_j p[i, j] v[j] with p[i, :] = softmax_j(scale * q[i] . k[j] + mask[i, j]), for each batch and
// query head. Query head h reads key/value head h / (H / H_kv). A query that may see no key gives a row of zeros and
// lse = -inf. So does one whose scores are all -inf, because they have overflowed; v0_composed gives NaN there if every
// query sees a key, as the textbook's four steps do. A NaN in a query affects only its own row. A hidden key adds
// nothing, NaN or not.
//
// The last query is aligned with the last key: query i has position p = i + L_kv - L_q. With is_causal it sees the keys
// j <= p; with a window of w it sees those with |p - j| < w.
//
// FLOPs: 4 D_h + 5 for each (query, key) pair that causality and the window allow: two products and 5 for softmax.
// Compulsory bytes: q, k, v, mask and out once, lse and its rest once when asked for. In 16 bits, each byte of K or V
// is used for one FLOP in each of the L_q H / H_kv query rows that share it. So compute binds from a few hundred rows
// on, and memory binds in decode.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/host_device.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

// In elements. The elements of one head of one token are contiguous.
struct AttentionStrides {
  int64_t batch, head, token;
};

struct AttentionArgs {
  const void* q;      // (B, H, L_q, D_h)
  const void* k;      // (B, H_kv, L_kv, D_h)
  const void* v;      // (B, H_kv, L_kv, D_h)
  void* out;          // (B, H, L_q, D_h)
  float* lse;         // (B, H, L_q), contiguous: log sum_j exp(score), natural; null when it is not wanted
  float* lse_rest;    // (B, H, L_q): what rounding has left out of lse; null when it is not wanted
  float* partial;     // scratch of attention_partial_floats(args) for the split rungs; null where they need none
  const void* mask;   // (B, H, L_q, L_kv) by mask_strides (0 repeats); null for none
  bool mask_is_bool;  // true: bytes, 0 hides the key; false: numbers of `dtype`, added to the scaled score
  int64_t mask_strides[4];
  int64_t batch, heads, kv_heads, q_length, kv_length, head_size;
  AttentionStrides q_strides, k_strides, v_strides, out_strides;
  float scale;
  bool is_causal;
  int64_t window;       // L_q + L_kv when there is no window
  DType dtype;          // float32, float16 or bfloat16
  const int64_t* held;  // on the device: how many of the keys are valid; null: all L_kv
};

// The number of valid keys when the kernel runs: k and v end there.
ROOFLAB_HOST_DEVICE int64_t held_keys(const AttentionArgs& args) {
  if (!args.held) return args.kv_length;
  return *args.held < 0 ? 0 : *args.held < args.kv_length ? *args.held : args.kv_length;
}
// For rungs on the CPU, which can read that number before they begin.
inline AttentionArgs with_held_keys(AttentionArgs args) {
  args.kv_length = held_keys(args);
  return args;
}

// The keys [begin, end) that query row i may see, apart from the mask; begin == end when there are none.
struct KeyRange {
  int64_t begin, end;
};
ROOFLAB_HOST_DEVICE KeyRange visible_keys(int64_t i, int64_t q_length, int64_t kv_length, bool is_causal,
                                          int64_t window) {
  const int64_t position = i + kv_length - q_length;
  int64_t begin = position - window + 1, end = is_causal ? position + 1 : position + window;
  begin = begin < 0 ? 0 : begin;
  end = end > kv_length ? kv_length : end;
  return {begin, end < begin ? begin : end};
}

// The lse of a row and its rest, on the CPU: of `maximum` and of the log of the sum relative to it.
ROOFLAB_HOST_DEVICE void attention_store_lse(const AttentionArgs& args, int64_t row, float maximum, float log_sum) {
  const float lse = maximum + log_sum;  // -inf where no key was seen
  args.lse[row] = lse;
  if (args.lse_rest) args.lse_rest[row] = lse - lse == 0 ? maximum - lse + log_sum : 0;
}

// Where there are few queries and many keys, the keys are split into parts: attention_splits() parts for each tile of
// query rows, the same number on every device. The rows of a key head are L_q * H / H_kv.
inline constexpr int64_t kAttentionSplitRows = 64;    // the query rows of a tile
inline constexpr int64_t kAttentionSplitParts = 264;  // parts that run at a time: two per multiprocessor of an H200
inline constexpr int64_t kAttentionSplitKeys = 64;    // the fewest keys of a part
inline int64_t attention_rows(const AttentionArgs& args) {
  return args.q_length * (args.heads / std::max<int64_t>(args.kv_heads, 1));
}
inline int64_t attention_tiles(const AttentionArgs& args) {
  return args.batch * args.kv_heads * ((attention_rows(args) + kAttentionSplitRows - 1) / kAttentionSplitRows);
}
int64_t attention_splits(const AttentionArgs&, int64_t at_a_time = kAttentionSplitParts);
// Each part leaves a row of D_h sums, its maximum and its sum of exponentials.
inline int64_t attention_partial_floats(const AttentionArgs& args) {
  const int64_t splits = attention_splits(args);
  return splits == 1 ? 0 : splits * args.batch * args.heads * args.q_length * (args.head_size + 2);
}

// v4: the parts of each tile, and whether their blocks form a cluster, which combines them in the same launch and needs
// no scratch.
struct AttentionParts {
  int64_t splits;
  bool has_clusters;
  int warps;  // of a block
};
AttentionParts attention_v4_parts(const AttentionArgs&, const Target&);
// The most blocks of a cluster that any GPU from sm_90 on can run.
inline constexpr int64_t kAttentionClusterParts = 8;

// The columns that the kernels for a head have room for.
constexpr int attention_head_room(int64_t head_size) { return head_size <= 64 ? 64 : head_size <= 128 ? 128 : 256; }

// v1: the rows that a block keeps, and the columns that it has room for. Its shared memory holds these rows, a tile of
// weights and a chunk of 64 rows and columns, all padded float32.
struct AttentionFlashTile {
  int64_t rows, columns;
};
constexpr int64_t attention_v1_bytes(int64_t rows, int64_t columns, int64_t resident = 1) {
  constexpr int64_t kChunk = 64, kChunkStride = kChunk + 4, kPad = 16;
  return 4 * (resident * (rows * columns + kPad) + rows * kChunk + kPad + kChunk * kChunkStride);
}
AttentionFlashTile attention_v1_tile(int64_t head_size, const Target&);  // as many rows as there is room for
// v1a: the rows of a tile. 8 are enough for decode; with more, a tile of keys would be read for each 8.
inline int64_t attention_v1a_rows(const AttentionArgs& args) { return attention_rows(args) <= 8 ? 8 : 32; }

// v2 keeps a tile of q, and streams tiles of k and v.
constexpr int64_t attention_v2_bytes(int64_t head) { return ((head > 128 ? 64 : 128) + 2 * 64) * head * 2; }

// v3a packs a bool mask into bits, and v2 does where several rows of scores read a row of it, and there are many: see
// attention_mask_rows.cuh. A row of bits begins with a pair of words.
ROOFLAB_HOST_DEVICE int64_t attention_mask_masks(const AttentionArgs& args) {
  return (args.mask_strides[0] == 0 ? 1 : args.batch) * (args.mask_strides[1] == 0 ? 1 : args.heads);
}
ROOFLAB_HOST_DEVICE int64_t attention_mask_rows(const AttentionArgs& args) {
  return args.mask_strides[2] == 0 ? 1 : args.q_length;
}
ROOFLAB_HOST_DEVICE int64_t attention_mask_row_words(const AttentionArgs& args) {
  return (args.kv_length + 63) / 64 * 2;
}
inline int64_t attention_v2_mask_words(const AttentionArgs& args) {
  return attention_mask_masks(args) * attention_mask_rows(args) * attention_mask_row_words(args);
}
inline bool attention_v2_packs_mask(const AttentionArgs& args) {
  constexpr int64_t kManyPairs = 1 << 19;
  if (args.mask == nullptr || !args.mask_is_bool) return false;
  const int64_t rows = args.batch * args.heads * args.q_length;
  return rows * args.kv_length >= kManyPairs && attention_mask_masks(args) * attention_mask_rows(args) <= rows / 2;
}

// v4: a ring of tiles of keys and values for each team of warps, of which there are at most as many as warps. It is
// also gemma3_decode's.
constexpr int64_t attention_ring_bytes(int64_t head, int64_t warps = 4) {
  constexpr int64_t kStepKeys = 16, kWidest = 256, kElement = 2;
  return warps * (2 * (kWidest / head) + 1) * kStepKeys * head * kElement;
}

// For the rungs that split floats into three bfloat16: the columns of a part, and the elements of all parts.
ROOFLAB_HOST_DEVICE int64_t attention_split_columns(int64_t head_size) { return (head_size + 7) / 8 * 8; }
inline int64_t attention_split_elements(int64_t batch, int64_t heads, int64_t length, int64_t head_size) {
  return 3 * batch * heads * length * attention_split_columns(head_size);
}
inline int64_t attention_split_elements(const AttentionArgs& args) {  // of q, k and v
  return attention_split_elements(args.batch, args.heads, args.q_length, args.head_size) +
         2 * attention_split_elements(args.batch, args.kv_heads, args.kv_length, args.head_size);
}

extern const Ladder<AttentionArgs> attention_ladder;

}  // namespace rooflab::kernels
