// The CUDA rungs of softmax: see softmax.h for what they compute, and softmax_ladder.cpp for what was measured.
#include "core/dispatch.h"
#include "kernels/common/launch_size.h"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/row_tile.cuh"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {
namespace {

constexpr int kMostThreads = 512;  // of row_threads()

template <class T>
__global__ void softmax_cuda_v0_reference_kernel(const T* x, T* y, int64_t n, int64_t d, int64_t x_row_stride,
                                                 bool logarithm) {
  for (int64_t row = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; row < n; row += int64_t{gridDim.x} * blockDim.x) {
    const T* in = x + row * x_row_stride;
    double maximum = -INFINITY, sum = 0;
    for (int64_t i = 0; i < d; ++i) maximum = fmax(maximum, static_cast<double>(to_float(in[i])));
    for (int64_t i = 0; i < d; ++i) sum += exp(to_float(in[i]) - maximum);
    for (int64_t i = 0; i < d; ++i) {
      const double distance = to_float(in[i]) - maximum;
      y[row * d + i] = round_to<T>(logarithm ? distance - log(sum) : exp(distance) / sum);
    }
  }
}

// Combines one value of each thread of a block by a tree in shared memory: in each step the upper half of the values is
// merged into the lower half, and all threads wait for each other.
template <class A, class Op>
__device__ __forceinline__ A tree_reduce(A* values, A own, Op op) {
  values[threadIdx.x] = own;
  __syncthreads();
  for (int count = blockDim.x; count > 1;) {
    const int half = (count + 1) / 2;
    if (threadIdx.x < count - half) values[threadIdx.x] = op(values[threadIdx.x], values[threadIdx.x + half]);
    __syncthreads();
    count = half;
  }
  const A all = values[0];
  __syncthreads();  // the next reduction overwrites the values
  return all;
}

struct Larger {
  template <class A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return fmax(a, b);
  }
};

// The three passes of v0 by all threads of a block, which walk along the row side by side. reduce(own, identity, op)
// combines a value of each thread.
template <class T, class A, class Reduce>
__device__ __forceinline__ void three_passes(const T* in, T* out, int64_t d, bool logarithm, Reduce&& reduce) {
  A maximum = -static_cast<A>(INFINITY), sum = 0;
  for (int64_t i = threadIdx.x; i < d; i += blockDim.x) maximum = fmax(maximum, static_cast<A>(to_float(in[i])));
  maximum = reduce(maximum, -static_cast<A>(INFINITY), Larger{});
  for (int64_t i = threadIdx.x; i < d; i += blockDim.x) sum += exp(static_cast<A>(to_float(in[i])) - maximum);
  sum = reduce(sum, A{0}, Add{});
  for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
    const A distance = static_cast<A>(to_float(in[i])) - maximum;
    out[i] = round_to<T>(logarithm ? distance - log(sum) : exp(distance) / sum);
  }
}

template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kMostThreads)
    softmax_cuda_v0a_block_per_row_kernel(const T* x, T* y, int64_t n, int64_t d, int64_t x_row_stride,
                                          bool logarithm) {
  __shared__ A values[kMostThreads];
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x)
    three_passes<T, A>(x + row * x_row_stride, y + row * d, d, logarithm,
                       [&](A own, A, auto op) { return tree_reduce(values, own, op); });
}

template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kMostThreads)
    softmax_cuda_v0b_warp_shuffles_kernel(const T* x, T* y, int64_t n, int64_t d, int64_t x_row_stride,
                                          bool logarithm) {
  __shared__ typename BlockReduction<A>::Scratch scratch;
  BlockReduction<A> block(scratch);
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x)
    three_passes<T, A>(x + row * x_row_stride, y + row * d, d, logarithm,
                       [&](A own, A identity, auto op) { return block.reduce(own, identity, op); });
}

// One pass finds maximum and sum, a second writes the results. A thread has `kLoads` loads in flight.
template <int kLoads, class T, class A>
__device__ __forceinline__ void two_passes(const T* in, T* out, int64_t d, bool logarithm,
                                           BlockReduction<MaxSum<A>>& block) {
  LongMaxSum<A> own;
  for (int64_t i = threadIdx.x; i < d; i += int64_t{kLoads} * blockDim.x) {
    A values[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int64_t at = i + int64_t{load} * blockDim.x;
      values[load] = at < d ? static_cast<A>(to_float(in[at])) : -static_cast<A>(INFINITY);
    }
    own.template add<A>(values);
  }
  const MaxSum<A> all = block.reduce(own.value(), nothing<A>(), MergeMaxSum{});
  const A rest = log(all.sum);
  for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
    const A distance = static_cast<A>(to_float(in[i])) - all.maximum;
    out[i] = round_to<T>(logarithm ? distance - rest : exp(distance) / all.sum);
  }
}

template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kMostThreads)
    softmax_cuda_v1_online_kernel(const T* x, T* y, int64_t n, int64_t d, int64_t x_row_stride, bool logarithm) {
  __shared__ typename BlockReduction<MaxSum<A>>::Scratch scratch;
  BlockReduction<MaxSum<A>> block(scratch);
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x)
    two_passes<1>(x + row * x_row_stride, y + row * d, d, logarithm, block);
}

