// scatter on the GPU: see scatter.h for what it computes.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/out_of_range.cuh"
#include "kernels/common/strided.h"
#include "kernels/gather/gather_strips.cuh"
#include "kernels/scatter/scatter.h"

namespace rooflab::kernels {
namespace {

// An element of the values: its number, or -1 past the end; the offset of its value; and where it goes to in y, or -1
// if its index is out of range.
struct Element {
  int64_t i, from, to, index;
};

// Calls f(elements) for kCount elements of the thread at a time, so that as many of their indices are in flight.
template <int kCount, class F>
__device__ __forceinline__ void for_each_elements(const ScatterArgs& args, F&& f) {
  const int64_t step = gridDim.x * int64_t{kThreads * kCount};
  const int64_t first = blockIdx.x * int64_t{kThreads * kCount} + threadIdx.x;
  for (int64_t begin = first; begin < args.at.count; begin += step) {
    Element elements[kCount];
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      Element& element = elements[u];
      const int64_t i = begin + u * kThreads;
      element = {-1, 0, 0, -1};
      if (i >= args.at.count) continue;
      int64_t at = 0;
      for_each_digit_in_turn(i, args.at.ndim, args.at.sizes, [&](int d, int64_t digit) {
        at += digit * args.at.strides[d];
        element.from += digit * args.value_strides[d];
        element.to += digit * args.y_strides[d];
      });
      element.i = i;
      element.index = index_at(args.at, at);
    }
#pragma unroll
    for (Element& element : elements) {
      const bool is_inside = element.index >= 0 && element.index < args.at.limit;
      element.to = is_inside ? element.to + element.index * args.at.step : -1;
    }
    f(elements);
  }
}

// Of `last`, only the places that elements go to are touched: they are cleared first, and then each takes the largest
// number of an element.
template <int kCount>
__global__ void __launch_bounds__(kThreads)
    scatter_cuda_clear_kernel(const __grid_constant__ ScatterArgs args, int* last) {
  overlap_launches();
  for_each_elements<kCount>(args, [&](const Element(&elements)[kCount]) {
#pragma unroll
    for (const Element& element : elements)
      if (element.to >= 0) last[element.to] = -1;
  });
}

template <int kCount>
__global__ void __launch_bounds__(kThreads)
    scatter_cuda_last_kernel(const __grid_constant__ ScatterArgs args, int* last) {
  overlap_launches();
  for_each_elements<kCount>(args, [&](const Element(&elements)[kCount]) {
#pragma unroll
    for (const Element& element : elements)
      if (element.to >= 0) atomicMax(&last[element.to], static_cast<int>(element.i));
  });
}

// `last` is null where all values are alike.
template <int kCount, class Word>
__device__ __forceinline__ void write_elements(const ScatterArgs& args, const int* last) {
  overlap_launches();
  for_each_elements<kCount>(args, [&](const Element(&elements)[kCount]) {
    bool stays[kCount];
    Word values[kCount];
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      const Element& element = elements[u];
      stays[u] = element.to >= 0 && (last == nullptr || last[element.to] == element.i);
      if (element.i >= 0 && element.to < 0) report(args.at.report, out_of_range(args.at, element.index));
    }
#pragma unroll
    for (int u = 0; u < kCount; ++u)
      if (stays[u]) values[u] = static_cast<const Word*>(args.values)[elements[u].from];
#pragma unroll
    for (int u = 0; u < kCount; ++u)
      if (stays[u]) static_cast<Word*>(args.y)[elements[u].to] = values[u];
  });
}
template <class Word>
__global__ void __launch_bounds__(kThreads)
    scatter_cuda_v0_reference_kernel(const __grid_constant__ ScatterArgs args, const int* last) {
  write_elements<1, Word>(args, last);
}
template <class Word>
__global__ void __launch_bounds__(kThreads)
    scatter_cuda_v1_elements_kernel(const __grid_constant__ ScatterArgs args, const int* last) {
  write_elements<kAtATime, Word>(args, last);
}

template <int kCount>
void launch(const ScatterArgs& args, Queue& queue) {
  const LaunchShape shape = early(a_block_each(blocks_of(args.at.count, kThreads * kCount)), queue);
  int* last = nullptr;
  if (!args.alike) {
    last = queue.scratch<int>(args.places);
    queue.launch(scatter_cuda_clear_kernel<kCount>, shape, args, last);
    queue.launch(scatter_cuda_last_kernel<kCount>, shape, args, last);
  }
  with_word(size_of(args.dtype), [&]<class Word>() {
    if constexpr (sizeof(Word) <= 8)
      queue.launch(kCount == 1 ? scatter_cuda_v0_reference_kernel<Word> : scatter_cuda_v1_elements_kernel<Word>, shape,
                   args, static_cast<const int*>(last));
  });
}

}  // namespace

void scatter_cuda_v0_reference(const ScatterArgs& args, Queue& queue) { launch<1>(args, queue); }

void scatter_cuda_v1_elements(const ScatterArgs& args, Queue& queue) { launch<kAtATime>(args, queue); }

}  // namespace rooflab::kernels
