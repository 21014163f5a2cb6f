// v3 for head sizes from 136 to 256: see attention_backward_cuda_hopper.cu. dK and dV of 64 keys fill half the register
// file, so the warpgroups divide the work by kind. One computes the scores, P^T and dS^T (keys along the rows), and
// leaves P^T and dS^T, rounded, in shared memory. The other two, each for half of the head, compute dV += P^T dO, dK +=
// dS^T Q and dQ = dS K.
#include "kernels/attention/attention_backward_hopper.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kKeys = 64, kRows = 64, kHeadSize = 256, kPanels = kHeadSize / kLine;
constexpr int kAdders = 2, kThreads = (2 + kAdders) * kWarpgroup, kStages = 2;
[[maybe_unused]] constexpr int kAdderPanels = kPanels / kAdders;

template <class T>
struct Shared {
  alignas(1024) TokenTile<T, kKeys, kHeadSize> k, v;
  alignas(1024) TokenTile<T, kRows, kHeadSize> q[kStages], dout[kStages];
  alignas(1024) T p[kStages][kKeys][kLine], ds[kStages][kKeys][kLine];  // transposed: a line is 64 queries of one key
  QueryRows<kRows> rows[kStages];
  ptx::Barrier k_full, v_full, q_full[kStages], q_empty[kStages], dout_full[kStages], dout_empty[kStages];
  ptx::Barrier p_full[kStages], p_empty[kStages], ds_full[kStages], ds_empty[kStages];
};

// One warp loads k and q, one v and dout, and one the queries' statistics.
template <class T>
__device__ __forceinline__ void produce(Shared<T>& shared, const BackwardMaps& maps, const BackwardProblem& problem,
                                        const KeyBlock& block) {
  QueryWalk<kRows> at(problem, block, kKeys);
  StageRing<kStages> ring;
  const auto bring = [&](auto& tiles, const CUtensorMap& map, ptx::Barrier* full, ptx::Barrier* empty) {
#pragma unroll 1
    for (int step = 0; step < at.steps; ++step, at.advance(), ring.advance()) {
      ptx::barrier_wait(empty[ring.stage], ring.parity ^ 1);
      load_tokens(tiles[ring.stage], map, full[ring.stage], at.row, at.head, block.batch);
    }
  };
  if (threadIdx.x == 0) {
    load_tokens(shared.k, maps.k, shared.k_full, block.first, block.head, block.batch);
    bring(shared.q, maps.q, shared.q_full, shared.q_empty);
  } else if (threadIdx.x == 32) {
    load_tokens(shared.v, maps.v, shared.v_full, block.first, block.head, block.batch);
    bring(shared.dout, maps.dout, shared.dout_full, shared.dout_empty);
  } else if (threadIdx.x / 32 == 2) {
#pragma unroll 1
    for (int step = 0; step < at.steps; ++step, at.advance(), ring.advance()) {
      load_query_rows(shared.rows[ring.stage], problem, block.batch, at, shared.q_empty[ring.stage], ring.parity ^ 1);
      ptx::barrier_arrive(shared.q_full[ring.stage]);
    }
  }
}

// sum = keys queries^T.
template <class T>
__device__ __forceinline__ void start_scores(float (&sum)[kRows / 2], const TokenTile<T, kKeys, kHeadSize>& keys,
                                             const TokenTile<T, kRows, kHeadSize>& queries) {
  const uint64_t a = ptx::swizzled_tile(keys, 0), b = ptx::swizzled_tile(queries, 0);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kHeadSize / kMmaK; ++step) {
    ptx::wgmma<T, kRows, true, true>(sum, a + along_lines<kRows>(step), b + along_lines<kRows>(step), step > 0);
  }
  ptx::wgmma_commit();
}

// Stores the rounded weights of a tile in shared memory.
template <class T>
__device__ __forceinline__ void store_weights(T (&tile)[kKeys][kLine], const uint32_t (&weights)[kRows / kMmaK][4],
                                              ptx::Barrier& full) {
  const int lane = threadIdx.x % 32, key = threadIdx.x % kWarpgroup / 32 * 16 + lane % 16;
#pragma unroll
  for (int i = 0; i < kRows / kMmaK; ++i) {
    const int vector = (i * 2 + lane / 16) ^ (key % 8);
    ptx::store_matrices(&tile[key][vector * 8], weights[i][0], weights[i][1], weights[i][2], weights[i][3]);
  }
  ptx::async_proxy_fence();
  arrive_as_warp(full);
}

