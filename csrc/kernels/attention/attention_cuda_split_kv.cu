// v4: decode. The rows of a group, which are all query heads that share a key head times all queries, are packed into
// tiles of 16 rows, so each byte of K and V is read from memory once. With so few rows most of the GPU would be idle
// unless the keys were split. Each block takes one part of the keys. From sm_90 on, the blocks of few parts form a
// cluster: each leaves its part in its own shared memory, where the others read it, and combines a share of the tile's
// elements. More parts, and those on older GPUs, go through global memory to a second kernel, launched before the first
// ends. In a block, teams of warps take the part's steps (16 keys each) in turn. Each team has its own tiles in shared
// memory, which cp.async fills a few steps ahead. So two blocks keep 128 KB in flight on a multiprocessor, as one of a
// cluster of two does, which has it to itself and eight warps; a block of a larger cluster keeps 64 KB. Up to 16 rows
// need no barrier wider than a warp.
// Memory binds: 4.4 TB/s on an H200 that copies at 4.2 (B64 L4096 H32:8 D128), and 3.9 where parts must be combined (B8
// L32768 H4:1 D256). Below about 30 MB latency binds: B1 L4096 H4:1 D256 takes 7.9 us, of which an empty launch takes
// 2.9, the parts 2.1 and the combining 2.9; moving the bytes would take 1. Above 16 packed rows, two warps per
// scheduler cannot issue instructions as fast as memory delivers: 2.3 TB/s with 32 rows of D128, 1.8 with 64 of D256.
// An explicit mask is read in pairs of neighbouring keys, in place and a step ahead, by each packed row for itself: a
// row of the mask that several heads share comes from memory once, and then from the cache. float16 and bfloat16 with
// float32 sums, rows 16-byte aligned, D_h a multiple of 8 up to 256, any mask. More than 64 packed rows are tiles of
// 64, which is worth it only where few tiles have many keys.
#include "kernels/attention/attention_mask_tile.cuh"
#include "kernels/attention/attention_split_tile.cuh"
#include "kernels/common/ptx_hopper.cuh"

namespace rooflab::kernels {

using namespace split_kv;

namespace {

// What a block leaves in its shared memory for the other blocks of its cluster: each row's sums over all teams, in the
// place of those of its first warp, and its maximum and sum of exponentials.
template <int kD, int kBlockWarps>
struct FoundPart : Found<kD, kBlockWarps> {
  float2 stats[kBlockRows];

