// scatter on the GPU: see scatter.h for what it computes.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/out_of_range.cuh"
#include "kernels/common/strided.h"
#include "kernels/gather/gather_strips.cuh"
#include "kernels/scatter/scatter.h"

namespace rooflab::kernels {
namespace {

// Calls f(i, from, to, number) for the thread's elements: the offset of its value, where it goes to in y, or -1 if its
// number is out of range, and the number.
template <class F>
__device__ __forceinline__ void for_each_element(const ScatterArgs& args, F&& f) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < args.at.count; i += threads) {
    int64_t at = 0, from = 0, to = 0;
    for_each_digit_in_turn(i, args.at.ndim, args.at.sizes, [&](int d, int64_t digit) {
      at += digit * args.at.strides[d];
      from += digit * args.value_strides[d];
      to += digit * args.y_strides[d];
    });
    const int64_t number = index_at(args.at, at);
    const bool is_inside = number >= 0 && number < args.at.limit;
    f(i, from, is_inside ? to + number * args.at.step : -1, number);
  }
}

template <class Word>
__device__ __forceinline__ Word value_at(const ScatterArgs& args, int64_t from) {
  return args.values ? static_cast<const Word*>(args.values)[from] : static_cast<Word>(args.number);
}

// Of `last`, only the places that elements go to are touched: they are cleared first, and then each takes the largest
// number of an element.
__global__ void scatter_cuda_clear_kernel(const __grid_constant__ ScatterArgs args, int* last) {
  overlap_launches();
  for_each_element(args, [&](int64_t, int64_t, int64_t to, int64_t) {
    if (to >= 0) last[to] = -1;
  });
}

__global__ void scatter_cuda_last_kernel(const __grid_constant__ ScatterArgs args, int* last) {
  overlap_launches();
  for_each_element(args, [&](int64_t i, int64_t, int64_t to, int64_t) {
    if (to >= 0) atomicMax(&last[to], static_cast<int>(i));
  });
}

// `last` is null where any order will do.
template <class Word>
__global__ void scatter_cuda_v0_reference_kernel(const __grid_constant__ ScatterArgs args, const int* last) {
  overlap_launches();
  for_each_element(args, [&](int64_t i, int64_t from, int64_t to, int64_t number) {
    if (to < 0)
      report(args.at.report, out_of_range(args.at, number));
    else if (last == nullptr || last[to] == i)
      static_cast<Word*>(args.y)[to] = value_at<Word>(args, from);
  });
}

// A block reads the numbers of its lines three times, and all but the first time they are in its cache: it clears the
// places that they name, finds the last element of each, and writes those.
template <class Word>
__global__ void __launch_bounds__(kThreads)
    scatter_cuda_v1_lines_kernel(const __grid_constant__ ScatterArgs args, const __grid_constant__ ScatterPlan plan) {
  extern __shared__ int last[];  // (lines, limit); turned if across
  overlap_launches();
  const int threads = kThreads / plan.lines;  // of a line
  const int own = plan.across ? threadIdx.x % plan.lines : threadIdx.x / threads;
  const int first = plan.across ? threadIdx.x / plan.lines : threadIdx.x % threads;
  const int64_t length = args.at.sizes[plan.dim], line = blockIdx.x * int64_t{plan.lines} + own;
  const int64_t count = line < args.at.count / length ? length : 0;
  const int64_t place_step = plan.across ? plan.lines : 1;
  int* places = last + (plan.across ? own : own * args.at.limit);

  int64_t at = 0, from = 0, to = 0, rest = line;
#pragma unroll 1
  for (int d = args.at.ndim - 1; d >= 0; --d) {
    if (d == plan.dim) continue;
    int64_t digit;
    rest = divide(rest, args.at.sizes[d], digit);
    at += digit * args.at.strides[d];
    from += digit * args.value_strides[d];
    to += digit * args.y_strides[d];
  }
  const auto for_each_number = [&](auto&& f) {
#pragma unroll 4
    for (int64_t j = first; j < count; j += threads) {
      const int64_t number = index_at(args.at, at + j * args.at.strides[plan.dim]);
      f(j, number, number >= 0 && number < args.at.limit);
    }
    __syncthreads();
  };
  for_each_number([&](int64_t, int64_t number, bool is_inside) {
    if (is_inside) places[number * place_step] = -1;
  });
  for_each_number([&](int64_t j, int64_t number, bool is_inside) {
    if (is_inside) atomicMax(&places[number * place_step], static_cast<int>(j));
  });
  for_each_number([&](int64_t j, int64_t number, bool is_inside) {
    if (!is_inside)
      report(args.at.report, out_of_range(args.at, number));
    else if (places[number * place_step] == j)
      static_cast<Word*>(args.y)[to + number * args.at.step] =
          value_at<Word>(args, from + j * args.value_strides[plan.dim]);
  });
}

}  // namespace

void scatter_cuda_v1_lines(const ScatterArgs& args, Queue& queue) {
  const ScatterPlan plan = scatter_plan(args);
  const LaunchShape shape{
      .grid = plan.blocks, .block = kThreads, .shared_bytes = plan.lines * args.at.limit * int64_t{sizeof(int)}};
  with_word(size_of(args.dtype), [&]<class Word>() {
    if constexpr (sizeof(Word) <= 8) queue.launch(scatter_cuda_v1_lines_kernel<Word>, early(shape, queue), args, plan);
  });
}

void scatter_cuda_v0_reference(const ScatterArgs& args, Queue& queue) {
  const LaunchShape shape = early(a_thread_each(args.at.count), queue);
  int* last = nullptr;
  if (!args.in_any_order) {
    last = queue.scratch<int>(args.places);
    queue.launch(scatter_cuda_clear_kernel, shape, args, last);
    queue.launch(scatter_cuda_last_kernel, shape, args, last);
  }
  with_word(size_of(args.dtype), [&]<class Word>() {
    if constexpr (sizeof(Word) <= 8)
      queue.launch(scatter_cuda_v0_reference_kernel<Word>, shape, args, static_cast<const int*>(last));
  });
}

}  // namespace rooflab::kernels