// Computes P and dS of every tile, by one warpgroup.
template <class T>
__device__ __forceinline__ void score(Shared<T>& shared, const BackwardProblem& problem, const KeyBlock& block) {
  const int steps = QueryWalk<kRows>(problem, block, kKeys).steps;
  StageRing<kStages> ring;
  ptx::barrier_wait(shared.k_full, 0);
  ptx::barrier_wait(shared.v_full, 0);
  for (int step = 0; step < steps; ++step, ring.advance()) {
    const int stage = ring.stage;
    const QueryRows<kRows>& rows = shared.rows[stage];
    float s[kRows / 2], dp[kRows / 2];
    uint32_t weights[kRows / kMmaK][4];

    ptx::barrier_wait(shared.q_full[stage], ring.parity);
    start_scores(s, shared.k, shared.q[stage]);
    ptx::barrier_wait(shared.dout_full[stage], ring.parity);
    start_scores(dp, shared.v, shared.dout[stage]);

    ptx::wgmma_wait<1>(s);
    const bool hides = to_probabilities<kRows>(s, problem, rows, block.batch, block.first);
#pragma unroll
    for (int i = 0; i < kRows / 4; ++i) weights[i / 4][i % 4] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
    ptx::barrier_wait(shared.p_empty[stage], ring.parity ^ 1);
    store_weights(shared.p[stage], weights, shared.p_full[stage]);

    ptx::wgmma_wait<0>(dp);
    arrive_as_warp(shared.dout_empty[stage]);
    subtract_delta<kRows>(dp, s, rows, hides);
#pragma unroll
    for (int i = 0; i < kRows / 4; ++i) {
      weights[i / 4][i % 4] = ptx::pack<T>(s[2 * i] * dp[2 * i], s[2 * i + 1] * dp[2 * i + 1]);
    }
    ptx::barrier_arrive(shared.q_empty[stage]);
    ptx::barrier_wait(shared.ds_empty[stage], ring.parity ^ 1);
    store_weights(shared.ds[stage], weights, shared.ds_full[stage]);
  }
}

// Adds a warpgroup's 64 x (2 kCount) product to a tile, from `column` on.
template <int kCount>
__device__ __forceinline__ void add_to_dq(float* tile, const float (&d)[kCount], int column, int head_size) {
  float* vectors = tile + int64_t{column} * kSumRows + threadIdx.x % kWarpgroup * 4;
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i) {
    if (column + i * kSumColumn < head_size) ptx::add_vector(vectors + i * kSumColumn * kSumRows, &d[4 * i]);
  }
}

