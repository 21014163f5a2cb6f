// v3 for head sizes up to 128: see attention_backward_cuda_hopper.cu. A block takes 128 keys, 64 for each of its two
// warpgroups, which keep dK and dV in registers. They compute the scores transposed, with the keys along the rows:
// S^T = K Q^T and dP^T = V dO^T. Rounded, these are register operands of dV += P^T dO and dK += dS^T Q. Only dS goes
// through shared memory, for dQ = dS K, of which each warpgroup computes half.
#include "kernels/attention/attention_backward_hopper.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kKeys = 128, kConsumers = 2, kStages = 2, kThreads = (1 + kConsumers) * kWarpgroup;

// Shorter heads leave room for more queries.
template <int kHeadSize>
constexpr int kTileRows = kHeadSize == 64 ? 128 : 64;

template <class T, int kHeadSize>
struct Shared {
  static constexpr int kRows = kTileRows<kHeadSize>;
  alignas(1024) TokenTile<T, kKeys, kHeadSize> k, v;
  alignas(1024) TokenTile<T, kRows, kHeadSize> q[kStages], dout[kStages];
  alignas(1024) T ds[2][kRows / kLine][kKeys][kLine];  // dS^T: a line is 64 queries of one key
  alignas(128) float dq[kConsumers][kLine / kSumColumn][kSumColumn * kSumRows];
  QueryRows<kRows> rows[kStages];
  KeyBlock block;
  ptx::Barrier k_full, v_full, q_full[kStages], dout_full[kStages], empty[kStages];
  ptx::Barrier ds_full[2], ds_empty[2], dq_full[kConsumers], dq_empty[kConsumers];
};

// dQ is split in two halves: along the head where it has two panels, otherwise along the queries.
template <int kHeadSize>
__device__ __forceinline__ int dq_panel(int half) {
  return kHeadSize == 128 ? half : 0;
}
template <int kHeadSize>
__device__ __forceinline__ int dq_part(int half) {
  return kHeadSize == 128 ? 0 : half;
}

// Adds each tile's dQ, whose halves the consumers leave in shared memory, to dq_sum by bulk reduction. If the consumers
// issued the reductions themselves, their fences would wait for them.
template <class T, int kHeadSize, int kRows>
__device__ __forceinline__ void send_dq(Shared<T, kHeadSize>& shared, const BackwardProblem& problem,
                                        QueryWalk<kRows>& at) {
#pragma unroll 1
  for (int step = 0; step < at.steps; ++step, at.advance()) {
    if (problem.turns != nullptr) {
      await_turn(turn_of(problem, shared.block, kKeys, at.head, at.row, 0));
      ptx::async_proxy_fence_global();
    }
#pragma unroll 1
    for (int half = 0; half < kConsumers; ++half) {
      ptx::barrier_wait(shared.dq_full[half], step % 2);
      const int column = dq_panel<kHeadSize>(half) * kLine, columns = min(problem.head_size - column, kLine);
      if (columns > 0) {
        float* sums = dq_sum_tile(problem, shared.block.batch, at.head, at.row + dq_part<kHeadSize>(half) * kSumRows);
        ptx::add_bulk(sums + column * kSumRows, shared.dq[half], columns * kSumRows * sizeof(float));
      }
      ptx::tile_store_commit();
    }
    if (problem.turns != nullptr) {
      ptx::tile_store_wait();
      end_turn(turn_of(problem, shared.block, kKeys, at.head, at.row, 0));
    }
    ptx::tile_store_wait_read<1>();
    ptx::barrier_arrive(shared.dq_empty[0]);
    ptx::tile_store_wait_read<0>();
    ptx::barrier_arrive(shared.dq_empty[1]);
  }
  ptx::tile_store_wait();
}