  __device__ __forceinline__ float* sums(int row) { return this->out[row / kTileRows][row % kTileRows]; }
  __device__ __forceinline__ const float* sums(int row) const { return this->out[row / kTileRows][row % kTileRows]; }
};

// Combines the parts of a tile's rows, of `wide` groups of columns each. Each block of the cluster takes a share of the
// groups, and calls store(row, column, sums, max, sum) with what they are over all parts.
template <int kD, int kBlockWarps, class Store>
__device__ __forceinline__ void combine_in_cluster(const FoundPart<kD, kBlockWarps>& found, int parts, int rows,
                                                   int wide, float to_base_2, Store&& store) {
#ifdef ROOFLAB_SM90
  // Here and below, lanes leave the loop before it at different turns.
  __syncwarp();
  ptx::cluster_sync();
  constexpr int kBlockThreads = kBlockWarps * kWarp;
  for (int i = ptx::cluster_rank() * kBlockThreads + threadIdx.x; i < rows * wide; i += parts * kBlockThreads) {
    const int row = i / wide, column = i % wide * kSumColumns;
    // All parts are read before the first is used, so that their ways through the network overlap.
    float2 stats[kAttentionClusterParts];
    float4 sums_of_part[kAttentionClusterParts];
#pragma unroll
    for (int p = 0; p < kAttentionClusterParts; ++p) {
      stats[p] = make_float2(-INFINITY, 0);
      sums_of_part[p] = float4{};
      if (p >= parts) continue;
      const FoundPart<kD, kBlockWarps>& theirs = *ptx::at_rank(&found, p);
      stats[p] = theirs.stats[row];
      sums_of_part[p] = *reinterpret_cast<const float4*>(theirs.sums(row) + column);
    }
    float max = -INFINITY, sum = 0;
    float4 sums{};
#pragma unroll
    for (const float2& part_stats : stats) max = fmaxf(max, part_stats.x);
#pragma unroll
    for (int p = 0; p < kAttentionClusterParts; ++p) {
      const float weight = rescale(stats[p].x, max, to_base_2);
      sum += weight * stats[p].y;
      add_weighted(sums, weight, sums_of_part[p]);
    }
    store(row, column, sums, max, sum);
  }
  __syncwarp();
  ptx::cluster_sync();  // a block's shared memory must outlive what the others read there
#else
  unsupported_architecture();  // without clusters this is never asked for
#endif
}

template <class T, int kD, bool kMasked, int kBlockWarps>
__global__ void __launch_bounds__(kBlockWarps* kWarp, 2 * kWarps / kBlockWarps)
    attention_cuda_v4_split_kv_kernel(const __grid_constant__ AttentionArgs args,
                                      const __grid_constant__ SplitPlan plan) {
#ifdef ROOFLAB_SM80
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned tile = blockIdx.x / plan.splits, part = blockIdx.x % plan.splits;
  const unsigned item = plan.tiles == 1 ? tile : tile / plan.tiles;
  const int tile_row = static_cast<int>(tile - item * plan.tiles) * kBlockRows;
  const int tile_rows = min(plan.rows - tile_row, kBlockRows);
  const int64_t batch = item / static_cast<unsigned>(args.kv_heads), kv_head = item - batch * args.kv_heads;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int team = warp / plan.row_warps, row_warp = warp % plan.row_warps, first_row = tile_row + row_warp * kTileRows;

  const int64_t wanted_begin = plan.seen.begin + int64_t{part} * plan.part_keys;
  wait_for_previous_kernel();
  const int64_t end = min(plan.seen.end, held_keys(args));
  const int part_begin = static_cast<int>(min(wanted_begin, end));
  const int part_end = static_cast<int>(min(wanted_begin + plan.part_keys, end));
  int key = part_begin + team * kStepKeys;  // the first key of the team's next step
  auto* tiles = reinterpret_cast<Tile<T, kD>*>(shared) + team * plan.row_warps * TileStream<T, kD>::kSlots;
  TileStream<T, kD> stream(tiles, plan, row_warp, static_cast<int>(args.head_size));
  const auto source = [&](const void* tensor, const AttentionStrides& strides) {
    const int64_t offset = batch * strides.batch + kv_head * strides.head + key * strides.token;
    return stream.source(static_cast<const T*>(tensor) + offset, strides.token, part_end - key);
  };
  auto k = source(args.k, args.k_strides), v = source(args.v, args.v_strides);
  stream.start(k, v);

  // The warp's rows of Q, as fragments, which are zero beyond the last row and column.
  uint32_t q[kD / 16][4];
  int first_key[2], last_key[2];
  std::conditional_t<kMasked, MaskPairs<T>, NoMaskPairs> mask(args, part_end);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first_row + r * 8 + lane / 4;
    const PackedRow at(plan, row, kv_head);
    const KeyRange range = visible_keys(at.query, args.q_length, args.kv_length, args.is_causal, args.window);
    first_key[r] = static_cast<int>(range.begin);
    last_key[r] = min(static_cast<int>(range.end), part_end) - 1;
    if (row < plan.rows) mask.set_row(r, args, batch, at.head, at.query, key + lane % 4 * 2);
    const T* from = static_cast<const T*>(args.q) + batch * args.q_strides.batch + at.head * args.q_strides.head +
                    at.query * args.q_strides.token;
#pragma unroll
    for (int j = 0; j < kD / 8; ++j) {
      const int column = j * 8 + lane % 4 * 2;
      const bool inside = row < plan.rows && column < args.head_size;
      q[j / 2][j % 2 * 2 + r] = inside ? *reinterpret_cast<const uint32_t*>(from + column) : 0;
    }
  }

