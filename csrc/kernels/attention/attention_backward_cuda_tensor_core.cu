// v2: FlashAttention-2's backward on tensor cores, one warp at a time (mma.sync). A block keeps 64 keys and walks over
// the queries that see them, 64 at a time, in all heads that share the keys. Scores are computed transposed: one row
// per key. The weights P and their gradients dS go through shared memory, where every warp finds what its part of dV +=
// P^T dO, dK += dS^T Q and dQ = dS K needs. All blocks contribute to dQ: they add to it in float32 in device memory, in
// any order. When the result must be deterministic, that step is left out, and a second launch computes dQ the way the
// first computes dK, with the sides exchanged. A launch before packs a bool mask into bits. float16 and bfloat16, D_h a
// multiple of 8, any mask, rows aligned to 16 bytes. A block needs at most 99 KiB of shared memory up to D_h 128, and
// 146 KiB up to 256.
#include "kernels/attention/attention_backward_tile.cuh"
#include "kernels/attention/attention_mask_bits.cuh"

namespace rooflab::kernels {
namespace {

using namespace mma_tile;

constexpr int kRows = 64;  // of a tile: of the rows that stay and of those that stream past
constexpr int kTiles = 2;  // of 16 rows, per warp
constexpr int kWarpsDown = kRows / (kTiles * kMmaM);

// How the warps divide a block's work, and how many blocks the registers of a multiprocessor have room for.
template <int kHead>
struct Shape {
  static constexpr int kWarps = kHead > 128 ? 8 : 4, kThreads = kWarps * 32;
  static constexpr int kBlocks = attention_backward_v2_blocks(kHead);
  static constexpr int kWarpsAcross = kWarps / kWarpsDown;
  static constexpr int kScores = kRows / kWarpsAcross;   // columns of a warp's scores
  static constexpr int kColumns = kHead / kWarpsAcross;  // columns of a warp's part of each gradient
};

struct Statistics {
  float lse[kRows], delta[kRows];
};

template <class T, int kHead>
struct Stage {
  Tile<T, kRows, kHead> a, b;  // q and dout, or k and v
};

template <class T, int kHead>
struct Shared {
  Tile<T, kRows, kHead> a, b;  // k and v, or q and dout; at the end, the gradients of the tensors they held
  Tile<T, kRows, kRows> p, ds;
  Statistics statistics[2];
  Stage<T, kHead> stages[1];  // or 2, if there is room
};

// dQ is accumulated in the layout of the accumulators, so that a warp adds to 128 consecutive bytes: for each tile of
// 64 queries, each 8 columns and each 16 of the queries, four numbers from every lane.
__device__ __forceinline__ int64_t dq_sum_offset(int64_t head, int64_t rounded_rows, int first_query, int head_size,
                                                 int column, int row) {
  const int64_t block = (column / kMmaN) * (kRows / kMmaM) + row / kMmaM;
  return (head * rounded_rows + first_query) * head_size + block * (kMmaM * kMmaN) + threadIdx.x % 32;
}

template <class T, int kHead, Side kSide>
__global__ void __launch_bounds__(Shape<kHead>::kThreads, Shape<kHead>::kBlocks)
    attention_backward_cuda_v2_tensor_core_kernel(const __grid_constant__ AttentionBackwardArgs args, int stages) {
#ifdef ROOFLAB_SM80
  using Shape = Shape<kHead>;
  constexpr bool kOfKeys = kSide == Side::kKeys;
  constexpr int kThreads = Shape::kThreads;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<Shared<T, kHead>*>(shared_bytes);

  const AttentionArgs& forward = args.forward;
  const Visibility visibility(forward);
  const ScoreUnit unit(forward);
  const int64_t heads = kOfKeys ? forward.kv_heads : forward.heads, group = forward.heads / forward.kv_heads;
  const int tiles = ((kOfKeys ? visibility.kv_length : visibility.q_length) + kRows - 1) / kRows;
  const int64_t batch = blockIdx.x / tiles / heads, own_head = blockIdx.x / tiles % heads;
  // The blocks with the most work start first: queries that see the most keys, or keys seen by the most queries.
  const int tile = static_cast<int>(blockIdx.x) % tiles, first_row = (kOfKeys ? tile : tiles - 1 - tile) * kRows;
  const int64_t kv_head = kOfKeys ? own_head : own_head / group, first_head = kOfKeys ? own_head * group : own_head;
  const auto tensor = [&]<class E>(E* data, const AttentionStrides& strides, int64_t head, int64_t rows) {
    return HeadRows<E>(data, strides, batch, head, rows, forward.head_size);
  };
  const auto queries_of = [&](const void* data, const AttentionStrides& strides, int64_t head) {
    return tensor(static_cast<const T*>(data), strides, head, forward.q_length);
  };
  const auto keys_of = [&](const void* data, const AttentionStrides& strides) {
    return tensor(static_cast<const T*>(data), strides, kv_head, forward.kv_length);
  };

  const int warp = threadIdx.x / 32;
  const int warp_row = warp / Shape::kWarpsAcross * kTiles * kMmaM, across = warp % Shape::kWarpsAcross;
  const int warp_score = across * Shape::kScores, warp_column = across * Shape::kColumns;

  // The tiles that stream past: those of one head, then those of the next.
  const auto range = kOfKeys ? visibility.queries_of_tile(first_row, kRows) : visibility.keys_of_tile(first_row, kRows);
  const int begin = range.begin / kRows * kRows;
  const int per_head = range.end > begin ? (range.end - begin + kRows - 1) / kRows : 0;
  const int total = kOfKeys ? per_head * static_cast<int>(group) : per_head;
  const auto load_statistics = [&](Statistics& to, int64_t head, int first_query) {
    const int query = first_query + threadIdx.x, valid = query < visibility.q_length ? sizeof(float) : 0;
    const int64_t row = batch * forward.heads + head;
    if (threadIdx.x >= kRows) return;
    ptx::copy_async<4>(&to.lse[threadIdx.x], forward.lse + row * forward.q_length + query, valid);
    ptx::copy_async<4>(&to.delta[threadIdx.x], args.delta + row * attention_rounded_rows(forward.q_length) + query,
                       valid);
  };
  const auto load_stage = [&](int turn) {
    const int64_t head = first_head + turn / per_head;
    const int first = begin + turn % per_head * kRows;
    auto& stage = shared.stages[turn % stages];
    if constexpr (kOfKeys) {
      stage.a.template load_async<kThreads>(queries_of(forward.q, forward.q_strides, head), first);
      stage.b.template load_async<kThreads>(queries_of(args.dout, args.dout_strides, head), first);
      load_statistics(shared.statistics[turn % stages], head, first);
    } else {
      stage.a.template load_async<kThreads>(keys_of(forward.k, forward.k_strides), first);
      stage.b.template load_async<kThreads>(keys_of(forward.v, forward.v_strides), first);
    }
    ptx::copy_async_commit();
  };
  if constexpr (kOfKeys) {
    shared.a.template load_async<kThreads>(keys_of(forward.k, forward.k_strides), first_row);
    shared.b.template load_async<kThreads>(keys_of(forward.v, forward.v_strides), first_row);
  } else {
    shared.a.template load_async<kThreads>(queries_of(forward.q, forward.q_strides, own_head), first_row);
    shared.b.template load_async<kThreads>(queries_of(args.dout, args.dout_strides, own_head), first_row);
    load_statistics(shared.statistics[0], own_head, first_row);
  }
  ptx::copy_async_commit();
  if (total > 0) load_stage(0);

  Accumulator first_gradient[kTiles][Shape::kColumns / kMmaN] = {};  // dK or dQ
  [[maybe_unused]] Accumulator dv[kTiles][Shape::kColumns / kMmaN] = {};
  for (int turn = 0; turn < total; ++turn) {
    auto& stage = shared.stages[turn % stages];
    const auto& statistics = shared.statistics[kOfKeys ? turn % stages : 0];
    const int first_column = begin + turn % per_head * kRows;
    ptx::copy_async_wait<0>();
    __syncthreads();  // the stage has arrived, and every warp is done with the previous one
    if (stages > 1 && turn + 1 < total) load_stage(turn + 1);

    const auto row_of = [&](int i, int half) { return warp_row + i * kMmaM + accumulator_row(half); };
    const auto column_of = [&](int n, int e) { return warp_score + n * kMmaN + accumulator_column() + e % 2; };
    Accumulator p[kTiles][Shape::kScores / kMmaN] = {}, ds[kTiles][Shape::kScores / kMmaN] = {};
    MaskBits<kTiles, Shape::kScores, kOfKeys> bits(args);
    if (bits.exist()) bits.load(batch, first_head + turn / per_head, first_row + warp_row, first_column + warp_score);
    accumulate_scores<T, kHead>(p, shared.a, warp_row, stage.a, warp_score);

    const ExplicitMask<T> mask(forward, batch, first_head + turn / per_head);
    if (unit.scaled_first || (mask.exists() && !bits.exist())) {
      apply_in_turn(p, [&](int i, int n, int e, float score) {
        const int row = first_row + row_of(i, e / 2), column = first_column + column_of(n, e);
        return explicitly_masked(score, kOfKeys ? column : row, kOfKeys ? row : column, unit, visibility, mask);
      });
    } else if (bits.exist()) {
      bits.hide(p);
    }
    const bool all_visible =
        visibility.all_visible(kOfKeys ? first_column : first_row, kRows, kOfKeys ? first_row : first_column, kRows);
    if (!all_visible) {
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = first_row + row_of(i, half), column = first_column + column_of(0, 0);
          Visibility::Range seen = kOfKeys ? visibility.queries(row) : visibility.keys(row);
          if (kOfKeys && row >= visibility.kv_length) seen.end = 0;
#pragma unroll
          for (int n = 0; n < Shape::kScores; ++n) {
            if (n % 8 < 2 && (column + n < seen.begin || column + n >= seen.end)) {
              p[i][n / 8][2 * half + n % 8] = -INFINITY;
            }
          }
        }
      }
    }
    // Calls `f(i, n, e, query)` for all scores; the statistics belong to their columns, or to their rows.
    const auto for_all = [&](auto&& f) {
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
#pragma unroll
        for (int n = 0; n < Shape::kScores / kMmaN; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) f(i, n, e, kOfKeys ? column_of(n, e) : row_of(i, e / 2));
        }
      }
    };
    WeightShift shift[kOfKeys ? Shape::kScores / 4 : kTiles * 2];  // of this lane's queries
    const auto load_shift = [&](int query) {
      const float lse = statistics.lse[query];
      const int64_t row = batch * forward.heads + first_head + turn / per_head;
      const bool has_rest = fabsf(lse) > kLargeLse && forward.lse_rest != nullptr;  // shared memory is full
      return WeightShift(
          lse, has_rest ? forward.lse_rest[row * forward.q_length + (kOfKeys ? first_column : first_row) + query] : 0);
    };
    if constexpr (kOfKeys) {
#pragma unroll
      for (int n = 0; n < Shape::kScores / 4; ++n) shift[n] = load_shift(column_of(n / 2, n));
    } else {
#pragma unroll
      for (int i = 0; i < kTiles * 2; ++i) shift[i] = load_shift(row_of(i / 2, i % 2));
    }
    for_all([&](int i, int n, int e, int) {
      p[i][n][e] = exp2_approximate(shift[kOfKeys ? n * 2 + e % 2 : i * 2 + e / 2].exponent(p[i][n][e], unit.left));
    });
    if constexpr (kOfKeys) store_rounded(shared.p, warp_row, warp_score, p, 1);
    accumulate_scores<T, kHead>(ds, shared.b, warp_row, stage.b, warp_score);
    for_all(
        [&](int i, int n, int e, int query) { ds[i][n][e] = p[i][n][e] * (ds[i][n][e] - statistics.delta[query]); });
    if (!all_visible || mask.exists()) {  // a hidden pair adds nothing, even where v or dout is NaN
      for_all([&](int i, int n, int e, int) { ds[i][n][e] = p[i][n][e] == 0 ? 0 : ds[i][n][e]; });
    }
    store_rounded(shared.ds, warp_row, warp_score, ds, 1);
    __syncthreads();

    const auto from = [&](auto& weights) {
      return [&](uint32_t(&a)[4], int i, int k) { weights.load_a(a, warp_row + i * kMmaM, k); };
    };
    if constexpr (kOfKeys) accumulate<T, kRows>(dv, from(shared.p), stage.b, warp_column);
    accumulate<T, kRows>(first_gradient, from(shared.ds), stage.a, warp_column);
    if (stages == 1 && turn + 1 < total) {
      __syncthreads();
      load_stage(turn + 1);
    }
    if constexpr (kOfKeys) {
      if (args.deterministic) continue;
      Accumulator dq[kTiles][Shape::kColumns / kMmaN] = {};
      const auto transposed = [&](uint32_t(&a)[4], int i, int k) {
        shared.ds.load_a_transposed(a, warp_row + i * kMmaM, k);
      };
      accumulate<T, kRows>(dq, transposed, shared.a, warp_column);
      const int64_t head = batch * forward.heads + first_head + turn / per_head;
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
#pragma unroll
        for (int n = 0; n < Shape::kColumns / kMmaN; ++n) {
          const int column = warp_column + n * kMmaN;
          if (column >= forward.head_size) break;
          float* to = args.dq_sum + dq_sum_offset(head, attention_rounded_rows(forward.q_length), first_column,
                                                  static_cast<int>(forward.head_size), column, warp_row + i * kMmaM);
#pragma unroll
          for (int e = 0; e < 4; ++e) atomicAdd(to + e * 32, dq[i][n][e]);
        }
      }
    }
  }
  [[maybe_unused]] const bool nan = kOfKeys && __any_sync(0xffffffff, has_nan(dv));
  ptx::copy_async_wait<0>();
  __syncthreads();  // a and b are no longer read

  store_rounded(shared.a, warp_row, warp_column, first_gradient, forward.scale);
  if constexpr (kOfKeys) store_rounded(shared.b, warp_row, warp_column, dv, 1);
  __syncthreads();
  if constexpr (kOfKeys) {
    store_rows<kThreads>(tensor(static_cast<T*>(args.dk), args.dk_strides, own_head, forward.kv_length), first_row,
                         shared.a);
    store_rows<kThreads>(tensor(static_cast<T*>(args.dv), args.dv_strides, own_head, forward.kv_length), first_row,
                         shared.b);
    __syncthreads();
    if (nan) {
      leave_out_hidden_queries<T, Shape::kColumns>(args, batch, own_head, first_row + warp_row, kTiles * kMmaM,
                                                   warp_column);
    }
  } else {
    store_rows<kThreads>(tensor(static_cast<T*>(args.dq), args.dq_strides, own_head, forward.q_length), first_row,
                         shared.a);
  }