// One warp loads k and q, one v and dout, and one the queries' statistics; one sends dQ.
template <class T, int kHeadSize>
__device__ __forceinline__ void produce(Shared<T, kHeadSize>& shared, const BackwardMaps& maps,
                                        const BackwardProblem& problem, const KeyBlock& block) {
  const int warp = threadIdx.x / 32;
  QueryWalk<kTileRows<kHeadSize>> at(problem, block, kKeys);
  StageRing<kStages> ring;
  const auto bring = [&](auto& tiles, const CUtensorMap& map, ptx::Barrier* full) {
#pragma unroll 1
    for (int step = 0; step < at.steps; ++step, at.advance(), ring.advance()) {
      ptx::barrier_wait(shared.empty[ring.stage], ring.parity ^ 1);
      load_tokens(tiles[ring.stage], map, full[ring.stage], at.row, at.head, block.batch);
    }
  };
  if (threadIdx.x == 0) {
    load_tokens(shared.k, maps.k, shared.k_full, block.first, block.head, block.batch);
    bring(shared.q, maps.q, shared.q_full);
  } else if (threadIdx.x == 32) {
    load_tokens(shared.v, maps.v, shared.v_full, block.first, block.head, block.batch);
    bring(shared.dout, maps.dout, shared.dout_full);
  } else if (warp == 2) {
#pragma unroll 1
    for (int step = 0; step < at.steps; ++step, at.advance(), ring.advance()) {
      load_query_rows(shared.rows[ring.stage], problem, block.batch, at, shared.empty[ring.stage], ring.parity ^ 1);
      ptx::barrier_arrive(shared.q_full[ring.stage]);
    }
  } else if (threadIdx.x == 96) {
    send_dq(shared, problem, at);
  }
}