  const ScoreUnit unit(args);
  const int seen_begin = static_cast<int>(plan.seen_by_all.begin);
  const int seen_end = min(static_cast<int>(plan.seen_by_all.end), part_end);
  WarpState<T, kD> state;
  mask.load(key + lane % 4 * 2);
  for (int turn = part_begin; turn < part_end; turn += plan.teams * kStepKeys, key += plan.teams * kStepKeys) {
    float score[2][4];
    const Tile<T, kD>& k_tile = stream.next(k);
    if (key < part_end) {
      multiply<T, kD>(score, q, k_tile, unit.first);
      mask.apply(score);
      if (key < seen_begin || key + kStepKeys > seen_end) hide(score, key, first_key, last_key);
    }
    mask.load(key + plan.teams * kStepKeys + lane % 4 * 2);
    const Tile<T, kD>& v_tile = stream.next(v);
    if (key < part_end) state.add_step(score, v_tile, unit.to_base_2);
  }
  if (plan.splits > 1 && !plan.has_clusters) let_next_kernel_come();

  ptx::copy_async_wait<0>();
  __syncthreads();
  using Found = FoundPart<kD, kBlockWarps>;
  Found& found = *reinterpret_cast<Found*>(shared);
  static_assert(sizeof(found) <= kSharedBytes<T, kD, kBlockWarps>);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = r * 8 + lane / 4;
    state.sum[r] = warp_reduce(state.sum[r], Add{}, 4);
    if (first_row + row >= plan.rows) continue;
    if (lane % 4 == 0) {
      found.max[warp][row] = state.max[r];
      found.sum[warp][row] = state.sum[r];
    }
#pragma unroll
    for (int j = 0; j < kD / 8; ++j) {
      *reinterpret_cast<float2*>(&found.out[warp][row][j * 8 + lane % 4 * 2]) =
          make_float2(state.out[j][2 * r], state.out[j][2 * r + 1]);
    }
  }
  __syncthreads();

  // Adds up the sums of the teams. If this is the only part, that is the result.
  const int wide = static_cast<int>(args.head_size) / kSumColumns;
  const int64_t all_rows = args.batch * args.heads * args.q_length;
  const auto partial_row = [&](const PackedRow& at) {
    return part * all_rows + (batch * args.heads + at.head) * args.q_length + at.query;
  };
  // Where one of several parts leaves a row's sums, and its maximum and sum of exponentials.
  const auto sums_of_part = [&](int row_of_tile, const PackedRow& at) {
    return plan.has_clusters ? found.sums(row_of_tile) : args.partial + partial_row(at) * args.head_size;
  };
  const auto stats_of_part = [&](int row_of_tile, const PackedRow& at) {
    if (plan.has_clusters) return &found.stats[row_of_tile];
    return reinterpret_cast<float2*>(args.partial + plan.splits * all_rows * args.head_size) + partial_row(at);
  };
  const auto store = [&](int row_of_tile, int column, const float4& sums, float max, float sum) {
    const PackedRow at(plan, tile_row + row_of_tile, kv_head);
    store_row<T>(args, batch, at.head, at.query, column, sums, max, sum);
  };
  const auto total_of = [&](int row_of_tile) {  // the row's maximum and its sum of exponentials
    const int row = row_of_tile % kTileRows, first_warp = row_of_tile / kTileRows;
    float2 total = make_float2(-INFINITY, 0);
    for (int w = first_warp; w < kBlockWarps; w += plan.row_warps) total.x = fmaxf(total.x, found.max[w][row]);
    for (int w = first_warp; w < kBlockWarps; w += plan.row_warps) {
      total.y += rescale(found.max[w][row], total.x, unit.to_base_2) * found.sum[w][row];
    }
    return total;
  };
  bool nan = false;
  for (int i = threadIdx.x; i < tile_rows * wide; i += kBlockWarps * kWarp) {
    const int row_of_tile = i / wide, column = i % wide * kSumColumns;
    const int row = row_of_tile % kTileRows, first_warp = row_of_tile / kTileRows;
    const auto [max, sum] = total_of(row_of_tile);
    float4 sums{};
    for (int w = first_warp; w < kBlockWarps; w += plan.row_warps) {
      add_weighted(sums, rescale(found.max[w][row], max, unit.to_base_2),
                   *reinterpret_cast<const float4*>(&found.out[w][row][column]));
    }
    nan |= isnan(sums.x + sums.y + sums.z + sums.w);
    if (plan.splits == 1) {
      store(row_of_tile, column, sums, max, sum);
    } else {
      const PackedRow at(plan, tile_row + row_of_tile, kv_head);
      *reinterpret_cast<float4*>(sums_of_part(row_of_tile, at) + column) = sums;
      if (column == 0) *stats_of_part(row_of_tile, at) = make_float2(max, sum);
    }
  }

