// v5: Hopper. One warp of each block only issues copies of tiles of A and B (TMA), four stages ahead. Two warpgroups
// only multiply them (wgmma), each computing 64 x 256 of the block's 128 x 256 tile of C. Two blocks, one above the
// other, form a cluster: each loads half of their common tile of B and multicasts it to both. Blocks are persistent, so
// while C is stored through shared memory the next tiles already arrive.
// float16 and bfloat16 with float32 sums, rows or columns contiguous, rows 16-byte aligned.
#include "core/target.h"
#include "kernels/common/cuda_types.cuh"
#include "kernels/matmul/matmul_hopper.cuh"

namespace rooflab::kernels {
namespace {

using namespace hopper;

constexpr int kBlockM = 128, kBlockN = 256, kStages = 4;
constexpr int kConsumerM = kBlockM / kConsumers;
constexpr int kSliceN = kLine, kSlices = 2;

template <class T>
struct Shared {
  alignas(1024) Tile<T, kBlockM> a[kStages];
  alignas(1024) Tile<T, kBlockN> b[kStages];
  alignas(1024) T c[kConsumers][kSlices][kConsumerM][kSliceN];
  ptx::Barrier full[kStages], empty[kStages];
};

// Issues the copies of all tiles of A and B, by one thread.
template <class T, bool kAKMajor, bool kBKMajor>
__device__ __forceinline__ void produce(Shared<T>& shared, const CUtensorMap& a_map, const CUtensorMap& b_map,
                                        const Problem& problem) {
  constexpr int kShareOfB = kBlockN / kCluster;
  constexpr uint32_t kStageBytes = sizeof(Tile<T, kBlockM>) + sizeof(Tile<T, kBlockN>);
  const int first_b = ptx::cluster_rank() * kShareOfB;
  StageRing<kStages> at;
  for_each_tile<kBlockM, kBlockN>(problem, [&](const OutputTile& tile) {
    const int a_batch = problem.a_batched ? tile.batch : 0, b_batch = problem.b_batched ? tile.batch : 0;
    for (int k = 0; k < problem.k_tiles * kBlockK; k += kBlockK, at.advance()) {
      ptx::Barrier& full = shared.full[at.stage];
      ptx::barrier_wait(shared.empty[at.stage], at.parity ^ 1);
      ptx::barrier_expect(full, kStageBytes);
      load_a<kAKMajor, kBlockM>(shared.a[at.stage], a_map, full, tile.m, k, a_batch);
      load_b<kBKMajor, kShareOfB>(shared.b[at.stage] + first_b, b_map, full, tile.n + first_b, k, b_batch);
    }
  });
}

// Rounds a warpgroup's 64 x 256 sums and stores them in C in slices of 64 columns, through two alternating buffers.
template <class T>
__device__ __forceinline__ void store(Shared<T>& shared, const float (&sum)[128], const CUtensorMap& c_map,
                                      int consumer, const OutputTile& tile) {
  const int thread = threadIdx.x % kWarpgroup, lane = thread % 32;
  const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
  for (int slice = 0; slice < kBlockN / kSliceN; ++slice) {
    auto* buffer = shared.c[consumer][slice % kSlices];
    if (thread == 0) ptx::tile_store_wait_read<kSlices - 1>();
    ptx::named_barrier(1 + consumer, kWarpgroup);
#pragma unroll
    for (int j = 0; j < kSliceN / 8; j += 2) {
      const float* d = sum + (slice * kSliceN / 8 + j) * 4;
      const int vector = (j + lane / 16) ^ (row % 8);
      ptx::store_matrices(&buffer[row][vector * 8], ptx::pack<T>(d[0], d[1]), ptx::pack<T>(d[2], d[3]),
                          ptx::pack<T>(d[4], d[5]), ptx::pack<T>(d[6], d[7]));
    }
    ptx::async_proxy_fence();
    ptx::named_barrier(1 + consumer, kWarpgroup);
    if (thread == 0) {
      ptx::tile_store(c_map, buffer, tile.n + slice * kSliceN, tile.m + consumer * kConsumerM, tile.batch);
      ptx::tile_store_commit();
    }
  }
}

// Multiplies, by one warpgroup.
template <class T, bool kAKMajor, bool kBKMajor>
__device__ __forceinline__ void consume(Shared<T>& shared, const CUtensorMap& c_map, int consumer,
                                        const Problem& problem) {
  constexpr int kAStep = kStepUnits<T, kAKMajor>, kBStep = kStepUnits<T, kBKMajor>;
  const uint32_t thread = threadIdx.x % kWarpgroup;
  // A stage may be refilled when the consumers in all blocks that received it are done.
  const auto release = [&](int stage) {
    if (thread < kCluster) ptx::barrier_arrive_at(shared.empty[stage], thread);
  };

  StageRing<kStages> at;
  for_each_tile<kBlockM, kBlockN>(problem, [&](const OutputTile& tile) {
    float sum[128];
    int previous = 0;
    for (int k_tile = 0; k_tile < problem.k_tiles; ++k_tile, at.advance()) {
      ptx::barrier_wait(shared.full[at.stage], at.parity);
      const uint64_t a = ptx::swizzled_tile(shared.a[at.stage] + consumer * kConsumerM, kPanelBytes<T>);
      const uint64_t b = ptx::swizzled_tile(shared.b[at.stage], kPanelBytes<T>);
      ptx::wgmma_fence();
#pragma unroll
      for (int step = 0; step < kBlockK / kMmaK; ++step) {
        ptx::wgmma<T, kBlockN, kAKMajor, kBKMajor>(sum, a + step * kAStep, b + step * kBStep, k_tile > 0 || step > 0);
      }
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>();  // the previous stage's are done; these continue during the wait for the next stage
      if (k_tile > 0) release(previous);
      previous = at.stage;
    }
    ptx::wgmma_wait<0>();
    release(previous);
    store(shared, sum, c_map, consumer, tile);
  });
  if (thread == 0) ptx::tile_store_wait_read<0>();
}

template <class T, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(kThreads, 1)
    matmul_cuda_v5_hopper_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                                 const __grid_constant__ CUtensorMap c_map, const __grid_constant__ Problem problem) {
#ifdef ROOFLAB_SM90A
  extern __shared__ __align__(1024) unsigned char raw[];
  Shared<T>& shared = *reinterpret_cast<Shared<T>*>(raw);

  if (threadIdx.x == 0) {
    ptx::tensor_map_prefetch(a_map);
    ptx::tensor_map_prefetch(b_map);
    ptx::tensor_map_prefetch(c_map);
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::barrier_init(shared.full[stage], 1);
      ptx::barrier_init(shared.empty[stage], kConsumers * kCluster);
    }
    ptx::barrier_init_fence();
  }
  ptx::cluster_sync();

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<40>();
    if (threadIdx.x == 0) produce<T, kAKMajor, kBKMajor>(shared, a_map, b_map, problem);
    __syncwarp();
  } else {
    ptx::registers_grow_to<232>();
    consume<T, kAKMajor, kBKMajor>(shared, c_map, warpgroup - 1, problem);
  }
  ptx::cluster_sync();  // a block's shared memory must outlive what the other block sends to it
