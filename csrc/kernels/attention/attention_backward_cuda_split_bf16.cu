// v4: float32 on tensor cores, with the accuracy of float32. It makes v1's two launches, one for dQ and one for dK and
// dV, on q, k, v and dout split into three bfloat16 parts each (common/split_bf16.cuh). A block keeps 64 rows of one
// side and walks over the other side 64 rows at a time; P and dS are split in registers and go through shared memory.
// Each operand of the next 64 rows is loaded while the products that do not need it run. Tensor cores truncate sums, so
// the largest products of parts have sums of their own, which start from zero for each 64 rows and are then added with
// rounding.
// float32, D_h up to 128, any mask. Deterministic.
#include "kernels/attention/attention_backward_tile.cuh"
#include "kernels/attention/attention_mma_tile.cuh"
#include "kernels/attention/attention_split_bf16.cuh"

namespace rooflab::kernels {
namespace {

using namespace mma_tile;

constexpr int kRows = 64;  // of a tile: of the rows that stay and of those that stream past
constexpr int kTiles = 2;  // of 16 rows, per warp
constexpr int kWarps = 8, kThreads = kWarps * 32;
constexpr int kWarpsDown = kRows / (kTiles * kMmaM), kWarpsAcross = kWarps / kWarpsDown;
constexpr int kScores = kRows / kWarpsAcross;  // columns of a warp's scores
template <int kHead>
constexpr int kColumns = kHead / kWarpsAcross;  // columns of a warp's part of each gradient

template <int kColumns>
using Parts = Tile<Part, kRows, kColumns>[kSplitParts];

struct Statistics {
  float lse[kRows], rest[kRows], delta[kRows];
};

template <int kHead>
struct Shared {
  Parts<kHead> own_a, own_b;  // k and v, or q and dout
  Parts<kHead> a, b;          // q and dout, or k and v
  Parts<kRows> weights;       // P, then dS
  Statistics statistics;      // of the queries
};

// Where the parts of the operands lie.
struct Split {
  const Part *q, *k, *v, *dout;
  int64_t q_part, kv_part;  // distance from one part to the next
};

// Sums over 16 x 8 tiles: `first` of the products of the first parts, `rest` of all other products.
template <int kCount>
struct Sums {
  Accumulator first[kTiles][kCount] = {}, rest[kTiles][kCount] = {};

  // Adds the product of 16 x 16 fragments, with columns from tile n on.
  __device__ __forceinline__ void add_product(const uint32_t (&a)[kSplitParts][kTiles][4],
                                              const uint32_t (&b)[kSplitParts][4], int n) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      multiply<Part>(rest[i][n], rest[i][n + 1], a[0][i], b[2]);
      multiply<Part>(rest[i][n], rest[i][n + 1], a[2][i], b[0]);
      multiply<Part>(rest[i][n], rest[i][n + 1], a[1][i], b[1]);
      multiply<Part>(rest[i][n], rest[i][n + 1], a[0][i], b[1]);
      multiply<Part>(rest[i][n], rest[i][n + 1], a[1][i], b[0]);
      multiply<Part>(first[i][n], first[i][n + 1], a[0][i], b[0]);
    }
  }
};

// rows columns^T, both along D_h: a warp's scores, from (row, column) on.
template <int kHead>
__device__ __forceinline__ void multiply_rows(Accumulator (&product)[kTiles][kScores / kMmaN], Parts<kHead>& rows,
                                              int row, Parts<kHead>& columns, int column) {
  Sums<kScores / kMmaN> sums;
#pragma unroll
  for (int d = 0; d < kHead; d += kMmaK) {
    uint32_t a[kSplitParts][kTiles][4];
#pragma unroll
    for (int part = 0; part < kSplitParts; ++part) {
#pragma unroll
      for (int i = 0; i < kTiles; ++i) rows[part].load_a(a[part][i], row + i * kMmaM, d);
    }
#pragma unroll
    for (int n = 0; n < kScores; n += 2 * kMmaN) {
      uint32_t b[kSplitParts][4];
#pragma unroll
      for (int part = 0; part < kSplitParts; ++part) columns[part].load_b(b[part], column + n, d);
      sums.add_product(a, b, n / kMmaN);
    }
  }
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int n = 0; n < kScores / kMmaN; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) product[i][n][e] = sums.first[i][n][e] + sums.rest[i][n][e];
    }
  }
}

