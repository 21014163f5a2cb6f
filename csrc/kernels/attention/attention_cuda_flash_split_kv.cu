// v1a: v1 for few queries. v1 gives a block 64 rows of one head, of which decode fills one, and all the keys, so that
// few blocks have work. Here a tile has 8 or 32 rows, which are queries of all the heads that share a key head, and
// each block takes one part of the keys. A second kernel combines the parts. So K and V are read once, by all
// multiprocessors together, and while a block multiplies one chunk, its registers receive the next: memory binds. Any
// element type (float32 sums), D_h a multiple of 4 up to 256, any mask.
#include "core/dispatch.h"
#include "kernels/attention/attention_fma_tile.cuh"
#include "kernels/attention/attention_split.cuh"

namespace rooflab::kernels {
namespace {

using namespace fma_tile;

template <int kChunks, int kRows>
struct SplitShared {
  RowTile<kRows, kChunks * kChunk> q;
  RowTile<kRows, kChunk> p;
  Chunk chunk;  // of k, then of v
};

// The chunks of a part in the order of their use: for each 64 keys the chunks of k, then those of v. Each is loaded
// while the one before it is multiplied.
template <class T>
struct ChunkStream {
  const HeadRows<const T> k, v;
  HeldChunk<T> held;
  int key, column = 0;
  bool is_v = false;

  __device__ ChunkStream(const HeadRows<const T>& k, const HeadRows<const T>& v, int first_key)
      : k(k), v(v), key(first_key) {
    held.load(k, key, column);
  }

  // Replaces the chunk. All threads must be done with the old one.
  __device__ __forceinline__ void next(Chunk& chunk) {
    __syncthreads();
    held.store(chunk);
    column += kChunk;
    if (column >= k.columns) {
      column = 0;
      if (is_v) key += kChunk;
      is_v = !is_v;
    }
    HeadRows<const T> from = k;
    if (is_v) from = v;
    held.load(from, key, column);
    __syncthreads();
  }
};

// kChunks: how many times 64 columns there is room for. kPerThread: rows per thread.
template <class T, int kChunks, int kPerThread>
__global__ void __launch_bounds__(kThreads, kChunks == 2 ? 4 : 3)
    attention_cuda_v1a_split_kv_kernel(const __grid_constant__ AttentionArgs args,
                                       const __grid_constant__ SplitPlan plan) {
  constexpr int kRows = Place<kPerThread>::kRows, kRoom = kChunks * kChunk;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<SplitShared<kChunks, kRows>*>(shared_bytes);

  const int part = static_cast<int>(blockIdx.x) % plan.splits;
  const unsigned tile = blockIdx.x / plan.splits, item = tile / plan.tiles;
  const int first_row = static_cast<int>(tile % plan.tiles) * kRows;
  const int64_t batch = item / static_cast<unsigned>(args.kv_heads), kv_head = item - batch * args.kv_heads;
  const Visibility visibility(args);
  const int part_begin = static_cast<int>(plan.seen.begin) + part * plan.part_keys;
  const int part_end = min(min(part_begin + plan.part_keys, static_cast<int>(plan.seen.end)), visibility.kv_length);
  const HeadRows<const T> k(static_cast<const T*>(args.k), args.k_strides, batch, kv_head, part_end, args.head_size);
  const HeadRows<const T> v(static_cast<const T*>(args.v), args.v_strides, batch, kv_head, part_end, args.head_size);
  const ScoreUnit unit(args);
  const Place<kPerThread> place;

  for (int i = threadIdx.x; i < kRows * kRoom; i += kThreads) {
    const int row = i / kRoom, column = i % kRoom;
    const PackedRow at(plan, first_row + row, kv_head);
    const bool inside = first_row + row < plan.rows && column < k.columns;
    const T* from = static_cast<const T*>(args.q) + batch * args.q_strides.batch + at.head * args.q_strides.head +
                    at.query * args.q_strides.token;
    *shared.q.at(row, column) = inside ? to_float(from[column]) : 0.0f;
  }

  float sum[kChunks][kPerThread][kColumns] = {};
  float maximum[kPerThread], weight[kPerThread];  // per row; this thread's part of the row's sum of weights
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) maximum[i] = -INFINITY, weight[i] = 0;

