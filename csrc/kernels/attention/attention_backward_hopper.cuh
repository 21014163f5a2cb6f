// What the Hopper rungs of attention_backward share: which block of keys a thread block takes and which query tiles it
// needs, the ring that loads these tiles, and how dQ is accumulated.
#pragma once

#include "kernels/attention/attention_backward_tile.cuh"
#include "kernels/attention/attention_hopper.cuh"

namespace rooflab::kernels {

inline constexpr int kWarps = kWarpgroup / 32;

// One arrival per warp, for a barrier that expects one from each of several warps.
__device__ __forceinline__ void arrive_as_warp(ptx::Barrier& barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::barrier_arrive(barrier);
}

struct BackwardMaps {
  CUtensorMap q, k, v, dout, dk, dv;
};

struct BackwardProblem {
  int batch, heads, kv_heads, q_length, kv_length, head_size;
  int rounded_rows;                  // of a head in delta and dq_sum
  int offset, lowest, highest;       // a query sees a key when lowest <= key - (query + offset) <= highest
  int key_blocks, heads_in_section;  // the order of blocks, see key_block
  float scale, scale_log2;
  const float *lse, *delta;
  float* dq_sum;
  char* turns;  // turns of deterministic sums, in the memory of dq until dq is written; null when any order will do
  int64_t turn_batch, turn_head, turn_token;  // strides, in bytes
  AttentionBackwardArgs args;
};

struct KeyBlock {
  int first, head, batch;
};

// Blocks that run together share the queries and the dQ sums of a few heads, which stay in L2. Within such a section,
// the blocks with the most queries come first when causal.
__device__ __forceinline__ KeyBlock key_block(const BackwardProblem& problem, int keys) {
  const int per_section = problem.heads_in_section * problem.key_blocks, index = static_cast<int>(blockIdx.x);
  const int section = index / per_section, within = index % per_section;
  const int first_head = section * problem.heads_in_section;
  const int width = min(problem.heads_in_section, problem.batch * problem.kv_heads - first_head);
  const int head = first_head + within % width;
  return {within / width * keys, head % problem.kv_heads, head / problem.kv_heads};
}

// The tiles of kRows queries that see a block of keys, head by head through its group, the last rows first.
template <int kRows>
struct QueryWalk {
  __device__ QueryWalk(const BackwardProblem& problem, const KeyBlock& block, int keys) {
    const int last_key = min(block.first + keys, problem.kv_length) - 1;
    const int begin = max(block.first - problem.offset - problem.highest, 0);
    const int end = min(last_key - problem.offset - problem.lowest + 1, problem.q_length);
    const int group = problem.heads / problem.kv_heads;
    first_row = begin / kRows * kRows;
    last_row = (end - 1) / kRows * kRows;
    steps = begin < end ? group * ((last_row - first_row) / kRows + 1) : 0;
    head = block.head * group;
    row = last_row;
  }

  __device__ __forceinline__ void advance() {
    row -= kRows;
    if (row < first_row) row = last_row, ++head;
  }