// sum += weights tile, where the tile's rows are the columns of the weights: a warp's part of a gradient, from `column`
// on.
template <int kHead>
__device__ __forceinline__ void add_weighted(Accumulator (&sum)[kTiles][kColumns<kHead> / kMmaN], Parts<kRows>& weights,
                                             int row, Parts<kHead>& tile, int column) {
  Sums<kColumns<kHead> / kMmaN> sums;
#pragma unroll
  for (int k = 0; k < kRows; k += kMmaK) {
    uint32_t a[kSplitParts][kTiles][4];
#pragma unroll
    for (int part = 0; part < kSplitParts; ++part) {
#pragma unroll
      for (int i = 0; i < kTiles; ++i) weights[part].load_a(a[part][i], row + i * kMmaM, k);
    }
#pragma unroll
    for (int n = 0; n < kColumns<kHead>; n += 2 * kMmaN) {
      uint32_t b[kSplitParts][4];
#pragma unroll
      for (int part = 0; part < kSplitParts; ++part) tile[part].load_b_transposed(b[part], column + n, k);
      sums.add_product(a, b, n / kMmaN);
    }
  }
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int n = 0; n < kColumns<kHead> / kMmaN; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[i][n][e] += sums.first[i][n][e] + sums.rest[i][n][e];
    }
  }
}

template <int kHead, Side kSide>
__global__ void __launch_bounds__(kThreads, 1)
    attention_backward_cuda_v4_split_bf16_kernel(const __grid_constant__ AttentionBackwardArgs args,
                                                 const __grid_constant__ Split split) {
#ifdef ROOFLAB_SM80
  constexpr bool kOfKeys = kSide == Side::kKeys;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<kHead>*>(shared_bytes);

  const AttentionArgs& forward = args.forward;
  const Visibility visibility(forward);
  const int64_t heads = kOfKeys ? forward.kv_heads : forward.heads, group = forward.heads / forward.kv_heads;
  const int tiles = ((kOfKeys ? visibility.kv_length : visibility.q_length) + kRows - 1) / kRows;
  const int64_t batch = blockIdx.x / tiles / heads, own_head = blockIdx.x / tiles % heads;
  // The blocks with the most work start first: queries that see the most keys, or keys seen by the most queries.
  const int tile = static_cast<int>(blockIdx.x) % tiles, first_row = (kOfKeys ? tile : tiles - 1 - tile) * kRows;
  const int64_t kv_head = kOfKeys ? own_head : own_head / group, first_head = kOfKeys ? own_head * group : own_head;

  const int64_t columns = attention_split_columns(forward.head_size);
  const auto load = [&](Parts<kHead>& to, const Part* parts, int64_t part_stride, int64_t all_heads, int64_t head,
                        int64_t length, int first) {
    const AttentionStrides strides{all_heads * length * columns, length * columns, columns};
#pragma unroll
    for (int part = 0; part < kSplitParts; ++part) {
      const HeadRows<const Part> rows(parts + part * part_stride, strides, batch, head, length, columns);
      to[part].template load_async<kThreads>(rows, first);
    }
  };
  const auto load_queries = [&](Parts<kHead>& to, const Part* parts, int64_t head, int first) {
    load(to, parts, split.q_part, forward.heads, head, forward.q_length, first);
  };
  const auto load_keys = [&](Parts<kHead>& to, const Part* parts, int first) {
    load(to, parts, split.kv_part, forward.kv_heads, kv_head, forward.kv_length, first);
  };
  const auto load_statistics = [&](int64_t head, int first_query) {
    const int query = first_query + threadIdx.x, valid = query < visibility.q_length ? sizeof(float) : 0;
    const int64_t row = batch * forward.heads + head, place = row * forward.q_length + query;
    if (threadIdx.x >= kRows) return;
    ptx::copy_async<4>(&shared.statistics.lse[threadIdx.x], forward.lse + place, valid);
    const bool has_rest = forward.lse_rest != nullptr;
    ptx::copy_async<4>(&shared.statistics.rest[threadIdx.x], (has_rest ? forward.lse_rest : forward.lse) + place,
                       has_rest ? valid : 0);
    ptx::copy_async<4>(&shared.statistics.delta[threadIdx.x],
                       args.delta + row * attention_rounded_rows(forward.q_length) + query, valid);
  };

  // The tiles that stream past: those of one head, then those of the next.
  const auto range = kOfKeys ? visibility.queries_of_tile(first_row, kRows) : visibility.keys_of_tile(first_row, kRows);
  const int begin = range.begin / kRows * kRows;
  const int per_head = range.end > begin ? (range.end - begin + kRows - 1) / kRows : 0;
  const int total = kOfKeys ? per_head * static_cast<int>(group) : per_head;
  const auto first_of = [&](int turn) { return begin + turn % per_head * kRows; };
  const auto load_a = [&](int turn) {
    if constexpr (kOfKeys) {
      load_queries(shared.a, split.q, first_head + turn / per_head, first_of(turn));
      load_statistics(first_head + turn / per_head, first_of(turn));
    } else {
      load_keys(shared.a, split.k, first_of(turn));
    }
  };
  const auto load_b = [&](int turn) {
    if constexpr (kOfKeys) {
      load_queries(shared.b, split.dout, first_head + turn / per_head, first_of(turn));
    } else {
      load_keys(shared.b, split.v, first_of(turn));
    }
  };
  if (total > 0) {
    if constexpr (kOfKeys) {
      load_keys(shared.own_a, split.k, first_row);
      load_keys(shared.own_b, split.v, first_row);
    } else {
      load_queries(shared.own_a, split.q, own_head, first_row);
      load_queries(shared.own_b, split.dout, own_head, first_row);
      load_statistics(own_head, first_row);
    }
    load_b(0);
    ptx::copy_async_commit();
    load_a(0);
    ptx::copy_async_commit();
  }

  const int warp = threadIdx.x / 32, across = warp % kWarpsAcross;
  const int warp_row = warp / kWarpsAcross * kTiles * kMmaM;
  const int warp_score = across * kScores, warp_column = across * kColumns<kHead>;
  const auto row_of = [&](int i, int half) { return warp_row + i * kMmaM + accumulator_row(half); };
  const auto column_of = [&](int n, int e) { return warp_score + n * kMmaN + accumulator_column() + e % 2; };
  // Calls `f(i, n, e)` for all scores of a warp.
  const auto for_all = [&](auto&& f) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int n = 0; n < kScores / kMmaN; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) f(i, n, e);
      }
    }
  };
  const auto store_weights = [&](const Accumulator(&from)[kTiles][kScores / kMmaN]) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int n = 0; n < kScores / kMmaN; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          uint32_t parts[kSplitParts];
          split_bf16(from[i][n][2 * half], from[i][n][2 * half + 1], parts);