  ChunkStream<T> stream(k, v, part_begin);
  for (int first_key = part_begin; first_key < part_end; first_key += kChunk) {
    float score[kPerThread][kColumns] = {};
    for (int c = 0; c * kChunk < k.columns; ++c) {
      stream.next(shared.chunk);
      multiply_transposed<kRoom>(score, shared.q.at(place.first, c * kChunk), shared.chunk, place.x,
                                 min(k.columns - c * kChunk, kChunk));
    }

    const int end_key = first_key + kChunk;
    const bool whole = args.mask == nullptr && end_key <= part_end && first_row + kRows <= plan.rows &&
                       first_key >= plan.seen_by_all.begin && end_key <= plan.seen_by_all.end;
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const int row = first_row + place.row(i);
      const PackedRow at(plan, row, kv_head);
      const ExplicitMask<T> mask(args, batch, at.head);
      const int query = static_cast<int>(at.query);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int key = first_key + place.x + 16 * j;
        score[i][j] = scaled(score[i][j], unit.first);
        if (!whole) {
          const bool sees = row < plan.rows && key < part_end && visibility.sees(query, key);
          score[i][j] = sees ? mask.apply(score[i][j], query, key) : -INFINITY;
        }
      }
      const float rescale =
          add_weights(score[i], unit.to_base_2, maximum[i], weight[i], shared.p.at(place.row(i), place.x));
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sum[c][i][j] *= rescale;
      }
    }
    __syncwarp();

#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c * kChunk >= v.columns) break;
      stream.next(shared.chunk);
      multiply(sum[c], shared.p.at(place.first, 0), shared.chunk, place.x, whole);
    }
  }

  const int64_t all_rows = args.batch * args.heads * args.q_length;
  float* stats = args.partial + plan.splits * all_rows * args.head_size;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int row = first_row + place.row(i);
#pragma unroll
    for (int lanes = 2; lanes < kWarp; lanes *= 2) weight[i] += shuffle_xor(weight[i], lanes);
    if (row >= plan.rows) continue;
    const PackedRow at(plan, row, kv_head);
    const int64_t index = part * all_rows + (batch * args.heads + at.head) * args.q_length + at.query;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int column = c * kChunk + 4 * place.x;
      const float4 sums = make_float4(sum[c][i][0], sum[c][i][1], sum[c][i][2], sum[c][i][3]);
      if (column >= v.columns) continue;
      if (plan.splits == 1)
        store_row<T>(args, batch, at.head, at.query, column, sums, maximum[i], weight[i]);
      else
        *reinterpret_cast<float4*>(args.partial + index * args.head_size + column) = sums;
    }
    if (plan.splits > 1 && place.x == 0)
      *reinterpret_cast<float2*>(stats + 2 * index) = make_float2(maximum[i], weight[i]);
  }
}

template <class T, int kChunks, int kPerThread>
void launch_parts(const AttentionArgs& args, const SplitPlan& plan, Queue& queue) {
  constexpr int kRows = Place<kPerThread>::kRows;
  constexpr int64_t kBytes = attention_v1_bytes(kRows, kChunks * kChunk);
  static_assert(sizeof(SplitShared<kChunks, kRows>) == kBytes);
  queue.launch(attention_cuda_v1a_split_kv_kernel<T, kChunks, kPerThread>,
               {args.batch * args.kv_heads * plan.tiles * plan.splits, kThreads, kBytes}, args, plan);
}

template <class T>
void launch(const AttentionArgs& args, Queue& queue) {
  const SplitPlan plan = split_plan(args, attention_splits(args), static_cast<int>(attention_v1a_rows(args)), kChunk);
  const bool few = attention_v1a_rows(args) == Place<1>::kRows;
  if (args.head_size <= 2 * kChunk)
    few ? launch_parts<T, 2, 1>(args, plan, queue) : launch_parts<T, 2, 4>(args, plan, queue);
  else
    few ? launch_parts<T, 4, 1>(args, plan, queue) : launch_parts<T, 4, 4>(args, plan, queue);
  if (plan.splits > 1) launch_combine<T>(args, plan, queue);
}

}  // namespace

void attention_cuda_v1a_split_kv(const AttentionArgs& call, Queue& queue) {
  AttentionArgs args = call;
  args.partial = queue.scratch<float>(attention_partial_floats(args));
  dispatch_float(args.dtype, "attention", [&]<class T>() { launch<cuda_type_t<T>>(args, queue); });
}

}  // namespace rooflab::kernels
