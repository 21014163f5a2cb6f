// nonzero on the GPU: see nonzero.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/reduce.cuh"
#include "kernels/nonzero/nonzero.h"

namespace rooflab::kernels {
namespace {

constexpr int kOwn = 16;  // neighbouring elements of a thread, a byte each
constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kTile = kThreads * kOwn;
static_assert(kTile == kNonzeroTile);

// A bit for each of the kOwn elements from i on: whether it is true.
__device__ unsigned own_trues(const NonzeroArgs& args, int64_t i, bool aligned) {
  alignas(16) bool own[kOwn] = {};
  if (aligned && i + kOwn <= args.count)
    *reinterpret_cast<uint4*>(own) = *reinterpret_cast<const uint4*>(args.mask + i);
  else
    for (int e = 0; e < kOwn; ++e) own[e] = i + e < args.count && args.mask[i + e];
  unsigned trues = 0;
#pragma unroll
  for (int e = 0; e < kOwn; ++e) trues |= unsigned{own[e]} << e;
  return trues;
}

__global__ void __launch_bounds__(kWarp) nonzero_cuda_v0_reference_kernel(const __grid_constant__ NonzeroArgs args) {
  const unsigned earlier = (1u << threadIdx.x) - 1;
  int64_t rank = 0;
  for (int64_t portion = 0; portion < args.portions; ++portion) {
    const int64_t begin = portion * args.portion, end = min(begin + args.portion, args.count), before = rank;
    for (int64_t i = begin + threadIdx.x; i - threadIdx.x < end; i += kWarp) {
      const bool is_true = i < end && args.mask[i];
      const unsigned trues = __ballot_sync(~0u, is_true);
      const int64_t own = rank + __popc(trues & earlier);
      if (is_true && own < args.found) write_place(args, own, i);
      rank += __popc(trues);
    }
    if (args.places == nullptr && threadIdx.x == 0) args.counts[portion] = rank - before;
  }
}

// A block counts a portion.
__global__ void __launch_bounds__(kThreads)
    nonzero_cuda_v1_portions_count_kernel(const __grid_constant__ NonzeroArgs args, bool aligned) {
  __shared__ BlockReduction<int>::Scratch scratch;
  wait_for_previous_kernel();
  const int64_t begin = blockIdx.x * args.portion, end = min(begin + args.portion, args.count);
  int trues = 0;
  for (int64_t i = begin + threadIdx.x * kOwn; i < end; i += kTile) trues += __popc(own_trues(args, i, aligned));
  trues = BlockReduction<int>(scratch).reduce(trues, 0, Add());
  if (threadIdx.x == 0) args.counts[blockIdx.x] = trues;
}

// A block adds up the counts of the portions before its own, and writes from there on.
__global__ void __launch_bounds__(kThreads)
    nonzero_cuda_v1_portions_kernel(const __grid_constant__ NonzeroArgs args, bool aligned) {
  __shared__ BlockReduction<int64_t>::Scratch scratch;
  __shared__ int of_warps[kWarps];
  __shared__ uint16_t found[kTile];  // the tile's trues, as places in the tile
  wait_for_previous_kernel();
  int64_t rank = 0;  // of the tile's first true
  for (int p = threadIdx.x; p < blockIdx.x; p += kThreads) rank += args.counts[p];
  rank = BlockReduction<int64_t>(scratch).reduce(rank, int64_t{0}, Add());

  const int64_t begin = blockIdx.x * args.portion, portion_end = min(begin + args.portion, args.count);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  for (int64_t tile = begin; tile < portion_end; tile += kTile) {
    unsigned trues = own_trues(args, tile + threadIdx.x * kOwn, aligned);
    int end = __popc(trues);  // of this thread's trues among those of the warp, then among those of the tile
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const int before = __shfl_up_sync(~0u, end, distance);
      if (lane >= distance) end += before;
    }
    if (lane == kWarp - 1) of_warps[warp] = end;
    __syncthreads();
    int of_tile = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) end += of_tile;
      of_tile += of_warps[w];
    }
    for (int to = end - __popc(trues); trues != 0; trues &= trues - 1)
      found[to++] = threadIdx.x * kOwn + __ffs(trues) - 1;
    __syncthreads();
    // Neighbouring threads write neighbouring places. A mask that has changed since it was counted has no room here.
    for (int k = threadIdx.x; k < of_tile && rank + k < args.found; k += kThreads)
      write_place(args, rank + k, tile + found[k]);
    rank += of_tile;
    __syncthreads();
  }
}

}  // namespace

void nonzero_cuda_v0_reference(const NonzeroArgs& args, Queue& queue) {
  queue.launch(nonzero_cuda_v0_reference_kernel, {.grid = 1, .block = kWarp}, args);
}

void nonzero_cuda_v1_portions(const NonzeroArgs& args, Queue& queue) {
  const auto kernel = args.places ? nonzero_cuda_v1_portions_kernel : nonzero_cuda_v1_portions_count_kernel;
  queue.launch(kernel, early({args.portions, kThreads}, queue), args, is_aligned(args.mask));
}

}  // namespace rooflab::kernels