#else
  unsupported_architecture();
#endif
}

constexpr int kRoundThreads = 256, kRoundWarps = kRoundThreads / 32;

// Scales and rounds the accumulated dQ: a warp takes a block of 16 queries and 8 columns.
template <class T>
__global__ void __launch_bounds__(kRoundThreads)
    attention_backward_cuda_v2_round_dq_kernel(const __grid_constant__ AttentionBackwardArgs args) {
  const AttentionArgs& forward = args.forward;
  const int64_t rounded_rows = attention_rounded_rows(forward.q_length);
  const int head_size = static_cast<int>(forward.head_size), wide = head_size / kMmaN;
  const int64_t block = blockIdx.x * int64_t{kRoundWarps} + threadIdx.x / 32;
  const int64_t rows = block / wide, head = rows / (rounded_rows / kMmaM);
  const int column = static_cast<int>(block % wide) * kMmaN;
  const int first_row = static_cast<int>(rows % (rounded_rows / kMmaM)) * kMmaM;
  if (head >= forward.batch * forward.heads) return;
  const float* from =
      args.dq_sum + dq_sum_offset(head, rounded_rows, first_row / kRows * kRows, head_size, column, first_row % kRows);
  const HeadRows<T> to(static_cast<T*>(args.dq), args.dq_strides, head / forward.heads, head % forward.heads,
                       forward.q_length, head_size);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + accumulator_row(half);
    if (row < to.rows) {
      *reinterpret_cast<uint32_t*>(to.at(row, column + accumulator_column())) =
          ptx::pack<T>(from[64 * half] * forward.scale, from[64 * half + 32] * forward.scale);
    }
  }
}