template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kMostThreads)
    softmax_cuda_v1a_four_loads_kernel(const T* x, T* y, int64_t n, int64_t d, int64_t x_row_stride, bool logarithm) {
  __shared__ typename BlockReduction<MaxSum<A>>::Scratch scratch;
  BlockReduction<MaxSum<A>> block(scratch);
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x)
    two_passes<4>(x + row * x_row_stride, y + row * d, d, logarithm, block);
}

// Rows of any width, some at a time: they are adjacent in memory, so whole vectors bring them to shared memory and
// back. There, `blockDim.x` lanes work on each row, with up to kHeld elements of it each.
template <class T, int kHeld>
__global__ void __launch_bounds__(kThreads)
    softmax_cuda_v1b_staged_kernel(const T* x, T* y, int64_t n, int d, int rows_of_block, bool logarithm) {
  extern __shared__ __align__(16) float staged[];
  constexpr int kWidth = kVectorWidth<T>;
  const int thread = threadIdx.y * blockDim.x + threadIdx.x, lanes = blockDim.x;
  for (int64_t first = int64_t{blockIdx.x} * rows_of_block; first < n; first += int64_t{gridDim.x} * rows_of_block) {
    const int rows = static_cast<int>(min(int64_t{rows_of_block}, n - first)), count = rows * d;
    const int whole = count / kWidth * kWidth;  // elements in whole vectors
    const T* from = x + first * d;
    T* to = y + first * d;
#pragma unroll 4
    for (int i = thread * kWidth; i < whole; i += kThreads * kWidth)
      store_vector(staged + i, to_float(load_vector<kWidth, CachePolicy::kStreaming>(from + i)));
    for (int i = whole + thread; i < count; i += kThreads) staged[i] = to_float(from[i]);
    __syncthreads();

    for (int begin = 0; begin < rows; begin += blockDim.y) {
      const int row = begin + threadIdx.y, width = row < rows ? d : 0;
      float* own = staged + row * d + threadIdx.x;
      float held[kHeld], maximum = -INFINITY, sum = 0;
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        held[i] = threadIdx.x + i * lanes < width ? own[i * lanes] : -INFINITY;
        maximum = fmaxf(maximum, held[i]);
      }
      const float shift = finite_shift(warp_reduce(maximum, Larger{}, lanes));
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        held[i] -= shift;
        const float exponential = exp_as<T>(held[i]);
        sum += exponential;
        if (!logarithm) held[i] = exponential;
      }
      sum = warp_reduce(sum, Add{}, lanes);
      const float scale = 1.0f / sum, rest = logf(sum);
#pragma unroll
      for (int i = 0; i < kHeld; ++i)
        if (threadIdx.x + i * lanes < width) own[i * lanes] = logarithm ? held[i] - rest : held[i] * scale;
    }
    __syncthreads();

    for (int i = thread * kWidth; i < whole; i += kThreads * kWidth)
      store_vector<CachePolicy::kStreaming>(to + i, from_float<T>(load_vector<kWidth>(staged + i)));
    for (int i = whole + thread; i < count; i += kThreads) to[i] = from_float<T>(staged[i]);
    __syncthreads();
  }
}

template <class T>
void launch_block_per_row(void (*kernel)(const T*, T*, int64_t, int64_t, int64_t, bool), const SoftmaxArgs& args,
                          Queue& queue) {
  queue.launch(kernel, {grid_for(args.n), row_threads(args.d)}, static_cast<const T*>(args.x), static_cast<T*>(args.y),
               args.n, args.d, args.x_row_stride, args.logarithm);
}

}  // namespace

void softmax_cuda_v0_reference(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(softmax_cuda_v0_reference_kernel<T>, {grid_for(args.n, 128), 128}, static_cast<const T*>(args.x),
                 static_cast<T*>(args.y), args.n, args.d, args.x_row_stride, args.logarithm);
  });
}

void softmax_cuda_v0a_block_per_row(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    launch_block_per_row(softmax_cuda_v0a_block_per_row_kernel<cuda_type_t<Element>>, args, queue);
  });
}

void softmax_cuda_v0b_warp_shuffles(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    launch_block_per_row(softmax_cuda_v0b_warp_shuffles_kernel<cuda_type_t<Element>>, args, queue);
  });
}

void softmax_cuda_v1_online(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    launch_block_per_row(softmax_cuda_v1_online_kernel<cuda_type_t<Element>>, args, queue);
  });
}

void softmax_cuda_v1a_four_loads(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    launch_block_per_row(softmax_cuda_v1a_four_loads_kernel<cuda_type_t<Element>>, args, queue);
  });
}

void softmax_cuda_v1b_staged(const SoftmaxArgs& args, Queue& queue) {
  const int64_t rows = softmax_staged_rows(args);
  const int lanes = softmax_staged_lanes(args);
  const auto launch = [&]<int kHeld>() {
    dispatch_tile_type(args.dtype, [&]<class T>() {
      queue.launch(softmax_cuda_v1b_staged_kernel<T, kHeld>,
                   {grid_for(args.n, rows), {lanes, kThreads / lanes}, rows * args.d * 4},
                   static_cast<const T*>(args.x), static_cast<T*>(args.y), args.n, static_cast<int>(args.d),
                   static_cast<int>(rows), args.logarithm);
    });
  };
  const int64_t held = (args.d + lanes - 1) / lanes;
  if (held <= 4) return launch.template operator()<4>();
  if (held <= 16) return launch.template operator()<16>();
  if (held <= 32) return launch.template operator()<32>();
  launch.template operator()<48>();
}

}  // namespace rooflab::kernels
