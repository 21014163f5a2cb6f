// v3: FlashAttention's forward on Hopper. A block takes 64 query rows for each of its two or three consumer warpgroups,
// which keep scores, probabilities and sums in registers; one thread of a fourth does nothing but order tiles of q, k
// and v from the copy engine (TMA). A consumer starts the next block's q k^T together with this block's product with v
// (wgmma), so its softmax runs beside a product; and the consumers take turns at the tensor cores, so that one's
// exponentials fall into another's products. Blocks are persistent; masks cost only the blocks of keys that need them.
// float16 and bfloat16 with float32 sums, D_h a multiple of 8 up to 256, no explicit mask, 16-byte aligned operands.
//
// What binds: 4 D_h FLOPs for each exponential, at 4096 FLOPs and 16 exponentials a clock and multiprocessor: as long
// for either at D_h 64, half as long for the exponentials at 128. Measured, long sequences run into the power limit of
// 700 W (1.4 to 1.7 of 1.98 GHz): D_h 128 at 75% of the tensor cores' rate at that clock, 64 slower for its softmax.
#include "core/target.h"
#include "kernels/attention/attention_forward_hopper.cuh"

namespace rooflab::kernels {
namespace {

// 64 rows a consumer by kKeys keys, from what fits in registers (scores, probabilities, sums) and shared memory.
template <int kHeadSize_, int kConsumers_, int kKeys_, int kQStages_>
struct Shape {
  static constexpr int kHeadSize = kHeadSize_, kConsumers = kConsumers_, kKeys = kKeys_;
  static constexpr int kStages = 2, kQStages = kQStages_;
  static constexpr int kRows = kConsumers * kWarpgroupRows, kThreads = (1 + kConsumers) * kWarpgroup;
};
using Shape64 = Shape<64, 3, 128, 2>;
using Shape128 = Shape<128, 3, 80, 2>;         // reads keys and values a third less often than 128 rows would
using NarrowShape128 = Shape<128, 2, 128, 2>;  // computes less of what causality hides
using Shape256 = Shape<256, 2, 64, 1>;

template <class T, class S>
struct Shared {
  alignas(1024) TokenTile<T, kWarpgroupRows, S::kHeadSize> q[S::kQStages][S::kConsumers];
  alignas(1024) TokenTile<T, S::kKeys, S::kHeadSize> k[S::kStages];
  alignas(1024) TokenTile<T, S::kKeys, S::kHeadSize> v[S::kStages];
  QueryTile tile[S::kQStages][S::kConsumers];  // comes with q
  ptx::Barrier q_full[S::kQStages][S::kConsumers], q_empty[S::kQStages][S::kConsumers];
  ptx::Barrier k_full[S::kStages], k_empty[S::kStages], v_full[S::kStages], v_empty[S::kStages];
};

// Orders all tiles, by one thread, in the order of their use.
template <class T, class S>
__device__ __forceinline__ void produce(Shared<T, S>& shared, const CUtensorMap& q_map, const CUtensorMap& k_map,
                                        const CUtensorMap& v_map, const ForwardProblem& problem) {
  StageRing<S::kQStages> q_at;
  StageRing<S::kStages> k_at, v_at;
  QuerySchedule<S::kRows, S::kKeys> schedule;
  QueryTile tile{};
  int kv_head = 0;
  const auto load_keys = [&](int token) {
    ptx::barrier_wait(shared.k_empty[k_at.stage], k_at.parity ^ 1);
    load_tokens(shared.k[k_at.stage], k_map, shared.k_full[k_at.stage], token, kv_head, tile.batch);
    k_at.advance();
  };
  const auto load_values = [&](int token) {
    ptx::barrier_wait(shared.v_empty[v_at.stage], v_at.parity ^ 1);
    load_tokens(shared.v[v_at.stage], v_map, shared.v_full[v_at.stage], token, kv_head, tile.batch);
    v_at.advance();
  };
  do {
    tile = schedule.next(problem);  // a block of the grid has at least one
    kv_head = tile.head / problem.queries_per_key;
    const int first = tile.first_block * S::kKeys, last = (tile.end_block - 1) * S::kKeys;
    load_keys(first);
    for (int consumer = 0; consumer < S::kConsumers; ++consumer) {
      ptx::barrier_wait(shared.q_empty[q_at.stage][consumer], q_at.parity ^ 1);
      shared.tile[q_at.stage][consumer] = tile;
      load_tokens(shared.q[q_at.stage][consumer], q_map, shared.q_full[q_at.stage][consumer],
                  tile.row + consumer * kWarpgroupRows, tile.head, tile.batch);
    }
    q_at.advance();
    for (int token = first; token < last; token += S::kKeys) {
      load_keys(token + S::kKeys);
      load_values(token);
    }
    load_values(last);
  } while (!tile.is_last);
}

// Attends, by one warpgroup.
template <class T, class S>
__device__ __forceinline__ void consume(Shared<T, S>& shared, int consumer, const ForwardProblem& problem) {
  constexpr int kKeys = S::kKeys, kHeadSize = S::kHeadSize;
  constexpr int kFirstTurn = 1;  // the named barriers
  const int warp = threadIdx.x % kWarpgroup / 32, lane = threadIdx.x % 32;

  float scores[kKeys / 2], out[kHeadSize / 2];
  uint32_t probabilities[kKeys / kMmaK][4];
  StageRing<S::kQStages> q_at;
  StageRing<S::kStages> k_at, v_at;

  const auto take_turn = [&] { ptx::named_barrier(kFirstTurn + consumer, 2 * kWarpgroup); };
  const auto pass_turn = [&] {
    ptx::named_barrier_arrive(kFirstTurn + (consumer + 1) % S::kConsumers, 2 * kWarpgroup);
  };
  const auto release = [&](ptx::Barrier& empty) {
    if (lane == 0) ptx::barrier_arrive(empty);
  };

  const auto start_scores = [&] {  // scores = q k^T
    const uint64_t q = ptx::swizzled_tile(shared.q[q_at.stage][consumer], 0);
    const uint64_t k = ptx::swizzled_tile(shared.k[k_at.stage], 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kHeadSize / kMmaK; ++step) {
      ptx::wgmma<T, kKeys, true, true>(scores, q + along_lines<kWarpgroupRows>(step), k + along_lines<kKeys>(step),
                                       step > 0);
    }
    ptx::wgmma_commit();
  };
  const auto start_sums = [&] {  // out += probabilities v
    const uint64_t v = ptx::swizzled_tile(shared.v[v_at.stage], sizeof(shared.v[0][0]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeys / kMmaK; ++step) {
      ptx::wgmma<T, kHeadSize, false>(out, probabilities[step], v + across_lines(step), true);
    }
    ptx::wgmma_commit();
  };
  const auto wait_keys = [&] { ptx::barrier_wait(shared.k_full[k_at.stage], k_at.parity); };
  const auto wait_values = [&] { ptx::barrier_wait(shared.v_full[v_at.stage], v_at.parity); };
  const auto release_keys = [&] {
    release(shared.k_empty[k_at.stage]);
    k_at.advance();
  };
  const auto release_values = [&] {
    release(shared.v_empty[v_at.stage]);
    v_at.advance();
  };
  const auto pack = [&] {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      probabilities[i / 4][i % 4] = ptx::pack<T>(scores[2 * i], scores[2 * i + 1]);
    }
  };

  if (consumer == S::kConsumers - 1) pass_turn();
  QueryTile tile{};
  do {
    ptx::barrier_wait(shared.q_full[q_at.stage][consumer], q_at.parity);
    tile = shared.tile[q_at.stage][consumer];
    const int warp_row = tile.row + consumer * kWarpgroupRows + warp * 16, row = warp_row + lane / 4;
    const VisibleKeys visible(problem, warp_row, row);
    Softmax softmax;
    float rescale[2];
    int block = tile.first_block;
#pragma unroll
    for (int i = 0; i < kHeadSize / 2; ++i) out[i] = 0;
    wait_keys();
    start_scores();
    ptx::wgmma_wait<0>(scores);
    release_keys();
    mask<kKeys>(scores, visible, block * kKeys);
    update(softmax, scores, problem.scale_log2, rescale);
    pack();
    for (++block; block < tile.end_block; ++block) {
      wait_keys();
      take_turn();
      start_scores();
      wait_values();
      start_sums();
      pass_turn();
      ptx::wgmma_wait<1>(scores);
      release_keys();
      mask<kKeys>(scores, visible, block * kKeys);
      const bool grew = update(softmax, scores, problem.scale_log2, rescale);
      ptx::wgmma_wait<0>(out);
      release_values();
      if (grew) {
#pragma unroll
        for (int i = 0; i < kHeadSize / 2; ++i) out[i] *= rescale[i / 2 % 2];
      }
      pack();
    }
    release(shared.q_empty[q_at.stage][consumer]);
    q_at.advance();
    wait_values();
    start_sums();
    ptx::wgmma_wait<0>(out);
    release_values();
    store<T, kHeadSize>(problem, tile, row, out, softmax);
  } while (!tile.is_last);
}

template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    attention_cuda_v3_hopper_kernel(const __grid_constant__ CUtensorMap q_map,
                                    const __grid_constant__ CUtensorMap k_map,
                                    const __grid_constant__ CUtensorMap v_map,
                                    const __grid_constant__ ForwardProblem problem) {
#ifdef ROOFLAB_SM90A
  constexpr int kConsumers = S::kConsumers;
  extern __shared__ __align__(1024) unsigned char raw[];
  Shared<T, S>& shared = *reinterpret_cast<Shared<T, S>*>(raw);

  if (threadIdx.x == 0) {
    ptx::tensor_map_prefetch(q_map);
    ptx::tensor_map_prefetch(k_map);
    ptx::tensor_map_prefetch(v_map);
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
      for (int stage = 0; stage < S::kQStages; ++stage) {
        ptx::barrier_init(shared.q_full[stage][consumer], 1);
        ptx::barrier_init(shared.q_empty[stage][consumer], kWarpgroup / 32);
      }
    }
    for (int stage = 0; stage < S::kStages; ++stage) {
      ptx::barrier_init(shared.k_full[stage], 1);
      ptx::barrier_init(shared.v_full[stage], 1);
      ptx::barrier_init(shared.k_empty[stage], kConsumers * kWarpgroup / 32);
      ptx::barrier_init(shared.v_empty[stage], kConsumers * kWarpgroup / 32);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<kConsumers == 2 ? 24 : 32>();
    if (threadIdx.x == 0) produce(shared, q_map, k_map, v_map, problem);
  } else {
    ptx::registers_grow_to<kConsumers == 2 ? 240 : 160>();
    consume(shared, warpgroup - 1, problem);
  }
#endif
}

template <class T, class S>
void launch(const AttentionArgs& args, Queue& queue) {
  const Target& target = queue.target();
  const int64_t all_heads = args.batch * args.heads, row_tiles = (args.q_length + S::kRows - 1) / S::kRows;
  // As many heads as half the cache holds, but enough of them for four blocks each.
  const int64_t head_bytes = std::max<int64_t>(2 * args.kv_length * args.head_size * size_of(args.dtype), 1);
  const int64_t cached = target.cache_bytes / 2 / head_bytes * (args.heads / args.kv_heads);
  const int64_t section = std::min(all_heads, std::max<int64_t>(cached, target.sm_count / 4));

  const ForwardProblem problem{static_cast<int>(args.q_length),
                               static_cast<int>(args.kv_length),
                               static_cast<int>(std::min(args.window, args.q_length + args.kv_length)),
                               args.is_causal,
                               static_cast<int>(args.heads),
                               static_cast<int>(args.heads / args.kv_heads),
                               static_cast<int>(all_heads),
                               static_cast<int>(section),
                               static_cast<int>(row_tiles),
                               static_cast<int>(all_heads * row_tiles),
                               static_cast<int>(args.head_size),
                               args.scale,
                               args.scale * kLog2E,
                               args.out,
                               args.out_strides,
                               args.lse};
  const auto key_map = [&](const void* data, const AttentionStrides& strides) {
    const bool empty = args.kv_length == 0;  // no tile is read, but a map needs an address and a size
    return attention_map(empty ? args.q : data, strides, args.batch, args.kv_heads, empty ? 1 : args.kv_length,
                         args.head_size, args.dtype, S::kKeys);
  };
  queue.launch(attention_cuda_v3_hopper_kernel<T, S>,
               {std::min<int64_t>(problem.tiles, target.sm_count), S::kThreads, sizeof(Shared<T, S>)},
               attention_map(args.q, args.q_strides, args.batch, args.heads, args.q_length, args.head_size, args.dtype,
                             kWarpgroupRows),
               key_map(args.k, args.k_strides), key_map(args.v, args.v_strides), problem);
}

template <class T>
void launch(const AttentionArgs& args, Queue& queue) {
  constexpr int64_t kLong = 8192;  // keys
  const bool hides = args.is_causal || args.window < args.q_length + args.kv_length;
  const bool narrow = hides && std::min(args.window, args.kv_length) < kLong;
  if (args.head_size <= 64) {
    launch<T, Shape64>(args, queue);
  } else if (args.head_size <= 128) {
    narrow ? launch<T, NarrowShape128>(args, queue) : launch<T, Shape128>(args, queue);
  } else {
    launch<T, Shape256>(args, queue);
  }
}

}  // namespace

void attention_cuda_v3_hopper(const AttentionArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