  int first_row, last_row, steps;
  int head, row;
};

// What the products need besides the tiles, for each query of a tile: lse in base 2, and D; the tile's first row; and
// its head if lse is large there, else -1.
template <int kRows>
struct alignas(16) QueryRows {
  float lse[kRows], delta[kRows];
  int row, large_head;
};

// Writes these for one tile, by one warp. A query that sees no key, or that does not exist, gets probabilities of zero.
template <int kRows>
__device__ __forceinline__ void load_query_rows(QueryRows<kRows>& rows, const BackwardProblem& problem, int batch,
                                                const QueryWalk<kRows>& at, ptx::Barrier& empty, uint32_t parity) {
  const int64_t head = int64_t{batch} * problem.heads + at.head;
  float lse[kRows / 32], delta[kRows / 32];
#pragma unroll
  for (int i = 0; i < kRows / 32; ++i) {
    const int row = at.row + i * 32 + threadIdx.x % 32;
    lse[i] = row < problem.q_length ? problem.lse[head * problem.q_length + row] : -INFINITY;
    delta[i] = problem.delta[head * problem.rounded_rows + row];
  }
  bool is_large = false;
#pragma unroll
  for (int i = 0; i < kRows / 32; ++i) is_large |= fabsf(lse[i]) > kLargeLse && lse[i] != -INFINITY;
  const int large_head = __any_sync(0xffffffff, is_large) ? at.head : -1;
  ptx::barrier_wait(empty, parity);
#pragma unroll
  for (int i = 0; i < kRows / 32; ++i) {
    const int row = i * 32 + threadIdx.x % 32;
    rows.lse[row] = lse[i] == -INFINITY ? INFINITY : lse[i] * kLog2E;
    rows.delta[row] = delta[i];
  }
  if (threadIdx.x % 32 == 0) {
    rows.row = at.row;
    rows.large_head = large_head;
  }
}

// Turns a warpgroup's scores into probabilities. Their rows are the 64 keys from `first_key` on. Returns whether some
// pairs are hidden.
template <int kRows>
__device__ __forceinline__ bool to_probabilities(float (&s)[kRows / 2], const BackwardProblem& problem,
                                                 const QueryRows<kRows>& rows, int batch, int first_key) {
  const int lane = threadIdx.x % 32;
  if (rows.large_head < 0) {
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) {
      const float2 lse = reinterpret_cast<const float2&>(rows.lse[i / 4 * 8 + lane % 4 * 2]);
      s[i] = exp2_approximate(s[i] * problem.scale_log2 - (i % 2 == 0 ? lse.x : lse.y));
    }
  } else {
    const QueryStatistics statistics(problem.args, batch, rows.large_head);
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) {
      const WeightShift shift = statistics.shift(rows.row + i / 4 * 8 + lane % 4 * 2 + i % 2);
      s[i] = exp2_approximate(shift.exponent(s[i], problem.scale));
    }
  }
  // Differences that are compared with `lowest` and `highest`: for the first pair of the tile, then for this lane's
  // pair.
  const int tile_difference = first_key - (rows.row + problem.offset);
  const bool sees_all = tile_difference - (kRows - 1) >= problem.lowest &&
                        tile_difference + kWarpgroupRows - 1 <= problem.highest &&
                        first_key + kWarpgroupRows <= problem.kv_length;
  if (sees_all) return false;
  const int lane_key = threadIdx.x % kWarpgroup / 32 * 16 + lane / 4;
  const int lane_difference = tile_difference + lane_key - lane % 4 * 2;
  const int keys_left = problem.kv_length - first_key - lane_key;
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i) {
    const int key = i / 2 % 2 * 8, difference = lane_difference + key - (i / 4 * 8 + i % 2);
    const bool visible = difference >= problem.lowest && difference <= problem.highest && key < keys_left;
    s[i] = visible ? s[i] : 0.0f;
  }
  return true;
}

// Turns dP into dP - D, which times P is dS. Hidden pairs get 0, even where v or dout is NaN.
template <int kRows>
__device__ __forceinline__ void subtract_delta(float (&dp)[kRows / 2], const float (&p)[kRows / 2],
                                               const QueryRows<kRows>& rows, bool hides) {
#pragma unroll
  for (int i = 0; i < kRows / 2; i += 2) {
    const float2 delta = reinterpret_cast<const float2&>(rows.delta[i / 4 * 8 + threadIdx.x % 4 * 2]);
    dp[i] -= delta.x;
    dp[i + 1] -= delta.y;
  }
  if (!hides) return;
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i) dp[i] = p[i] == 0 ? 0 : dp[i];
}

// dq_sum holds each 64 rows of a head as groups of eight columns. A group is 128 vectors of four floats, one for each
// lane of a warpgroup, in the layout in which a product leaves them.
inline constexpr int kSumColumn = 8, kSumRows = kWarpgroupRows;

__device__ __forceinline__ float* dq_sum_tile(const BackwardProblem& problem, int batch, int head, int row) {
  const int64_t first = (int64_t{batch} * problem.heads + head) * problem.rounded_rows + row;
  return problem.dq_sum + first * problem.head_size;
}

// For deterministic sums, blocks of keys take turns: they add to a tile in the order in which they were launched.
// `part` distinguishes the warpgroups that add to the same tile.
struct Turn {
  uint32_t* counter;
  uint32_t number;
};

