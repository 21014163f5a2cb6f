// The CUDA rungs of reduce that take any layout and dtype: see reduce.h for what they compute.
#include "kernels/reduce/reduce_columns.cuh"

namespace rooflab::kernels {
namespace {

template <class R>
__global__ void reduce_cuda_v0_reference_kernel(const typename R::Element* x, typename R::Result* y, ReduceArgs args,
                                                ReduceEnd result) {
  using A = std::conditional_t<std::is_integral_v<typename R::Element> || kOfTruth<R>, int64_t, double>;
  const int64_t outputs = args.outer * args.inner, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t output = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; output < outputs; output += threads) {
    const typename R::Element* from =
        x + output / args.inner * args.outer_stride + output % args.inner * args.inner_stride;
    const auto element = [&](int64_t k) -> A {
      if constexpr (kOfTruth<R>)
        return value_in<R>(from[k * args.reduced_stride], 0, 1);
      else
        return accumulated<A>(from[k * args.reduced_stride]);
    };
    if constexpr (std::is_same_v<typename R::Accumulator, Distances>) {
      const double count = static_cast<double>(args.reduced);
      double mean = 0;
      for (int64_t k = 0; k < args.reduced; ++k) mean += element(k) / count;
      Distances distances{};
      for (int64_t k = 0; k < args.reduced; ++k)
        distances = distances + Distances{element(k) - mean, (element(k) - mean) * (element(k) - mean)};
      y[output] = finish<R>(spread_about(mean, distances, count), result);
    } else {
      A value = R::template identity<A>();
      for (int64_t k = 0; k < args.reduced; ++k) value = R{}(value, element(k));
      y[output] = finish<R>(value, result);
    }
  }
}

template <class R>
__global__ void __launch_bounds__(256)
    reduce_cuda_v1_block_tree_kernel(const typename R::Element* x, typename R::Result* y, typename R::Partial* partial,
                                     ReduceArgs args, ReducePlan plan, ReduceEnd result) {
  reduce_columns<R, 1>(x, y, partial, args, plan, result);
}

}  // namespace

void reduce_cuda_v0_reference(const ReduceArgs& args, Queue& queue) {
  const int64_t blocks = std::min<int64_t>((args.outer * args.inner + 127) / 128, INT32_MAX);
  dispatch_all(args.dtype, "reduce", [&]<class T>() {
    dispatch_reduction<cuda_type_t<T>>(args, [&]<class R>() {
      queue.launch(reduce_cuda_v0_reference_kernel<R>, {blocks, 128}, static_cast<const typename R::Element*>(args.x),
                   static_cast<typename R::Result*>(args.y), args, reduce_end(args));
    });
  });
}

void reduce_cuda_v1_block_tree(const ReduceArgs& given, Queue& queue) {
  constexpr int64_t kNarrow = 8;
  ReduceArgs args = given;
  if (args.inner == 1 && args.reduced <= kNarrow) {  // narrow rows lie side by side, as columns do
    std::swap(args.outer, args.inner);
    std::swap(args.outer_stride, args.inner_stride);
  }
  dispatch_all(args.dtype, "reduce", [&]<class T>() {
    dispatch_reduction<cuda_type_t<T>>(args, [&]<class R>() {
      launch_reduce<R>(reduce_cuda_v1_block_tree_kernel<R>, args, reduce_v1_plan(args), queue);
    });
  });
}

}  // namespace rooflab::kernels
