// cumsum on the GPU: see cumsum.h for what it computes.
#include <bit>

#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/reduce.cuh"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels {
namespace {

template <class T>
using cumsum_result_t = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

// What sums of T are carried on in, from a part of a line to the next, of which there may be many.
template <class T>
using carried_t = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

template <class A, class T>
__device__ __forceinline__ A widened(T value) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
    return static_cast<A>(value);
  else
    return static_cast<A>(to_float(value));
}

template <class Y, class A>
__device__ __forceinline__ Y narrowed(A value) {
  if constexpr (std::is_integral_v<Y>)
    return value;
  else
    return round_to<Y>(value);
}

template <class T>
__global__ void cumsum_cuda_v0_reference_kernel(CumsumArgs args) {
  using Y = cumsum_result_t<T>;
  using A = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  const int64_t lines = args.outer * args.inner, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t line = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; line < lines; line += threads) {
    const int64_t outer = line / args.inner, i = line % args.inner;
    const T* x = static_cast<const T*>(args.x) + outer * args.x_outer_stride + i * args.x_inner_stride;
    Y* y = static_cast<Y*>(args.y) + outer * args.y_outer_stride + i * args.y_inner_stride;
    A total = 0;
    for (int64_t k = 0; k < args.n; ++k) y[k * args.y_stride] = narrowed<Y>(total += widened<A>(x[k * args.x_stride]));
  }
}

// The sum over this lane and those before it, of a warp or of `lanes` neighbours (a power of two).
template <class A>
__device__ __forceinline__ A warp_scan(A value, int lanes = kWarp) {
  const int lane = threadIdx.x % lanes;
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const A before = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

template <class T>
__global__ void __launch_bounds__(kThreads) cumsum_cuda_v1_block_scan_kernel(CumsumArgs args) {
  using Y = cumsum_result_t<T>;
  using A = std::conditional_t<std::is_integral_v<T>, int64_t, accumulator_t<T>>;
  constexpr int kWarps = kThreads / kWarp;
  __shared__ A of_warp[kWarps];
  const int warp = threadIdx.x / kWarp;
  for (int64_t line = blockIdx.x; line < args.outer; line += gridDim.x) {
    const T* x = static_cast<const T*>(args.x) + line * args.x_outer_stride;
    Y* y = static_cast<Y*>(args.y) + line * args.y_outer_stride;
    carried_t<T> carried = 0;
    for (int64_t begin = 0; begin < args.n; begin += kThreads) {
      const int64_t k = begin + threadIdx.x;
      A sum = warp_scan(k < args.n ? widened<A>(x[k * args.x_stride]) : A{0});
      if (threadIdx.x % kWarp == kWarp - 1) of_warp[warp] = sum;
      __syncthreads();
      A of_block = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        if (w < warp) sum += of_warp[w];
        of_block += of_warp[w];
      }
      if (k < args.n) y[k * args.y_stride] = narrowed<Y>(static_cast<A>(carried) + sum);
      carried += of_block;
      __syncthreads();
    }
  }
}

// `lanes` neighbours share a line, of which they scan that many elements at a time.
template <class T>
__global__ void __launch_bounds__(kThreads) cumsum_cuda_v1a_warp_scan_kernel(CumsumArgs args, int lanes) {
  using Y = cumsum_result_t<T>;
  using A = std::conditional_t<std::is_integral_v<T>, int64_t, accumulator_t<T>>;
  constexpr int kLoads = 4;
  const int64_t step = gridDim.x * int64_t{kThreads} / lanes;
  const int own = threadIdx.x % kWarp / lanes, lane = threadIdx.x % lanes;
  // All lanes of a warp take part in its scans, so they leave the loop together.
  for (int64_t first = (blockIdx.x * int64_t{kThreads} + threadIdx.x / kWarp * kWarp) / lanes; first < args.outer;
       first += step) {
    const int64_t line = min(first + own, args.outer - 1), n = first + own < args.outer ? args.n : 0;
    const T* x = static_cast<const T*>(args.x) + line * args.x_outer_stride;
    Y* y = static_cast<Y*>(args.y) + line * args.y_outer_stride;
    carried_t<T> carried = 0;
    for (int64_t begin = 0; begin < args.n; begin += kLoads * lanes) {
      A values[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int64_t k = begin + i * lanes + lane;
        values[i] = k < n ? widened<A>(x[k * args.x_stride]) : A{0};
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        if (begin + i * lanes >= args.n) break;
        const int64_t k = begin + i * lanes + lane;
        const A sum = warp_scan(values[i], lanes);
        if (k < n) y[k * args.y_stride] = narrowed<Y>(carried + sum);
        carried += __shfl_sync(0xffffffffu, sum, lanes - 1, lanes);
      }
    }
  }
}

// A chunk of a line, which is the work of a block.
template <class T>
struct Chunk {
  using Y = cumsum_result_t<T>;
  const T* x;
  Y* y;
  int64_t begin, end;