#pragma unroll
          for (int part = 0; part < kSplitParts; ++part) {
            Part* to = shared.weights[part].vector(row_of(i, half), warp_score / kMmaN + n) + accumulator_column();
            *reinterpret_cast<uint32_t*>(to) = parts[part];
          }
        }
      }
    }
  };

  Accumulator first_gradient[kTiles][kColumns<kHead> / kMmaN] = {};  // dK or dQ
  [[maybe_unused]] Accumulator dv[kTiles][kColumns<kHead> / kMmaN] = {};
  for (int turn = 0; turn < total; ++turn) {
    const int first_column = first_of(turn);
    Accumulator p[kTiles][kScores / kMmaN], ds[kTiles][kScores / kMmaN];
    ptx::copy_async_wait<1>();
    __syncthreads();  // b has arrived
    multiply_rows<kHead>(ds, shared.own_b, warp_row, shared.b, warp_score);
    ptx::copy_async_wait<0>();
    __syncthreads();  // a has arrived
    multiply_rows<kHead>(p, shared.own_a, warp_row, shared.a, warp_score);

    const ExplicitMask<float> mask(forward, batch, kOfKeys ? first_head + turn / per_head : own_head);
    const bool all_visible = !mask.exists() && visibility.all_visible(kOfKeys ? first_column : first_row, kRows,
                                                                      kOfKeys ? first_row : first_column, kRows);
    if (!all_visible) {
      for_all([&](int i, int n, int e) {
        const int row = first_row + row_of(i, e / 2), column = first_column + column_of(n, e);
        const int query = kOfKeys ? column : row, key = kOfKeys ? row : column;
        if (query >= visibility.q_length || !visibility.sees(query, key)) {
          p[i][n][e] = -INFINITY;
        } else if (mask.exists()) {
          p[i][n][e] = mask.apply(scaled(p[i][n][e], forward.scale), query, key);
        }
      });
    }
    const float scale = mask.exists() ? 1 : forward.scale;  // of scores to which no mask was added
    for_all([&](int i, int n, int e) {
      const int query = kOfKeys ? column_of(n, e) : row_of(i, e / 2);
      const WeightShift shift(shared.statistics.lse[query], shared.statistics.rest[query]);
      p[i][n][e] = exp2_approximate(shift.exponent(p[i][n][e], scale));
      ds[i][n][e] = p[i][n][e] * (ds[i][n][e] - shared.statistics.delta[query]);
    });
    if (!all_visible) {  // a hidden pair adds nothing, even where v or dout is NaN
      for_all([&](int i, int n, int e) { ds[i][n][e] = p[i][n][e] == 0 ? 0 : ds[i][n][e]; });
    }

    if constexpr (kOfKeys) {
      store_weights(p);
      __syncthreads();
      add_weighted<kHead>(dv, shared.weights, warp_row, shared.b, warp_column);
      __syncthreads();  // every warp is done with P and b
    }
    if (turn + 1 < total) load_b(turn + 1);
    ptx::copy_async_commit();
    store_weights(ds);
    __syncthreads();
    add_weighted<kHead>(first_gradient, shared.weights, warp_row, shared.a, warp_column);
    __syncthreads();  // every warp is done with dS and a
    if (turn + 1 < total) load_a(turn + 1);
    ptx::copy_async_commit();
  }

  const auto store = [&](void* data, const AttentionStrides& strides, int64_t length,
                         const Accumulator(&from)[kTiles][kColumns<kHead> / kMmaN], float factor) {
    const HeadRows<float> to(static_cast<float*>(data), strides, batch, own_head, length, forward.head_size);
    const bool pairs = to.template has_vectors<2>();
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_row + row_of(i, half);
        if (row >= to.rows) continue;
#pragma unroll
        for (int n = 0; n < kColumns<kHead> / kMmaN; ++n) {
          const int column = warp_column + n * kMmaN + accumulator_column();
          const float2 pair = make_float2(from[i][n][2 * half] * factor, from[i][n][2 * half + 1] * factor);
          if (pairs && column < to.columns) {
            *reinterpret_cast<float2*>(to.at(row, column)) = pair;
          } else {
            if (column < to.columns) *to.at(row, column) = pair.x;
            if (column + 1 < to.columns) *to.at(row, column + 1) = pair.y;
          }
        }
      }
    }
  };
  if constexpr (kOfKeys) {
    const bool nan = __any_sync(0xffffffff, has_nan(dv));
    store(args.dk, args.dk_strides, forward.kv_length, first_gradient, forward.scale);
    store(args.dv, args.dv_strides, forward.kv_length, dv, 1);

    if (nan) {
      leave_out_hidden_queries<float, kColumns<kHead>>(args, batch, own_head, first_row + warp_row, kTiles * kMmaM,
                                                       warp_column);
    }
  } else {
    store(args.dq, args.dq_strides, forward.q_length, first_gradient, forward.scale);
  }
