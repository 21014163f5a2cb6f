// Decode in two kernels: one leaves, for each row, the sums over a part of the keys; the other combines the parts. The
// second is here, and what both share. v4 needs no second kernel where clusters of blocks combine the parts.
#pragma once

#include "kernels/attention/attention_hidden.cuh"
#include "kernels/common/cuda_types.cuh"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/ptx_ampere.cuh"
#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

struct SplitPlan {
  int rows, group;       // packed rows: L_q times the group, which is the heads that share a key head
  int tiles;             // of rows, each of which a block takes
  KeyRange seen;         // the keys that some row sees
  KeyRange seen_by_all;  // the keys that every row sees
  int part_keys;         // keys per part, in whole steps
  int splits;
  int teams, row_warps;  // v4, per block: each warp of a team has 16 packed rows, and all share the team's tiles
  bool has_clusters;     // v4: the blocks of a tile's parts form a cluster, which combines the parts
};

// The parts, each of whole steps of keys, and the tiles of rows; what only v4 has is 0 and false.
inline SplitPlan split_plan(const AttentionArgs& args, int64_t splits, int tile_rows, int64_t step_keys) {
  const auto range = [&](int64_t query) {
    return visible_keys(query, args.q_length, args.kv_length, args.is_causal, args.window);
  };
  const KeyRange first = range(0), last = range(args.q_length - 1);
  SplitPlan plan{};
  plan.group = static_cast<int>(args.heads / args.kv_heads);
  plan.rows = static_cast<int>(args.q_length) * plan.group;
  plan.tiles = (plan.rows + tile_rows - 1) / tile_rows;
  plan.seen = {first.begin, std::max(first.begin, last.end)};
  plan.seen_by_all = {last.begin, first.end};
  plan.splits = static_cast<int>(splits);
  const int64_t steps = (plan.seen.end - plan.seen.begin + step_keys - 1) / step_keys;
  plan.part_keys = static_cast<int>((steps + plan.splits - 1) / plan.splits * step_keys);
  return plan;
}

// Where packed row r of a group lies. Heads vary fastest, so that neighbouring rows see the same keys.
struct PackedRow {
  __device__ PackedRow(const SplitPlan& plan, int r, int64_t kv_head)
      : query(r / plan.group), head(kv_head * plan.group + r % plan.group) {}
  int64_t query, head;
};

// Columns per thread of a row, in the sums over parts or over teams.
constexpr int kSumColumns = 4;

// The larger of two numbers. A NaN loses, so a maximum is always a number (the sum of exponentials carries the NaN).
struct Larger {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// The factor that turns sums relative to `max` into sums relative to the maximum of all; to_base_2 is what makes powers
// of two of differences.
__device__ __forceinline__ float rescale(float max, float max_of_all, float to_base_2 = 1) {
  return max == -INFINITY ? 0.0f : exp2_approximate((max - max_of_all) * to_base_2);
}

__device__ __forceinline__ void add_weighted(float4& sums, float weight, float4 more) {
  sums.x += weight * more.x;
  sums.y += weight * more.y;
  sums.z += weight * more.z;
  sums.w += weight * more.w;
}

// Stores a finished row from `column` on, and its log-sum-exp; `max` is a score as the product gives it.
template <class T>
__device__ __forceinline__ void store_row(const AttentionArgs& args, int64_t batch, int64_t head, int64_t query,
                                          int column, const float4& sums, float max, float sum) {
  const AttentionStrides& strides = args.out_strides;
  T* out = static_cast<T*>(args.out) + batch * strides.batch + head * strides.head + query * strides.token + column;
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
  const Vector<float, kSumColumns> values{sums.x * inverse, sums.y * inverse, sums.z * inverse, sums.w * inverse};
  store_vector(out, from_float<T>(values));
  if (args.lse != nullptr && column == 0) {
    store_lse(args, (batch * args.heads + head) * args.q_length + query, max, ScoreUnit(args).left, logf(sum));
  }
}

constexpr int kCombineThreads = 512, kCombineBatch = 8;
static_assert(kAttentionSplitParts <= kCombineThreads, "a thread for the weight of each part");

// One block per row. Neighbouring threads take its columns, and the layers of threads take the parts in turn. The first
// batch of parts is loaded while the weights are computed.
template <class T>
__global__ void __launch_bounds__(kCombineThreads, 1)
    attention_cuda_v4_split_kv_combine_kernel(const __grid_constant__ AttentionArgs args,
                                              const __grid_constant__ SplitPlan plan) {
  __shared__ float weight[kAttentionSplitParts];
  __shared__ float4 layer_sums[kCombineThreads];
  __shared__ BlockReduction<float>::Scratch scratch;
  const int splits = plan.splits, wide = static_cast<int>(args.head_size) / kSumColumns;
  const int layers = blockDim.x / wide, layer = threadIdx.x / wide, column = threadIdx.x % wide;
  const int64_t row = blockIdx.x, all_rows = gridDim.x;
  const float4* sums_of_parts = reinterpret_cast<const float4*>(args.partial) + row * wide + column;
  const float2* stats = reinterpret_cast<const float2*>(args.partial + splits * all_rows * args.head_size) + row;

  float4 batch[kCombineBatch];
  const auto load = [&](int first) {
#pragma unroll
    for (int i = 0; i < kCombineBatch; ++i) {
      const int part = first + i * layers;
      batch[i] = part < splits ? sums_of_parts[part * all_rows * wide] : float4{};
    }
  };
  wait_for_previous_kernel();
  load(layer);
  const int mine = threadIdx.x;
  const float2 stat = mine < splits ? stats[mine * all_rows] : make_float2(-INFINITY, 0.0f);
  BlockReduction<float> reduction(scratch);
  const float max = reduction.reduce(stat.x, -INFINITY, Larger{});
  const float my_weight = rescale(stat.x, max, ScoreUnit(args).to_base_2);
  if (mine < splits) weight[mine] = my_weight;
  const float sum = reduction.reduce(my_weight * stat.y, 0.0f, Add{});

  float4 sums{};
  for (int first = layer; first < splits; first += kCombineBatch * layers) {
    if (first > layer) load(first);
#pragma unroll
    for (int i = 0; i < kCombineBatch; ++i) {
      const int part = first + i * layers;
      if (part < splits) add_weighted(sums, weight[part], batch[i]);
    }
  }
  layer_sums[threadIdx.x] = sums;
  __syncthreads();
  if (layer > 0) return;
  for (int i = 1; i < layers; ++i) add_weighted(sums, 1.0f, layer_sums[i * wide + column]);
  const unsigned head_row = blockIdx.x / static_cast<unsigned>(args.q_length);
  const unsigned heads = static_cast<unsigned>(args.heads);
  store_row<T>(args, head_row / heads, head_row % heads, row - head_row * args.q_length, column * kSumColumns, sums,
               max, sum);
}

// One thread takes four columns of a few parts of a row: as many layers of threads as a block has room for.
template <class T>
void launch_combine(const AttentionArgs& args, const SplitPlan& plan, Queue& queue) {
  const int wide = static_cast<int>(args.head_size) / kSumColumns;
  const int layers = std::max(1, std::min(kCombineThreads / wide, (plan.splits + 3) / 4));
  const int threads = std::max(wide * layers, plan.splits);
  queue.launch(attention_cuda_v4_split_kv_combine_kernel<T>,
               {.grid = args.batch * args.heads * args.q_length,
                .block = (threads + kWarp - 1) / kWarp * kWarp,
                .early = can_launch_early(queue)},
               args, plan);
}

}  // namespace rooflab::kernels