  // Some rows may see fewer keys than were multiplied with them: see attention_hidden.cuh.
  const bool hides = kMasked || plan.seen.begin < plan.seen_by_all.begin || plan.seen.end > plan.seen_by_all.end;
  const bool mends = hides && __syncthreads_or(nan);
  for (int row_of_tile = warp; mends && row_of_tile < tile_rows; row_of_tile += kBlockWarps) {
    const PackedRow at(plan, tile_row + row_of_tile, kv_head);
    const auto mend = [&]<class E>(E* row, auto&& factor) {
      leave_out_hidden_keys<T, kD>(args, batch, at.head, static_cast<int>(at.query), {part_begin, part_end}, row,
                                   factor);
    };
    if (plan.splits == 1) {
      const AttentionStrides& strides = args.out_strides;
      mend(static_cast<T*>(args.out) + batch * strides.batch + at.head * strides.head + at.query * strides.token,
           [](float, float total) { return 1 / total; });
    } else {
      const float max = total_of(row_of_tile).x * unit.left;
      mend(sums_of_part(row_of_tile, at), [max](float maximum, float) { return exp_difference(maximum, max); });
    }
  }
  if (plan.has_clusters) combine_in_cluster(found, plan.splits, tile_rows, wide, unit.to_base_2, store);
#else
  unsupported_architecture();
#endif
}

SplitPlan plan_of(const AttentionArgs& args, const Target& target) {
  const AttentionParts parts = attention_v4_parts(args, target);
  SplitPlan plan = split_plan(args, parts.splits, kBlockRows, kStepKeys);
  plan.row_warps = plan.rows <= kTileRows ? 1 : plan.rows <= 2 * kTileRows ? 2 : 4;
  plan.teams = parts.warps / plan.row_warps;
  plan.has_clusters = parts.has_clusters;
  return plan;
}

template <class T, int kD, bool kMasked>
void launch_parts(const AttentionArgs& args, const SplitPlan& plan, Queue& queue) {
  const auto start = [&]<int kBlockWarps>() {
    static_assert(kSharedBytes<T, kD, kBlockWarps> == attention_ring_bytes(kD, kBlockWarps));
    queue.launch(attention_cuda_v4_split_kv_kernel<T, kD, kMasked, kBlockWarps>,
                 {.grid = args.batch * args.kv_heads * plan.tiles * plan.splits,
                  .block = kBlockWarps * kWarp,
                  .shared_bytes = kSharedBytes<T, kD, kBlockWarps>,
                  .cluster = plan.has_clusters ? plan.splits : 1,
                  .early = can_launch_early(queue)},
                 args, plan);
  };
  if (kMasked || plan.teams * plan.row_warps == kWarps) return start.template operator()<kWarps>();
  if constexpr (!kMasked) start.template operator()<2 * kWarps>();
}
template <class T, int kD>
void launch_parts(const AttentionArgs& args, const SplitPlan& plan, Queue& queue) {
  args.mask == nullptr ? launch_parts<T, kD, false>(args, plan, queue) : launch_parts<T, kD, true>(args, plan, queue);
}

template <class T>
void launch(AttentionArgs args, Queue& queue) {
  const SplitPlan plan = plan_of(args, queue.target());
  const bool needs_combining = plan.splits > 1 && !plan.has_clusters;
  if (needs_combining) args.partial = queue.scratch<float>(attention_partial_floats(args));
  if (args.head_size <= 64) {
    launch_parts<T, 64>(args, plan, queue);
  } else if (args.head_size <= 128) {
    launch_parts<T, 128>(args, plan, queue);
  } else {
    launch_parts<T, 256>(args, plan, queue);
  }
  if (needs_combining) launch_combine<T>(args, plan, queue);
}

}  // namespace

void attention_cuda_v4_split_kv(const AttentionArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
