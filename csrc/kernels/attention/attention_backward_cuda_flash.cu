// v1: FlashAttention-2's backward on plain multiply-adds. It is deterministic, because no sum crosses blocks. One
// launch computes dQ: a block keeps 64 queries and walks over the keys they see. The other computes dK and dV: a block
// keeps 32 keys and walks over the queries that see them, in all heads that share the keys. Where D_h is over 128 or a
// block has less shared memory, on Turing, it keeps fewer. Both recompute the scores, so there are seven products
// instead of five. The two launches are mirror images: one side's rows stay, the other side's stream past.
// Any element type (float32 sums), D_h up to 256, any mask, strides and alignment.
#include "core/dispatch.h"
#include "kernels/attention/attention_backward_tile.cuh"
#include "kernels/attention/attention_fma_tile.cuh"

namespace rooflab::kernels {
namespace {

using namespace fma_tile;

template <int kChunks, int kRows>
struct Shared {
  RowTile<kRows, kChunks * kChunk> a, b;  // q and dout, or k and v
  RowTile<kRows, kChunk> weights;         // P or dS, transposed on the side of the keys
  Chunk chunk;                            // of k and v, or of q and dout
};

// kChunks: how many times 64 columns there is room for. kOwn: rows per thread.
template <class T, int kChunks, int kOwn, Side kSide>
__global__ void __launch_bounds__(kThreads, kChunks == 2 && kSide == Side::kKeys ? 3 : 2)
    attention_backward_cuda_v1_flash_kernel(const __grid_constant__ AttentionBackwardArgs args) {
  constexpr bool kOfKeys = kSide == Side::kKeys;
  constexpr int kWidth = kChunks * kChunk, kRows = Place<kOwn>::kRows;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<kChunks, kRows>*>(shared_bytes);

  const AttentionArgs& forward = args.forward;
  const Visibility visibility(forward);
  const int64_t heads = kOfKeys ? forward.kv_heads : forward.heads, group = forward.heads / forward.kv_heads;
  const int tiles = ((kOfKeys ? visibility.kv_length : visibility.q_length) + kRows - 1) / kRows;
  const int64_t batch = blockIdx.x / tiles / heads, own_head = blockIdx.x / tiles % heads;
  // The blocks with the most work start first: queries that see the most keys, or keys seen by the most queries.
  const int tile = static_cast<int>(blockIdx.x) % tiles, first_row = (kOfKeys ? tile : tiles - 1 - tile) * kRows;
  const auto tensor = [&]<class E>(E* data, const AttentionStrides& strides, int64_t head, int64_t rows) {
    return HeadRows<E>(data, strides, batch, head, rows, forward.head_size);
  };
  const auto queries_of = [&](const void* data, const AttentionStrides& strides, int64_t head) {
    return tensor(static_cast<const T*>(data), strides, head, forward.q_length);
  };
  const auto keys_of = [&](const void* data, const AttentionStrides& strides, int64_t head) {
    return tensor(static_cast<const T*>(data), strides, head, forward.kv_length);
  };
  const int64_t kv_head = kOfKeys ? own_head : own_head / group;
  const auto k = keys_of(forward.k, forward.k_strides, kv_head), v = keys_of(forward.v, forward.v_strides, kv_head);
  const Place<kOwn> place;

  float first_gradient[kChunks][kOwn][kColumns] = {};  // dQ or dK
  [[maybe_unused]] float dv[kChunks][kOwn][kColumns] = {};
  const auto range = kOfKeys ? visibility.queries_of_tile(first_row, kRows) : visibility.keys_of_tile(first_row, kRows);

  for (int64_t head = kOfKeys ? own_head * group : own_head; head < (kOfKeys ? (own_head + 1) * group : own_head + 1);
       ++head) {
    const auto q = queries_of(forward.q, forward.q_strides, head);
    const auto dout = queries_of(args.dout, args.dout_strides, head);
    const ExplicitMask<T> mask(forward, batch, head);
    const QueryStatistics statistics(args, batch, head);
    if (!kOfKeys || head == own_head * group) {
      load_resident(shared.a, kOfKeys ? k : q, first_row);
      load_resident(shared.b, kOfKeys ? v : dout, first_row);
    }
    const HeadRows<const T>&a_stream = kOfKeys ? q : k, &b_stream = kOfKeys ? dout : v;

    for (int first_column = range.begin / kChunk * kChunk; first_column < range.end; first_column += kChunk) {
      float p[kOwn][kColumns] = {}, ds[kOwn][kColumns] = {};
      const auto write_weights = [&](const float(&from)[kOwn][kColumns]) {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
#pragma unroll
          for (int j = 0; j < kColumns; ++j) *shared.weights.at(place.row(i), place.x + 16 * j) = from[i][j];
        }
        __syncwarp();
      };

      for (int c = 0; c * kChunk < k.columns; ++c) {
        next_chunk(shared.chunk, a_stream, first_column, c * kChunk);
        multiply_transposed<kWidth>(p, shared.a.at(place.first, c * kChunk), shared.chunk, place.x,
                                    min(k.columns - c * kChunk, kChunk));
      }
      const int first_query = kOfKeys ? first_column : first_row, first_key = kOfKeys ? first_row : first_column;
      const bool whole = !mask.exists() && visibility.all_visible(first_query, kOfKeys ? kChunk : kRows, first_key,
                                                                  kOfKeys ? kRows : kChunk);
      constexpr int kOwnQueries = kOfKeys ? kColumns : kOwn;
      const auto own_query = [&](int n) {
        return kOfKeys ? first_column + place.x + 16 * n : first_row + place.row(n);
      };
      WeightShift shift[kOwnQueries];
#pragma unroll
      for (int n = 0; n < kOwnQueries; ++n) shift[n] = statistics.shift(own_query(n));
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          const int query = own_query(kOfKeys ? j : i);
          const int key = kOfKeys ? first_row + place.row(i) : first_column + place.x + 16 * j;
          float score = scaled(p[i][j], forward.scale);
          if (!whole) {
            const bool sees = query < visibility.q_length && visibility.sees(query, key);
            score = sees ? mask.apply(score, query, key) : -INFINITY;
          }
          p[i][j] = exp2f(shift[kOfKeys ? j : i].exponent(score, 1));
        }
      }