  __device__ __forceinline__ Chunk(const CumsumArgs& args, int64_t line, int64_t chunk, int64_t chunks)
      : x(static_cast<const T*>(args.x) + line / args.inner * args.x_outer_stride +
          line % args.inner * args.x_inner_stride),
        y(static_cast<Y*>(args.y) + line / args.inner * args.y_outer_stride + line % args.inner * args.y_inner_stride) {
    const int64_t tiles = (args.n + kCumsumTile - 1) / kCumsumTile;
    begin = tiles * chunk / chunks * kCumsumTile;
    end = min(tiles * (chunk + 1) / chunks * kCumsumTile, args.n);
  }
};

constexpr int kOfThread = kCumsumTile / kThreads;  // neighbours

// sums[line, chunk] = the sum of the chunk.
template <class T>
__global__ void __launch_bounds__(kThreads)
    cumsum_cuda_v2_chunk_sums_kernel(CumsumArgs args, int64_t chunks, carried_t<T>* sums) {
  using A = carried_t<T>;
  __shared__ typename BlockReduction<A>::Scratch scratch;
  const Chunk<T> chunk(args, blockIdx.x / chunks, blockIdx.x % chunks, chunks);
  A sum = 0;
#pragma unroll 4
  for (int64_t k = chunk.begin + threadIdx.x; k < chunk.end; k += kThreads)
    sum += widened<A>(chunk.x[k * args.x_stride]);
  sum = BlockReduction<A>(scratch).reduce(sum, A{0}, Add{});
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    cumsum_cuda_v2_chunks_kernel(CumsumArgs args, int64_t chunks, const carried_t<T>* sums) {
  using Y = cumsum_result_t<T>;
  using A = std::conditional_t<std::is_integral_v<T>, int64_t, accumulator_t<T>>;
  using Carried = carried_t<T>;
  constexpr int kWarps = kThreads / kWarp;
  __shared__ typename BlockReduction<Carried>::Scratch scratch;
  __shared__ Carried of_warp[kWarps];
  const int warp = threadIdx.x / kWarp;
  const int64_t number = blockIdx.x % chunks;
  const Chunk<T> chunk(args, blockIdx.x / chunks, number, chunks);

  wait_for_previous_kernel();
  Carried carried = 0;  // the sum of the chunks before
  for (int64_t k = threadIdx.x; k < number; k += kThreads) carried += sums[blockIdx.x - number + k];
  carried = BlockReduction<Carried>(scratch).reduce(carried, Carried{0}, Add{});

  for (int64_t tile = chunk.begin; tile < chunk.end; tile += kCumsumTile) {
    const int64_t first = tile + threadIdx.x * kOfThread;
    A values[kOfThread], own = 0;
#pragma unroll
    for (int i = 0; i < kOfThread; ++i)
      values[i] = first + i < chunk.end ? widened<A>(chunk.x[(first + i) * args.x_stride]) : A{0};
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) values[i] = own += values[i];
    const A to_here = warp_scan(own), of_lane_before = __shfl_up_sync(0xffffffffu, to_here, 1);
    const A before = threadIdx.x % kWarp > 0 ? of_lane_before : A{0};
    if (threadIdx.x % kWarp == kWarp - 1) of_warp[warp] = to_here;
    __syncthreads();
    Carried sum = carried;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) sum += of_warp[w];
      carried += of_warp[w];
    }
#pragma unroll
    for (int i = 0; i < kOfThread; ++i)
      if (first + i < chunk.end) chunk.y[(first + i) * args.y_stride] = narrowed<Y>(sum + (before + values[i]));
    __syncthreads();
  }
}

template <class T>
void launch_chunks(const CumsumArgs& args, Queue& queue) {
  const int64_t lines = args.outer * args.inner, chunks = cumsum_chunks(args);
  auto* sums = queue.scratch<carried_t<T>>(chunks > 1 ? lines * chunks : 0);
  if (chunks > 1) queue.launch(cumsum_cuda_v2_chunk_sums_kernel<T>, {lines * chunks, kThreads}, args, chunks, sums);
  LaunchShape shape{lines * chunks, kThreads};
  shape.early = chunks > 1 && can_launch_early(queue);
  queue.launch(cumsum_cuda_v2_chunks_kernel<T>, shape, args, chunks, sums);
}

}  // namespace

void cumsum_cuda_v0_reference(const CumsumArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    queue.launch(cumsum_cuda_v0_reference_kernel<cuda_type_t<T>>, a_thread_each(args.outer * args.inner), args);
  });
}

void cumsum_cuda_v1_block_scan(const CumsumArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    queue.launch(cumsum_cuda_v1_block_scan_kernel<cuda_type_t<T>>, a_block_each(args.outer), args);
  });
}

void cumsum_cuda_v1a_warp_scan(const CumsumArgs& args, Queue& queue) {
  const int lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(args.n, 1, kWarp))));
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    queue.launch(cumsum_cuda_v1a_warp_scan_kernel<cuda_type_t<T>>, a_thread_each(args.outer * lanes), args, lanes);
  });
}

void cumsum_cuda_v2_chunks(const CumsumArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "cumsum", [&]<class T>() { launch_chunks<cuda_type_t<T>>(args, queue); });
}

}  // namespace rooflab::kernels