// Computes dV, dK and dQ for half of the head, by one warpgroup. dQ is sent in two quarters, each during another
// product.
template <class T>
__device__ __forceinline__ void add(Shared<T>& shared, const BackwardMaps& maps, const BackwardProblem& problem,
                                    const KeyBlock& block, int adder) {
  constexpr uint32_t kPanelBytes = kRows * kLine * sizeof(T);
  constexpr int kAdderSize = kHeadSize / kAdders;
  constexpr int kBothAdders = 1, kOneAdder = 2;  // named barriers
  const int first_panel = adder * kAdderPanels;
  const bool is_leader = threadIdx.x % kWarpgroup == 0;
  float dk[kAdderSize / 2] = {}, dv[kAdderSize / 2] = {}, dq[kLine / 2];

  // sum += weights^T queries.
  const auto start_gradient = [&](float(&sum)[kAdderSize / 2], const T(&weights)[kKeys][kLine],
                                  const TokenTile<T, kRows, kHeadSize>& queries) {
    const uint64_t a = ptx::swizzled_tile(weights, 0), b = ptx::swizzled_tile(queries[first_panel], kPanelBytes);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kRows / kMmaK; ++i) {
      ptx::wgmma<T, kAdderSize, true, false>(sum, a + along_lines<kRows>(i), b + across_lines(i), true);
    }
    ptx::wgmma_commit();
  };
  const auto start_dq = [&](int stage, int panel) {
    const uint64_t a = ptx::swizzled_tile(shared.ds[stage], 0), b = ptx::swizzled_tile(shared.k[panel], 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kKeys / kMmaK; ++i) {
      ptx::wgmma<T, kLine, false, false>(dq, a + across_lines(i), b + across_lines(i), i > 0);
    }
    ptx::wgmma_commit();
  };

  QueryWalk<kRows> at(problem, block, kKeys);
  StageRing<kStages> ring;
  for (int step = 0; step < at.steps; ++step, at.advance(), ring.advance()) {
    const int stage = ring.stage;
    float* sums = dq_sum_tile(problem, block.batch, at.head, at.row);
    ptx::barrier_wait(shared.p_full[stage], ring.parity);
    ptx::barrier_wait(shared.dout_full[stage], ring.parity);
    start_gradient(dv, shared.p[stage], shared.dout[stage]);
    ptx::barrier_wait(shared.ds_full[stage], ring.parity);
    start_dq(stage, first_panel);
    ptx::wgmma_wait<1>();
    arrive_as_warp(shared.p_empty[stage]);
    arrive_as_warp(shared.dout_empty[stage]);
    ptx::barrier_wait(shared.q_full[stage], ring.parity);
    start_gradient(dk, shared.ds[stage], shared.q[stage]);
    ptx::wgmma_wait<1>(dq);
    Turn turn{};
    if (problem.turns != nullptr) {
      turn = turn_of(problem, block, kKeys, at.head, at.row, adder);
      if (is_leader) await_turn(turn);
      ptx::named_barrier(kOneAdder + adder, kWarpgroup);
    }
    add_to_dq(sums, dq, first_panel * kLine, problem.head_size);
    start_dq(stage, first_panel + 1);
    ptx::wgmma_wait<1>();
    arrive_as_warp(shared.q_empty[stage]);
    ptx::wgmma_wait<0>(dq);
    arrive_as_warp(shared.ds_empty[stage]);
    add_to_dq(sums, dq, (first_panel + 1) * kLine, problem.head_size);
    if (problem.turns != nullptr) {
      __threadfence();
      ptx::named_barrier(kOneAdder + adder, kWarpgroup);
      if (is_leader) end_turn(turn);
    }
  }

  // Stores dK and dV through the memory of k and v, once all readers are done; the scores' readers were done before the
  // last dS.
  ptx::barrier_wait(shared.k_full, 0);
  ptx::barrier_wait(shared.v_full, 0);
  ptx::named_barrier(kBothAdders, kAdders * kWarpgroup);
  auto& dk_panels = reinterpret_cast<T(&)[kAdderPanels][kKeys][kLine]>(shared.k[first_panel]);
  auto& dv_panels = reinterpret_cast<T(&)[kAdderPanels][kKeys][kLine]>(shared.v[first_panel]);
  store_rows<T>(dk_panels, dk, 0, problem.scale);
  store_rows<T>(dv_panels, dv, 0, 1.0f);
  leave_out_hidden_queries(dv_panels, dv, 0, problem, block, block.first, first_panel * kLine);
  ptx::async_proxy_fence();
  ptx::named_barrier(kOneAdder + adder, kWarpgroup);
  if (is_leader) {
#pragma unroll
    for (int i = 0; i < kAdderPanels; ++i) {
      const int column = (first_panel + i) * kLine;
      ptx::tile_store(maps.dk, dk_panels[i], column, block.first, block.head, block.batch);
      ptx::tile_store(maps.dv, dv_panels[i], column, block.first, block.head, block.batch);
    }
    ptx::tile_store_commit();
    ptx::tile_store_wait_read<0>();
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    attention_backward_cuda_v3_hopper_shared_kernel(const __grid_constant__ BackwardMaps maps,
                                                    const __grid_constant__ BackwardProblem problem) {
#ifdef ROOFLAB_SM90A
  extern __shared__ __align__(1024) unsigned char raw[];
  auto& shared = *reinterpret_cast<Shared<T>*>(raw);
  if (threadIdx.x == 0) {
    constexpr int kEveryone = (1 + kAdders) * kWarps;  // one lane per warp
    ptx::barrier_init(shared.k_full, 1);
    ptx::barrier_init(shared.v_full, 1);
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::barrier_init(shared.q_full[stage], 1 + 32);  // the copies, and each lane of the warp that writes rows
      ptx::barrier_init(shared.dout_full[stage], 1);
      ptx::barrier_init(shared.q_empty[stage], kWarpgroup + kAdders * kWarps);  // each lane that read rows
      ptx::barrier_init(shared.dout_empty[stage], kEveryone);
      ptx::barrier_init(shared.p_full[stage], kWarps);
      ptx::barrier_init(shared.ds_full[stage], kWarps);
      ptx::barrier_init(shared.p_empty[stage], kAdders * kWarps);
      ptx::barrier_init(shared.ds_empty[stage], kAdders * kWarps);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();

  const KeyBlock block = key_block(problem, kKeys);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<24>();
    produce(shared, maps, problem, block);
  } else if (warpgroup == 1) {
    ptx::registers_shrink_to<104>();
    score(shared, problem, block);
  } else {
    ptx::registers_grow_to<192>();
    add(shared, maps, problem, block, warpgroup - 2);
  }
#else
  unsupported_architecture();
#endif
}

template <class T>
void launch(const AttentionBackwardArgs& args, BackwardProblem problem, Queue& queue) {
  problem.key_blocks = (problem.kv_length + kKeys - 1) / kKeys;
  const int64_t blocks = int64_t{problem.key_blocks} * problem.batch * problem.kv_heads;
  queue.launch(attention_backward_cuda_v3_hopper_shared_kernel<T>, {blocks, kThreads, sizeof(Shared<T>)},
               backward_maps(args, kRows, kKeys), problem);
}

}  // namespace

void attention_backward_hopper_shared(const AttentionBackwardArgs& args, const BackwardProblem& problem, Queue& queue) {
  args.forward.dtype == DType::kFloat16 ? launch<__half>(args, problem, queue)
                                        : launch<__nv_bfloat16>(args, problem, queue);
}

}  // namespace rooflab::kernels