      if constexpr (kOfKeys) write_weights(p);
#pragma unroll(kOfKeys ? kChunks : 1)
      for (int c = 0; c < kChunks; ++c) {
        if (c * kChunk >= k.columns) break;
        next_chunk(shared.chunk, b_stream, first_column, c * kChunk);
        multiply_transposed<kWidth>(ds, shared.b.at(place.first, c * kChunk), shared.chunk, place.x,
                                    min(k.columns - c * kChunk, kChunk));
        if constexpr (kOfKeys) multiply(dv[c], shared.weights.at(place.first, 0), shared.chunk, place.x, whole);
      }
      float delta[kOwnQueries];
#pragma unroll
      for (int n = 0; n < kOwnQueries; ++n) delta[n] = statistics.delta(own_query(n));
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          ds[i][j] = p[i][j] * (ds[i][j] - delta[kOfKeys ? j : i]) * forward.scale;
          if (p[i][j] == 0) ds[i][j] = 0;  // a hidden pair adds nothing, even where v or dout is NaN
        }
      }

      write_weights(ds);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (c * kChunk >= k.columns) break;
        next_chunk(shared.chunk, a_stream, first_column, c * kChunk);
        multiply<false>(first_gradient[c], shared.weights.at(place.first, 0), shared.chunk, place.x);
      }
    }
  }

  const auto write = [&](void* data, const AttentionStrides& strides, const float(&sum)[kChunks][kOwn][kColumns]) {
    const auto to = tensor(static_cast<T*>(data), strides, own_head, kOfKeys ? forward.kv_length : forward.q_length);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        store_four(to, first_row + place.row(i), c * kChunk + 4 * place.x, sum[c][i], 1);
      }
    }
  };
  if constexpr (kOfKeys) {
    write(args.dk, args.dk_strides, first_gradient);
    write(args.dv, args.dv_strides, dv);
  } else {
    write(args.dq, args.dq_strides, first_gradient);
  }
}

template <class T, int kChunks, int kOwn, Side kSide>
void launch(const AttentionBackwardArgs& args, Queue& queue) {
  const AttentionArgs& forward = args.forward;
  const bool of_keys = kSide == Side::kKeys;
  constexpr int kRows = Place<kOwn>::kRows;
  constexpr int64_t kBytes = attention_v1_bytes(kRows, kChunks * kChunk, 2);
  static_assert(sizeof(Shared<kChunks, kRows>) == kBytes);
  const int64_t tiles = ((of_keys ? forward.kv_length : forward.q_length) + kRows - 1) / kRows;
  const int64_t blocks = forward.batch * (of_keys ? forward.kv_heads : forward.heads) * tiles;
  queue.launch(attention_backward_cuda_v1_flash_kernel<T, kChunks, kOwn, kSide>, {blocks, kThreads, kBytes}, args);
}

template <class T>
void launch(const AttentionBackwardArgs& args, Queue& queue) {
  launch_delta<T>(args, queue);
  const auto [rows, columns] = attention_backward_v1_tile(args.forward, queue.target());
  const auto both = [&]<int kChunks, int kOfQueries, int kOfKeys>() {
    launch<T, kChunks, kOfQueries, Side::kQueries>(args, queue);
    launch<T, kChunks, kOfKeys, Side::kKeys>(args, queue);
  };
  if (columns == 4 * kChunk) {
    rows == Place<4>::kRows ? both.template operator()<4, 4, 4>() : both.template operator()<4, 2, 2>();
  } else {
    rows == Place<8>::kRows ? both.template operator()<2, 8, 4>() : both.template operator()<2, 4, 4>();
  }
}

}  // namespace

void attention_backward_cuda_v1_flash(const AttentionBackwardArgs& call, Queue& queue) {
  const AttentionBackwardArgs args = attention_backward_with_scratch(call, false, queue);
  dispatch_float(args.forward.dtype, "attention_backward", [&]<class T>() { launch<cuda_type_t<T>>(args, queue); });
}

}  // namespace rooflab::kernels
