// v6: float32 on Hopper's tensor cores, with the accuracy of float32. A and B are split into three bfloat16 parts each
// (common/split_bf16.cuh), and a tile of C is the sum of six products of parts: v5's pipeline with tiles of three parts
// and 128 x 128 of C per block. Tensor cores truncate sums, so a sum covers only 64 of K and is then added, in
// registers, to C's sum with rounding. An infinity or NaN anywhere in a sum, or an overflow, makes it NaN: such
// elements of C are recomputed by plain multiply-adds. Rows or columns contiguous, any alignment.
//
// 6 x 2 M N K FLOPs at the rate of bfloat16, and a pass that reads 4 bytes of each element of A and B and writes 6.
#include "core/target.h"
#include "kernels/common/cuda_types.cuh"
#include "kernels/common/split_bf16.cuh"
#include "kernels/matmul/matmul_hopper.cuh"

namespace rooflab::kernels {
namespace {

using namespace hopper;
using Part = __nv_bfloat16;

constexpr int kBlockM = 128, kBlockN = 128, kStages = 2;
constexpr int kConsumerM = kBlockM / kConsumers;
constexpr int kSplitThreads = 256, kSplitWidth = 8;  // elements per thread

struct Shared {
  alignas(1024) Tile<Part, kBlockM> a[kStages][kSplitParts];
  alignas(1024) Tile<Part, kBlockN> b[kStages][kSplitParts];
  ptx::Barrier full[kStages][kSplitParts], empty[kStages][kSplitParts];
};

// Matrix (part * batches + batch) of the result holds one part of one matrix of the operand.
__global__ void __launch_bounds__(kSplitThreads)
    matmul_cuda_v6_split_bf16_split_kernel(MatmulOperand operand, bool aligned, Part* parts, int64_t leading,
                                           int64_t vectors, int64_t part_stride) {
  const int64_t row_vectors = leading / kSplitWidth;
  for (int64_t i = blockIdx.x * int64_t{kSplitThreads} + threadIdx.x; i < vectors;
       i += int64_t{gridDim.x} * kSplitThreads) {
    const int64_t line = i / row_vectors, column = i % row_vectors * kSplitWidth;
    const int64_t batch = line / operand.rows, row = line % operand.rows;
    const float* from =
        static_cast<const float*>(operand.data) + batch * operand.batch_stride + row * operand.leading + column;
    const int64_t left = operand.row_length - column;
    split_vector(from, static_cast<int>(left < kSplitWidth ? left : kSplitWidth), aligned, parts + i * kSplitWidth,
                 part_stride);
  }
}

// Issues the copies of all tiles, by one thread. A stage's parts come in the order in which consumers release them.
template <bool kAKMajor, bool kBKMajor>
__device__ __forceinline__ void produce(Shared& shared, const CUtensorMap& a_map, const CUtensorMap& b_map,
                                        const Problem& problem) {
  constexpr int kShareOfB = kBlockN / kCluster;
  constexpr uint32_t kPartBytes = sizeof(shared.a[0][0]) + sizeof(shared.b[0][0]);
  const int first_b = ptx::cluster_rank() * kShareOfB;
  StageRing<kStages> at;
  for_each_tile<kBlockM, kBlockN>(problem, [&](const OutputTile& tile) {
    for (int k = 0; k < problem.k_tiles * kBlockK; k += kBlockK, at.advance()) {
      for (int part = kSplitParts - 1; part >= 0; --part) {
        const int a_matrix = problem.a_batched ? part * problem.batches + tile.batch : part;
        const int b_matrix = problem.b_batched ? part * problem.batches + tile.batch : part;
        ptx::Barrier& full = shared.full[at.stage][part];
        ptx::barrier_wait(shared.empty[at.stage][part], at.parity ^ 1);
        ptx::barrier_expect(full, kPartBytes);
        load_a<kAKMajor, kBlockM>(shared.a[at.stage][part], a_map, full, tile.m, k, a_matrix);
        load_b<kBKMajor, kShareOfB>(shared.b[at.stage][part] + first_b, b_map, full, tile.n + first_b, k, b_matrix);
      }
    }
  });
}

// Computes one element of C by plain multiply-adds.
__device__ __forceinline__ float product(const MatmulArgs& args, int64_t batch, int64_t row, int64_t column) {
  const float* a = static_cast<const float*>(args.a) + batch * args.a_batch_stride + row * args.a_row_stride;
  const float* b = static_cast<const float*>(args.b) + batch * args.b_batch_stride + column * args.b_col_stride;
  float sum = 0;
  for (int64_t k = 0; k < args.k; ++k) sum = fmaf(a[k * args.a_col_stride], b[k * args.b_row_stride], sum);
  return sum;
}

// Stores a warpgroup's 64 x 128 sums in C: a lane holds two neighbours of each group of eight columns, in two rows.
__device__ __forceinline__ void store(const MatmulArgs& args, const float (&sum)[kBlockN / 2], int consumer,
                                      const OutputTile& tile) {
  const int thread = threadIdx.x % kWarpgroup, lane = thread % 32;
  const int64_t first_row = tile.m + consumer * kConsumerM + thread / 32 * 16 + lane / 4;
  const int64_t first_column = tile.n + lane % 4 * 2;
  float* const c = static_cast<float*>(args.c) + tile.batch * args.m * args.n;
  const bool pairs = args.n % 2 == 0 && reinterpret_cast<uintptr_t>(c) % sizeof(float2) == 0;
  uint64_t again = 0;  // which sums are not finite and must be computed again
#pragma unroll
  for (int i = 0; i < kBlockN / 2; i += 2) {
    const int64_t row = first_row + i / 2 % 2 * 8, column = first_column + i / 4 * 8;
    if (row >= args.m || column >= args.n) continue;
    float* to = c + row * args.n + column;
    const bool has_next = column + 1 < args.n;
    if (pairs) {
      *reinterpret_cast<float2*>(to) = make_float2(sum[i], sum[i + 1]);
    } else {
      to[0] = sum[i];
      if (has_next) to[1] = sum[i + 1];
    }
    if (!isfinite(sum[i])) again |= uint64_t{1} << i;
    if (has_next && !isfinite(sum[i + 1])) again |= uint64_t{2} << i;
  }
  for (; again != 0; again &= again - 1) {
    const int i = __ffsll(again) - 1;
    const int64_t row = first_row + i / 2 % 2 * 8, column = first_column + i / 4 * 8 + i % 2;
    c[row * args.n + column] = product(args, tile.batch, row, column);
  }
}

// Multiplies, by one warpgroup. While it adds a stage's sums to C's, the other keeps the tensor cores busy.
template <bool kAKMajor, bool kBKMajor>
__device__ __forceinline__ void consume(Shared& shared, int consumer, const Problem& problem, const MatmulArgs& args) {
  using Sums = float[kBlockN / 2];
  const uint32_t thread = threadIdx.x % kWarpgroup;
  StageRing<kStages> at;
  const auto multiply = [&](Sums& chunk, int a_part, int b_part, bool accumulate) {
    const uint64_t a = ptx::swizzled_tile(shared.a[at.stage][a_part] + consumer * kConsumerM, kPanelBytes<Part>);
    const uint64_t b = ptx::swizzled_tile(shared.b[at.stage][b_part], kPanelBytes<Part>);
#pragma unroll
    for (int step = 0; step < kBlockK / kMmaK; ++step)
      ptx::wgmma<Part, kBlockN, kAKMajor, kBKMajor>(chunk, a + step * kStepUnits<Part, kAKMajor>,
                                                    b + step * kStepUnits<Part, kBKMajor>, accumulate || step > 0);
  };
  // Starts a stage's products in three groups, the smallest products first. After each group one part is no longer
  // read.
  const auto start = [&](Sums& chunk) {
    for (int part = kSplitParts - 1; part >= 0; --part) ptx::barrier_wait(shared.full[at.stage][part], at.parity);
    ptx::wgmma_fence();
    multiply(chunk, 0, 2, false);
    multiply(chunk, 2, 0, true);
    ptx::wgmma_commit();
    multiply(chunk, 1, 1, true);
    multiply(chunk, 0, 1, true);
    multiply(chunk, 1, 0, true);
    ptx::wgmma_commit();
    multiply(chunk, 0, 0, true);
    ptx::wgmma_commit();
  };
  // A part may be refilled when the consumers in all blocks that received it are done.
  const auto release = [&](int part) {
    if (thread < kCluster) ptx::barrier_arrive_at(shared.empty[at.stage][part], thread);
  };

  for_each_tile<kBlockM, kBlockN>(problem, [&](const OutputTile& tile) {
    Sums sum = {}, chunk;
    for (int k_tile = 0; k_tile < problem.k_tiles; ++k_tile, at.advance()) {
      start(chunk);
      ptx::wgmma_wait<2>();
      release(2);
      ptx::wgmma_wait<1>();
      release(1);
      ptx::wgmma_wait<0>(chunk);
      release(0);
#pragma unroll
      for (int i = 0; i < kBlockN / 2; ++i) sum[i] += chunk[i];
    }
    store(args, sum, consumer, tile);
  });
}

template <bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(kThreads, 1)
    matmul_cuda_v6_split_bf16_kernel(const __grid_constant__ CUtensorMap a_map,
                                     const __grid_constant__ CUtensorMap b_map, const __grid_constant__ Problem problem,
                                     const __grid_constant__ MatmulArgs args) {
#ifdef ROOFLAB_SM90A
  extern __shared__ __align__(1024) unsigned char raw[];
  Shared& shared = *reinterpret_cast<Shared*>(raw);

  if (threadIdx.x == 0) {
    ptx::tensor_map_prefetch(a_map);
    ptx::tensor_map_prefetch(b_map);
    for (int stage = 0; stage < kStages; ++stage) {
      for (int part = 0; part < kSplitParts; ++part) {
        ptx::barrier_init(shared.full[stage][part], 1);
        ptx::barrier_init(shared.empty[stage][part], kConsumers * kCluster);
      }
    }
    ptx::barrier_init_fence();
  }
  ptx::cluster_sync();

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<40>();
    if (threadIdx.x == 0) produce<kAKMajor, kBKMajor>(shared, a_map, b_map, problem);
    __syncwarp();
  } else {
    ptx::registers_grow_to<232>();
    consume<kAKMajor, kBKMajor>(shared, warpgroup - 1, problem, args);
  }
  ptx::cluster_sync();  // a block's shared memory must outlive what the other block sends to it
#else
  unsupported_architecture();
#endif
}

// Splits an operand. The parts form an operand too, of 3 x batch matrices.
MatmulOperand split(const MatmulOperand& operand, int64_t batch, Part* to, Queue& queue) {
  const int64_t leading = matmul_split_leading(operand), matrix = leading * operand.rows;
  const int64_t part_stride = matrix * (operand.batch_stride == 0 ? 1 : batch), vectors = part_stride / kSplitWidth;
  queue.launch(matmul_cuda_v6_split_bf16_split_kernel,
               {std::min<int64_t>((vectors + kSplitThreads - 1) / kSplitThreads, INT32_MAX), kSplitThreads}, operand,
               operand.aligned_to_16_bytes(DType::kFloat32), to, leading, vectors, part_stride);
  MatmulOperand parts = operand;
  parts.data = to;
  parts.leading = leading;
  parts.batch_stride = matrix;
  return parts;
}

CUtensorMap parts_map(const MatmulOperand& parts, bool batched, const MatmulArgs& args, int lines) {
  return tensor_map(parts, kSplitParts * (batched ? args.batch : 1), DType::kBFloat16, lines);
}

template <bool kAKMajor, bool kBKMajor>
void launch(const MatmulArgs& args, Queue& queue) {
  const MatmulOperand a = matmul_a(args), b = matmul_b(args);
  const auto tiles = [](int64_t size, int tile) { return static_cast<int>((size + tile - 1) / tile); };
  const Problem problem{tiles(args.m, kCluster * kBlockM), tiles(args.n, kBlockN), tiles(args.k, kBlockK),
                        static_cast<int>(args.batch),      a.batch_stride != 0,    b.batch_stride != 0};
  Part* parts = queue.scratch<Part>(matmul_split_elements(args));
  const MatmulOperand a_parts = split(a, args.batch, parts, queue);
  const MatmulOperand b_parts = split(b, args.batch, parts + matmul_split_elements(a, args.batch), queue);
  const int64_t pairs = int64_t{problem.m_pairs} * problem.n_tiles * problem.batches;
  const int64_t clusters = std::min<int64_t>(pairs, queue.target().sm_count / kCluster);
  queue.launch(matmul_cuda_v6_split_bf16_kernel<kAKMajor, kBKMajor>,
               {.grid = clusters * kCluster, .block = kThreads, .shared_bytes = sizeof(Shared), .cluster = kCluster},
               parts_map(a_parts, problem.a_batched, args, kAKMajor ? kBlockM : kBlockK),
               parts_map(b_parts, problem.b_batched, args, kBKMajor ? kBlockN / kCluster : kBlockK), problem, args);
}

}  // namespace

void matmul_cuda_v6_split_bf16(const MatmulArgs& args, Queue& queue) {
  const bool a_k_major = matmul_a(args).k_major, b_k_major = matmul_b(args).k_major;
  if (a_k_major) {
    b_k_major ? launch<true, true>(args, queue) : launch<true, false>(args, queue);
  } else {
    b_k_major ? launch<false, true>(args, queue) : launch<false, false>(args, queue);
  }
}

}  // namespace rooflab::kernels