__device__ __forceinline__ Turn turn_of(const BackwardProblem& problem, const KeyBlock& block, int keys, int head,
                                        int row, int part) {
  char* counter =
      problem.turns + block.batch * problem.turn_batch + head * problem.turn_head + row * problem.turn_token;
  const int first_key = max(row + problem.offset + problem.lowest, 0);
  return {reinterpret_cast<uint32_t*>(counter) + part, static_cast<uint32_t>(block.first / keys - first_key / keys)};
}

// Both are called by one thread.
__device__ __forceinline__ void await_turn(const Turn& turn) {
  while (ptx::load_acquire(turn.counter) != turn.number) {
  }
}
__device__ __forceinline__ void end_turn(const Turn& turn) {
  __threadfence();
  ptx::store_release(turn.counter, turn.number + 1);
}

// Rounds a warpgroup's 64 rows of sums into panels of kRows lines, starting at line `first`.
template <class T, int kRows, int kPanels>
__device__ __forceinline__ void store_rows(T (&tile)[kPanels][kRows][kLine], const float (&sum)[kPanels * kLine / 2],
                                           int first, float scale) {
  const int lane = threadIdx.x % 32, row = threadIdx.x % kWarpgroup / 32 * 16 + lane % 16;
#pragma unroll
  for (int j = 0; j < kPanels * kLine / 8; j += 2) {
    const float* d = sum + j * 4;
    const int vector = (j % 8 + lane / 16) ^ (row % 8);
    ptx::store_matrices(&tile[j / 8][first + row][vector * 8], ptx::pack<T>(d[0] * scale, d[1] * scale),
                        ptx::pack<T>(d[2] * scale, d[3] * scale), ptx::pack<T>(d[4] * scale, d[5] * scale),
                        ptx::pack<T>(d[6] * scale, d[7] * scale));
  }
}

// See attention_backward_tile.cuh: for the rows of dV that a warp has stored in a tile of shared memory. Its
// warpgroup's 64 lines begin with line `first` and belong to the keys from `first_key` on; the columns begin with
// `first_column`.
template <class T, int kRows, int kPanels>
__device__ __forceinline__ void leave_out_hidden_queries(T (&tile)[kPanels][kRows][kLine],
                                                         const float (&dv)[kPanels * kLine / 2], int first,
                                                         const BackwardProblem& problem, const KeyBlock& block,
                                                         int first_key, int first_column) {
  if (!__any_sync(0xffffffff, has_nan(dv))) return;
  const int warp_row = threadIdx.x % kWarpgroup / 32 * 16;
  const auto element = [panels = &tile[0], line = first + warp_row, first_column](int row, int column) -> T& {
    const int within = column - first_column, vector = within % kLine / 8 ^ row % 8;
    return panels[within / kLine][line + row][vector * 8 + within % 8];
  };
  leave_out_hidden_queries<T, kPanels * kLine>(problem.args, block.batch, block.head, first_key + warp_row, 16,
                                               first_column, element);
}

// Launch the main kernel; one file for each kind of tiling.
void attention_backward_hopper_registers(const AttentionBackwardArgs&, const BackwardProblem&, Queue&);  // D_h <= 128
void attention_backward_hopper_shared(const AttentionBackwardArgs&, const BackwardProblem&, Queue&);     // D_h <= 256

// Tensor maps for tiles of `rows` queries and `keys` keys; dk and dv are stored 64 rows at a time.
inline BackwardMaps backward_maps(const AttentionBackwardArgs& args, int rows, int keys) {
  const AttentionArgs& f = args.forward;
  const auto queries = [&](const void* data, const AttentionStrides& strides) {
    return attention_map(data, strides, f.batch, f.heads, f.q_length, f.head_size, f.dtype, rows);
  };
  const auto key_rows = [&](const void* data, const AttentionStrides& strides, int lines) {
    return attention_map(data, strides, f.batch, f.kv_heads, f.kv_length, f.head_size, f.dtype, lines);
  };
  return {queries(f.q, f.q_strides),
          key_rows(f.k, f.k_strides, keys),
          key_rows(f.v, f.v_strides, keys),
          queries(args.dout, args.dout_strides),
          key_rows(args.dk, args.dk_strides, kWarpgroupRows),
          key_rows(args.dv, args.dv_strides, kWarpgroupRows)};
}

}  // namespace rooflab::kernels