template <class T, int kHead, Side kSide>
void launch(const AttentionBackwardArgs& args, Queue& queue) {
  static_assert(sizeof(Shared<T, kHead>) == attention_backward_v2_bytes(kHead, 1) &&
                sizeof(Stage<T, kHead>) ==
                    attention_backward_v2_bytes(kHead, 2) - attention_backward_v2_bytes(kHead, 1));
  const AttentionArgs& forward = args.forward;
  const bool of_keys = kSide == Side::kKeys;
  const int64_t tiles = ((of_keys ? forward.kv_length : forward.q_length) + kRows - 1) / kRows;
  const int64_t blocks = forward.batch * (of_keys ? forward.kv_heads : forward.heads) * tiles;
  const int stages = attention_backward_v2_stages(kHead, queue.target());
  queue.launch(attention_backward_cuda_v2_tensor_core_kernel<T, kHead, kSide>,
               {blocks, Shape<kHead>::kThreads, attention_backward_v2_bytes(kHead, stages)}, args, stages);
}

template <class T>
void launch_round_dq(const AttentionBackwardArgs& args, Queue& queue) {
  const AttentionArgs& forward = args.forward;
  const int64_t rows = forward.batch * forward.heads * attention_rounded_rows(forward.q_length);
  const int64_t blocks = rows / kMmaM * (forward.head_size / kMmaN);
  queue.launch(attention_backward_cuda_v2_round_dq_kernel<T>, {(blocks + kRoundWarps - 1) / kRoundWarps, kRoundThreads},
               args);
}

