// v1: FlashAttention-2's forward on plain multiply-adds. A block keeps 64 queries (32 where it has less shared memory,
// on Turing) and walks over the keys that any of them sees, 64 at a time: it computes the scores, their softmax
// relative to the largest score so far, and the weighted sum of the values. When a larger score appears, the sums so
// far are scaled down to it. Nothing of size L_q x L_kv is ever stored. Any element type (float32 sums), D_h up to 256,
// any mask, strides and alignment.
#include "core/dispatch.h"
#include "kernels/attention/attention_fma_tile.cuh"
#include "kernels/common/reduce.cuh"

namespace rooflab::kernels {
namespace {

using namespace fma_tile;

template <int kChunks, int kQueries>
struct Shared {
  RowTile<kQueries, kChunks * kChunk> q;
  RowTile<kQueries, kChunk> p;
  Chunk chunk;  // of k, then of v
};

// kChunks: how many times 64 columns there is room for. kPerThread: rows per thread.
template <class T, int kChunks, int kPerThread>
__global__ void __launch_bounds__(kThreads, kChunks == 2 ? 3 : 2)
    attention_cuda_v1_flash_kernel(const __grid_constant__ AttentionArgs args) {
  constexpr int kQueries = Place<kPerThread>::kRows;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<kChunks, kQueries>*>(shared_bytes);

  // The last queries see the most keys, so they start first.
  const Visibility visibility(args);
  const int tiles = (visibility.q_length + kQueries - 1) / kQueries;
  const int first_query = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * kQueries;
  const int64_t batch = blockIdx.x / tiles / args.heads, head = blockIdx.x / tiles % args.heads;
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const auto tensor = [&](const void* data, const AttentionStrides& strides, int64_t h, int64_t rows) {
    return HeadRows<const T>(static_cast<const T*>(data), strides, batch, h, rows, args.head_size);
  };
  const auto q = tensor(args.q, args.q_strides, head, args.q_length);
  const auto k = tensor(args.k, args.k_strides, kv_head, visibility.kv_length);
  const auto v = tensor(args.v, args.v_strides, kv_head, visibility.kv_length);
  const HeadRows<T> out(static_cast<T*>(args.out), args.out_strides, batch, head, args.q_length, args.head_size);
  const ExplicitMask<T> mask(args, batch, head);
  const Place<kPerThread> place;

  float sum[kChunks][kPerThread][kColumns] = {};
  float maximum[kPerThread], weight[kPerThread];  // per row; this thread's part of the row's sum of weights
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) maximum[i] = -INFINITY, weight[i] = 0;

  const Visibility::Range keys = visibility.keys_of_tile(first_query, kQueries);
  load_resident(shared.q, q, first_query);
  for (int first_key = keys.begin / kChunk * kChunk; first_key < keys.end; first_key += kChunk) {
    float score[kPerThread][kColumns] = {};
    for (int c = 0; c * kChunk < k.columns; ++c) {
      next_chunk(shared.chunk, k, first_key, c * kChunk);
      multiply_transposed<kChunks * kChunk>(score, shared.q.at(place.first, c * kChunk), shared.chunk, place.x,
                                            min(k.columns - c * kChunk, kChunk));
    }

    const bool whole = !mask.exists() && visibility.all_visible(first_query, kQueries, first_key, kChunk);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const int query = first_query + place.row(i);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int key = first_key + place.x + 16 * j;
        score[i][j] = scaled(score[i][j], args.scale);
        if (!whole) {
          const bool sees = query < visibility.q_length && visibility.sees(query, key);
          score[i][j] = sees ? mask.apply(score[i][j], query, key) : -INFINITY;
        }
      }
      const float rescale = add_weights(score[i], kLog2E, maximum[i], weight[i], shared.p.at(place.row(i), place.x));
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
      next_chunk(shared.chunk, v, first_key, c * kChunk);
      multiply(sum[c], shared.p.at(place.first, 0), shared.chunk, place.x, whole);
    }
  }

#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int query = first_query + place.row(i);
#pragma unroll
    for (int lanes = 2; lanes < kWarp; lanes *= 2) weight[i] += shuffle_xor(weight[i], lanes);
    const float factor = weight[i] == 0 ? 0 : 1 / weight[i];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) store_four(out, query, c * kChunk + 4 * place.x, sum[c][i], factor);
    if (args.lse != nullptr && place.x == 0 && query < visibility.q_length) {
      store_lse(args, (batch * args.heads + head) * args.q_length + query, maximum[i], 1, logf(weight[i]));
    }
  }
}

template <class T, int kChunks, int kPerThread>
void launch(const AttentionArgs& args, Queue& queue) {
  constexpr int kQueries = Place<kPerThread>::kRows;
  constexpr int64_t kBytes = attention_v1_bytes(kQueries, kChunks * kChunk);
  static_assert(sizeof(Shared<kChunks, kQueries>) == kBytes);
  const int64_t blocks = args.batch * args.heads * ((args.q_length + kQueries - 1) / kQueries);
  queue.launch(attention_cuda_v1_flash_kernel<T, kChunks, kPerThread>, {blocks, kThreads, kBytes}, args);
}

template <class T>
void launch(const AttentionArgs& args, Queue& queue) {
  const auto [rows, columns] = attention_v1_tile(args.head_size, queue.target());
  if (columns == 2 * kChunk)
    rows == Place<8>::kRows ? launch<T, 2, 8>(args, queue) : launch<T, 2, 4>(args, queue);
  else
    rows == Place<8>::kRows ? launch<T, 4, 8>(args, queue) : launch<T, 4, 4>(args, queue);
}

}  // namespace

void attention_cuda_v1_flash(const AttentionArgs& args, Queue& queue) {
  dispatch_float(args.dtype, "attention", [&]<class T>() { launch<cuda_type_t<T>>(args, queue); });
}

}  // namespace rooflab::kernels
