// v3 for head sizes up to 128: see attention_backward_cuda_hopper.cu. A block takes 128 keys, 64 for each of its two
// warpgroups, which keep dK and dV in registers and compute scores with the keys along the rows: S^T = K Q^T and
// dP^T = V dO^T are then, rounded, operands in registers of dV += P^T dO and dK += dS^T Q. Only dS goes through shared
// memory, for dQ = dS K, of which each warpgroup computes half.
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
  QueryRows<kRows> rows[kStages];
  ptx::Barrier k_full, v_full, q_full[kStages], dout_full[kStages], empty[kStages];
};

// From one k16 step to the next, in units of 16 bytes: along the lines of panels of kLines, or across lines.
template <int kLines>
constexpr int along_lines(int step) {
  return step / 4 * kLines * 8 + step % 4 * 2;
}
constexpr int across_lines(int step) { return step * kMmaK * 8; }

// One warp brings k and q, one v and dout, one the queries' numbers.
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
  }
}

template <class T, int kHeadSize>
__device__ __forceinline__ void consume(Shared<T, kHeadSize>& shared, const BackwardMaps& maps,
                                        const BackwardProblem& problem, const KeyBlock& block, int consumer) {
  constexpr int kRows = kTileRows<kHeadSize>, kSteps = kRows / kMmaK;
  constexpr int kPanels = kHeadSize / kLine;
  constexpr bool kEarlyDv =
      kHeadSize == 128;  // starts before dP is there; registers are too few where tiles are larger
  constexpr uint32_t kLineBytes = kLine * sizeof(T);
  constexpr int kBothConsumers = 1, kOneConsumer = 2;  // named barriers
  const int thread = threadIdx.x % kWarpgroup, lane = thread % 32;
  const int own = consumer * kWarpgroupRows, first_key = block.first + own;
  // dQ in halves: of the head when it has two panels, or else of the queries.
  const int dq_panel = kPanels == 2 ? consumer : 0, dq_rows = kPanels == 2 ? 0 : consumer;

  const uint64_t k_own = ptx::swizzled_tile(shared.k[0] + own, 0), v_own = ptx::swizzled_tile(shared.v[0] + own, 0);
  const uint64_t k_panel = ptx::swizzled_tile(shared.k[dq_panel], 0);
  float dk[kHeadSize / 2] = {}, dv[kHeadSize / 2] = {}, s[kRows / 2];

  const auto start_scores = [&](int stage) {
    const uint64_t q = ptx::swizzled_tile(shared.q[stage], 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kHeadSize / kMmaK; ++step) {
      ptx::wgmma<T, kRows, true, true>(s, k_own + along_lines<kKeys>(step), q + along_lines<kRows>(step), step > 0);
    }
    ptx::wgmma_commit();
  };

  const int steps = QueryWalk<kRows>(problem, block, kKeys).steps;
  if (steps > 0) {
    ptx::barrier_wait(shared.k_full, 0);
    ptx::barrier_wait(shared.q_full[0], 0);
    start_scores(0);
    ptx::barrier_wait(shared.v_full, 0);
  }
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    const QueryRows<kRows>& rows = shared.rows[stage];
    const uint64_t q_across = ptx::swizzled_tile(shared.q[stage], kRows * kLineBytes);
    const uint64_t dout = ptx::swizzled_tile(shared.dout[stage], kRows * kLineBytes);
    float dp[kRows / 2];
    uint32_t p16[kSteps][4], ds16[kSteps][4];
    const auto add_dv = [&] {
      ptx::wgmma_fence();
#pragma unroll
      for (int i = 0; i < kSteps; ++i) ptx::wgmma<T, kHeadSize, false>(dv, p16[i], dout + across_lines(i), true);
      ptx::wgmma_commit();
    };

    ptx::barrier_wait(shared.dout_full[stage], step / kStages % 2);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kHeadSize / kMmaK; ++i) {
      ptx::wgmma<T, kRows, true, true>(dp, v_own + along_lines<kKeys>(i), dout + along_lines<kRows>(i), i > 0);
    }
    ptx::wgmma_commit();

    ptx::wgmma_wait<1>(s);
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j) {
      const float2 lse = reinterpret_cast<const float2&>(rows.lse[j * 8 + lane % 4 * 2]);
      s[4 * j] = exp2_approximate(s[4 * j] * problem.scale_log2 - lse.x);
      s[4 * j + 1] = exp2_approximate(s[4 * j + 1] * problem.scale_log2 - lse.y);
      s[4 * j + 2] = exp2_approximate(s[4 * j + 2] * problem.scale_log2 - lse.x);
      s[4 * j + 3] = exp2_approximate(s[4 * j + 3] * problem.scale_log2 - lse.y);
    }
    if (has_hidden_pairs(problem, first_key, kWarpgroupRows, rows.row, kRows)) {
      hide_pairs(s, problem, score_place(problem, first_key, rows.row));
    }
    if constexpr (kEarlyDv) {
#pragma unroll
      for (int i = 0; i < kRows / 4; ++i) p16[i / 4][i % 4] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
    }

    if constexpr (kEarlyDv) add_dv();

    ptx::wgmma_wait<kEarlyDv ? 1 : 0>(dp);
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j) {
      const float2 delta = reinterpret_cast<const float2&>(rows.delta[j * 8 + lane % 4 * 2]);
      const float *p = s + 4 * j, *d = dp + 4 * j;
      if constexpr (!kEarlyDv) {
        p16[j / 2][j % 2 * 2] = ptx::pack<T>(p[0], p[1]);
        p16[j / 2][j % 2 * 2 + 1] = ptx::pack<T>(p[2], p[3]);
      }
      ds16[j / 2][j % 2 * 2] = ptx::pack<T>(p[0] * (d[0] - delta.x), p[1] * (d[1] - delta.y));
      ds16[j / 2][j % 2 * 2 + 1] = ptx::pack<T>(p[2] * (d[2] - delta.x), p[3] * (d[3] - delta.y));
    }
    if constexpr (!kEarlyDv) add_dv();
    auto& ds = shared.ds[step % 2];
    const int key = own + thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const int vector = (i % 4 * 2 + lane / 16) ^ (key % 8);
      ptx::store_matrices(&ds[i / 4][key][vector * 8], ds16[i][0], ds16[i][1], ds16[i][2], ds16[i][3]);
    }
    ptx::async_proxy_fence();

    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kSteps; ++i) ptx::wgmma<T, kHeadSize, false>(dk, ds16[i], q_across + across_lines(i), true);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>(dv);  // P's registers are free again
    if (step + 1 < steps) ptx::barrier_wait(shared.q_full[(step + 1) % kStages], (step + 1) / kStages % 2);
    start_scores((step + 1) % kStages);  // after the last tile of what is there, to no end: a branch would serialise
    ptx::wgmma_wait<1>(dk);              // dS's registers are free again

    const int head = rows.head, row = rows.row;  // before the tile may go
    ptx::named_barrier(kBothConsumers, kConsumers * kWarpgroup);
    float dq[32];
    const uint64_t ds_across = ptx::swizzled_tile(ds[dq_rows], 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kKeys / kMmaK; ++i) {
      ptx::wgmma<T, 64, false, false>(dq, ds_across + across_lines(i), k_panel + across_lines(i), i > 0);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(dq);
    __syncwarp();
    if (lane == 0) ptx::barrier_arrive(shared.empty[stage]);

    float* sums = dq_sum_tile(problem, block.batch, head, row + dq_rows * kSumRows);
    if (problem.turns == nullptr) {
      add_to_dq(sums, dq, dq_panel * kLine, problem.head_size);
    } else {
      const Turn turn = turn_of(problem, block, kKeys, head, row, consumer);
      await_turn(turn, kOneConsumer + consumer);
      add_to_dq(sums, dq, dq_panel * kLine, problem.head_size);
      end_turn(turn, kOneConsumer + consumer);
    }
  }

  ptx::wgmma_wait<0>(dk);
  ptx::wgmma_wait<0>(dv);

  // Out through the memory of k and v. The other warpgroup reads all of k, so both must be done with it.
  if (steps == 0) {
    ptx::barrier_wait(shared.k_full, 0);
    ptx::barrier_wait(shared.v_full, 0);
  }
  ptx::named_barrier(kBothConsumers, kConsumers * kWarpgroup);
  store_rows<T>(shared.k, dk, own, problem.scale);
  store_rows<T>(shared.v, dv, own, 1.0f);
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
  if (threadIdx.x == 0) {
    ptx::barrier_init(shared.k_full, 1);
    ptx::barrier_init(shared.v_full, 1);
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::barrier_init(shared.q_full[stage], 1 + 32);  // the copies, and each lane that writes rows
      ptx::barrier_init(shared.dout_full[stage], 1);
      ptx::barrier_init(shared.empty[stage], kConsumers * 4);  // a lane of each warp
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();

  const KeyBlock block = key_block(problem, kKeys);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<24>();
    produce(shared, maps, problem, block);
  } else {
    ptx::registers_grow_to<240>();
    consume(shared, maps, problem, block, warpgroup - 1);
  }