template <class T, int kHeadSize>
__device__ __forceinline__ void consume(Shared<T, kHeadSize>& shared, const BackwardMaps& maps,
                                        const BackwardProblem& problem, const KeyBlock& block, int consumer) {
  constexpr int kRows = kTileRows<kHeadSize>, kSteps = kRows / kMmaK;
  constexpr int kPanels = kHeadSize / kLine;
  constexpr uint32_t kLineBytes = kLine * sizeof(T);
  constexpr int kBothConsumers = 1, kOneConsumer = 2;  // named barriers
  const int thread = threadIdx.x % kWarpgroup, lane = thread % 32;
  const int own = consumer * kWarpgroupRows, first_key = block.first + own;
  float dk[kHeadSize / 2] = {}, dv[kHeadSize / 2] = {}, s[kRows / 2], dq[kLine / 2];
  uint32_t p16[kSteps][4], ds16[kSteps][4];

  // sum = keys queries^T, for this consumer's keys.
  const auto start_scores = [&](float(&sum)[kRows / 2], const TokenTile<T, kKeys, kHeadSize>& keys,
                                const TokenTile<T, kRows, kHeadSize>& queries) {
    const uint64_t a = ptx::swizzled_tile(keys[0] + own, 0), b = ptx::swizzled_tile(queries, 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kHeadSize / kMmaK; ++step) {
      ptx::wgmma<T, kRows, true, true>(sum, a + along_lines<kKeys>(step), b + along_lines<kRows>(step), step > 0);
    }
    ptx::wgmma_commit();
  };
  // sum += weights queries.
  const auto start_gradient = [&](float(&sum)[kHeadSize / 2], const uint32_t(&weights)[kSteps][4],
                                  const TokenTile<T, kRows, kHeadSize>& queries) {
    const uint64_t b = ptx::swizzled_tile(queries, kRows * kLineBytes);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kSteps; ++i) ptx::wgmma<T, kHeadSize, false>(sum, weights[i], b + across_lines(i), true);
    ptx::wgmma_commit();
  };
  const auto start_dq = [&](int buffer) {
    const uint64_t a = ptx::swizzled_tile(shared.ds[buffer][dq_part<kHeadSize>(consumer)], 0);
    const uint64_t b = ptx::swizzled_tile(shared.k[dq_panel<kHeadSize>(consumer)], 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kKeys / kMmaK; ++i) {
      ptx::wgmma<T, 64, false, false>(dq, a + across_lines(i), b + across_lines(i), i > 0);
    }
    ptx::wgmma_commit();
  };
  // Hands a tile's dQ to the warp that sends it.
  const auto leave_dq = [&](int step) {
    arrive_as_warp(shared.ds_empty[step % 2]);
    ptx::barrier_wait(shared.dq_empty[consumer], step % 2 ^ 1);
#pragma unroll
    for (int i = 0; i < kLine / kSumColumn; ++i) {
      reinterpret_cast<float4&>(shared.dq[consumer][i][thread * 4]) = {dq[4 * i], dq[4 * i + 1], dq[4 * i + 2],
                                                                       dq[4 * i + 3]};
    }
    ptx::async_proxy_fence();
    arrive_as_warp(shared.dq_full[consumer]);
  };

  // Computes P and dS from the scores of a tile, which are still in flight.
  const auto weigh = [&](int step) {
    const int stage = step % kStages;
    const QueryRows<kRows>& rows = shared.rows[stage];
    float dp[kRows / 2];
    ptx::barrier_wait(shared.dout_full[stage], step / kStages % 2);
    start_scores(dp, shared.v, shared.dout[stage]);
    ptx::wgmma_wait<1>(s);
    const bool hides = to_probabilities<kRows>(s, problem, rows, block.batch, first_key);
    ptx::wgmma_wait<0>(dp);
    subtract_delta<kRows>(dp, s, rows, hides);
#pragma unroll
    for (int i = 0; i < kRows / 4; ++i) {
      p16[i / 4][i % 4] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
      ds16[i / 4][i % 4] = ptx::pack<T>(s[2 * i] * dp[2 * i], s[2 * i + 1] * dp[2 * i + 1]);
    }
  };
  // Adds to dV and dK, and starts dQ of the tile before. Before the first tile there is none: whatever is in the buffer
  // is multiplied and the result is unused, because a branch would make the compiler serialise all products.
  const auto accumulate = [&](int step) {
    const int stage = step % kStages, buffer = step % 2;
    start_gradient(dv, p16, shared.dout[stage]);

    ptx::barrier_wait(shared.ds_empty[buffer], step / 2 % 2 ^ 1);
    const int key = own + thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const int vector = (i % 4 * 2 + lane / 16) ^ (key % 8);
      ptx::store_matrices(&shared.ds[buffer][i / 4][key][vector * 8], ds16[i][0], ds16[i][1], ds16[i][2], ds16[i][3]);
    }
    ptx::async_proxy_fence();
    arrive_as_warp(shared.ds_full[buffer]);

    start_gradient(dk, ds16, shared.q[stage]);
    if (step > 0) ptx::barrier_wait(shared.ds_full[buffer ^ 1], (step - 1) / 2 % 2);
    start_dq(buffer ^ 1);
    ptx::wgmma_wait<1>();
    ptx::barrier_arrive(shared.empty[stage]);
  };

  const int steps = QueryWalk<kRows>(problem, block, kKeys).steps, last = steps - 1;
  ptx::barrier_wait(shared.k_full, 0);
  ptx::barrier_wait(shared.v_full, 0);
  if (steps > 0) {
    ptx::barrier_wait(shared.q_full[0], 0);
    start_scores(s, shared.k, shared.q[0]);
    weigh(0);
    for (int step = 0; step < last; ++step) {
      const int next = step + 1;
      accumulate(step);
      ptx::barrier_wait(shared.q_full[next % kStages], next / kStages % 2);
      start_scores(s, shared.k, shared.q[next % kStages]);
      ptx::wgmma_wait<1>(dq);
      if (step > 0) leave_dq(step - 1);
      weigh(next);
    }
    accumulate(last);
    ptx::wgmma_wait<0>(dq);
    if (last > 0) leave_dq(last - 1);
    ptx::barrier_wait(shared.ds_full[last % 2], last / 2 % 2);
    start_dq(last % 2);
    ptx::wgmma_wait<0>(dq);
    leave_dq(last);
  }

  // Stores dK and dV through the memory of k and v. The other warpgroup reads all of k, so both must be done with it.
  ptx::named_barrier(kBothConsumers, kConsumers * kWarpgroup);
  store_rows<T>(shared.k, dk, own, problem.scale);
  store_rows<T>(shared.v, dv, own, 1.0f);
  leave_out_hidden_queries(shared.v, dv, own, problem, block, first_key, 0);
  ptx::async_proxy_fence();
  ptx::named_barrier(kOneConsumer + consumer, kWarpgroup);
  if (thread == 0) {
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      ptx::tile_store(maps.dk, shared.k[panel] + own, panel * kLine, first_key, block.head, block.batch);
      ptx::tile_store(maps.dv, shared.v[panel] + own, panel * kLine, first_key, block.head, block.batch);
    }
    ptx::tile_store_commit();
    ptx::tile_store_wait_read<0>();
  }
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__(kThreads, 1)
    attention_backward_cuda_v3_hopper_kernel(const __grid_constant__ BackwardMaps maps,
                                             const __grid_constant__ BackwardProblem problem) {
#ifdef ROOFLAB_SM90A
  extern __shared__ __align__(1024) unsigned char raw[];
  auto& shared = *reinterpret_cast<Shared<T, kHeadSize>*>(raw);
  const KeyBlock block = key_block(problem, kKeys);
  if (threadIdx.x == 0) {
    shared.block = block;
    ptx::barrier_init(shared.k_full, 1);
    ptx::barrier_init(shared.v_full, 1);
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::barrier_init(shared.q_full[stage], 1 + 32);  // the copies, and each lane of the warp that writes rows
      ptx::barrier_init(shared.dout_full[stage], 1);
      ptx::barrier_init(shared.empty[stage], kConsumers * kWarpgroup);  // each lane, because each has read rows
    }
    for (int i = 0; i < 2; ++i) {
      ptx::barrier_init(shared.ds_full[i], kConsumers * kWarps);
      ptx::barrier_init(shared.ds_empty[i], kConsumers * kWarps);
      ptx::barrier_init(shared.dq_full[i], kWarps);
      ptx::barrier_init(shared.dq_empty[i], 1);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<24>();
    produce(shared, maps, problem, block);
  } else {
    ptx::registers_grow_to<240>();
    consume(shared, maps, problem, block, warpgroup - 1);
  }
#else
  unsupported_architecture();
#endif
}

template <class T, int kHeadSize>
void launch(const AttentionBackwardArgs& args, BackwardProblem problem, Queue& queue) {
  problem.key_blocks = (problem.kv_length + kKeys - 1) / kKeys;
  const int64_t blocks = int64_t{problem.key_blocks} * problem.batch * problem.kv_heads;
  queue.launch(attention_backward_cuda_v3_hopper_kernel<T, kHeadSize>, {blocks, kThreads, sizeof(Shared<T, kHeadSize>)},
               backward_maps(args, kTileRows<kHeadSize>, kKeys), problem);
}

template <class T>
void launch(const AttentionBackwardArgs& args, const BackwardProblem& problem, Queue& queue) {
  problem.head_size <= 64 ? launch<T, 64>(args, problem, queue) : launch<T, 128>(args, problem, queue);
}

}  // namespace

void attention_backward_hopper_registers(const AttentionBackwardArgs& args, const BackwardProblem& problem,
                                         Queue& queue) {
  args.forward.dtype == DType::kFloat16 ? launch<__half>(args, problem, queue)
                                        : launch<__nv_bfloat16>(args, problem, queue);
}

}  // namespace rooflab::kernels