#else
  unsupported_architecture();
#endif
}

template <int kHead, Side kSide>
void launch(const AttentionBackwardArgs& args, const Split& split, Queue& queue) {
  static_assert(sizeof(Shared<kHead>) == attention_backward_v4_bytes(kHead));
  const AttentionArgs& forward = args.forward;
  const bool of_keys = kSide == Side::kKeys;
  const int64_t tiles = ((of_keys ? forward.kv_length : forward.q_length) + kRows - 1) / kRows;
  const int64_t blocks = forward.batch * (of_keys ? forward.kv_heads : forward.heads) * tiles;
  queue.launch(attention_backward_cuda_v4_split_bf16_kernel<kHead, kSide>, {blocks, kThreads, sizeof(Shared<kHead>)},
               args, split);
}

template <int kHead>
void launch(const AttentionBackwardArgs& args, const Split& split, Queue& queue) {
  launch<kHead, Side::kQueries>(args, split, queue);
  launch<kHead, Side::kKeys>(args, split, queue);
}

}  // namespace

void attention_backward_cuda_v4_split_bf16(const AttentionBackwardArgs& call, Queue& queue) {
  AttentionBackwardArgs args = call;
  const AttentionArgs& f = args.forward;
  const int64_t q_elements = attention_split_elements(f.batch, f.heads, f.q_length, f.head_size);
  const int64_t kv_elements = attention_split_elements(f.batch, f.kv_heads, f.kv_length, f.head_size);
  auto* scratch = static_cast<unsigned char*>(queue.scratch_bytes(attention_backward_v4_scratch_bytes(args)));
  args.delta = reinterpret_cast<float*>(scratch);
  Part* const q = reinterpret_cast<Part*>(args.delta + attention_backward_scratch_floats(args, false));
  Part *const dout = q + q_elements, *const k = dout + q_elements, *const v = k + kv_elements;
  const auto query = [&](const void* data, const AttentionStrides& strides, Part* parts) {
    return split_operand(data, strides, f.batch, f.heads, f.q_length, f.head_size, parts);
  };
  const auto key = [&](const void* data, const AttentionStrides& strides, Part* parts) {
    return split_operand(data, strides, f.batch, f.kv_heads, f.kv_length, f.head_size, parts);
  };
  launch_delta<float>(args, queue);
  launch_split<4>({{query(f.q, f.q_strides, q), query(args.dout, args.dout_strides, dout), key(f.k, f.k_strides, k),
                    key(f.v, f.v_strides, v)}},
                  queue);
  const Split split{q, k, v, dout, q_elements / kSplitParts, kv_elements / kSplitParts};
  f.head_size <= 64 ? launch<64>(args, split, queue) : launch<128>(args, split, queue);
}

}  // namespace rooflab::kernels