template <class T, int kHead>
void launch(const AttentionBackwardArgs& args, Queue& queue) {
  const AttentionArgs& forward = args.forward;
  launch_delta<T>(args, queue);
  launch_mask_bits(args, queue);
  if (args.deterministic) {
    launch<T, kHead, Side::kQueries>(args, queue);
    launch<T, kHead, Side::kKeys>(args, queue);
  } else {
    const int64_t rows = forward.batch * forward.heads * attention_rounded_rows(forward.q_length);
    queue.fill(args.dq_sum, 0, rows * forward.head_size * sizeof(float));
    launch<T, kHead, Side::kKeys>(args, queue);
    launch_round_dq<T>(args, queue);
  }
}

template <class T>
void launch(const AttentionBackwardArgs& args, Queue& queue) {
  switch (attention_head_room(args.forward.head_size)) {
    case 64: return launch<T, 64>(args, queue);
    case 128: return launch<T, 128>(args, queue);
    default: return launch<T, 256>(args, queue);
  }
}

}  // namespace

void attention_backward_cuda_v2_tensor_core(const AttentionBackwardArgs& call, Queue& queue) {
  const AttentionBackwardArgs args =
      attention_backward_with_scratch(call, !call.deterministic, queue, attention_backward_v2_mask_words(call.forward));
  args.forward.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