#endif
}

template <class T, int kHeadSize>
void launch(const AttentionBackwardArgs& args, BackwardProblem problem, Stream stream) {
  constexpr auto kernel = attention_backward_cuda_v3_hopper_kernel<T, kHeadSize>;
  constexpr int kSharedBytes = sizeof(Shared<T, kHeadSize>);
  RL_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  problem.key_blocks = (problem.kv_length + kKeys - 1) / kKeys;
  const unsigned blocks = static_cast<unsigned>(problem.key_blocks) * problem.batch * problem.kv_heads;
  kernel<<<blocks, kThreads, kSharedBytes, attention_stream(stream)>>>(backward_maps(args, kTileRows<kHeadSize>, kKeys),
                                                                       problem);
  cuda_check_launch("attention_backward");
}

template <class T>
void launch(const AttentionBackwardArgs& args, const BackwardProblem& problem, Stream stream) {
  problem.head_size <= 64 ? launch<T, 64>(args, problem, stream) : launch<T, 128>(args, problem, stream);
}

}  // namespace

void attention_backward_hopper_registers(const AttentionBackwardArgs& args, const BackwardProblem& problem,
                                         Stream stream) {
  args.forward.dtype == DType::kFloat16 ? launch<__half>(args, problem, stream)
                                        : launch<__nv_bfloat16>(args, problem, stream);
}

}  // namespace rooflab::kernels