#else
  unsupported_architecture();
#endif
}

template <class T, bool kAKMajor, bool kBKMajor>
void launch(const MatmulArgs& args, Queue& queue) {
  const MatmulOperand a = matmul_a(args), b = matmul_b(args);
  const auto tiles = [](int64_t size, int tile) { return static_cast<int>((size + tile - 1) / tile); };
  const Problem problem{tiles(args.m, kCluster * kBlockM), tiles(args.n, kBlockN), tiles(args.k, kBlockK),
                        static_cast<int>(args.batch),      a.batch_stride != 0,    b.batch_stride != 0};
  const int64_t pairs = int64_t{problem.m_pairs} * problem.n_tiles * problem.batches;
  const int64_t clusters = std::min<int64_t>(pairs, queue.target().sm_count / kCluster);
  queue.launch(matmul_cuda_v5_hopper_kernel<T, kAKMajor, kBKMajor>,
               {.grid = clusters * kCluster, .block = kThreads, .shared_bytes = sizeof(Shared<T>), .cluster = kCluster},
               tensor_map(a, args.batch, args.dtype, kAKMajor ? kBlockM : kBlockK),
               tensor_map(b, args.batch, args.dtype, kBKMajor ? kBlockN / kCluster : kBlockK),
               tensor_map(matmul_c(args), args.batch, args.dtype, kConsumerM), problem);
}

template <class T>
void launch(const MatmulArgs& args, Queue& queue) {
  const bool a_k_major = matmul_a(args).k_major, b_k_major = matmul_b(args).k_major;
  if (a_k_major) {
    b_k_major ? launch<T, true, true>(args, queue) : launch<T, true, false>(args, queue);
  } else {
    b_k_major ? launch<T, false, true>(args, queue) : launch<T, false, false>(args, queue);
  }
}

}  // namespace

void matmul_cuda_v5_hopper(const MatmulArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
