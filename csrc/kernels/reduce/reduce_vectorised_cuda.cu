// The vectorised CUDA rung of reduce: see reduce.h for what it computes.
#include "kernels/reduce/reduce_columns.cuh"
#include "kernels/reduce/reduce_rows.cuh"

namespace rooflab::kernels {
namespace {

// Blocks that a multiprocessor is to hold at once, which limits the registers of a thread. These were the fastest on an
// H200: with fewer, too few loads are in flight, and with more, too many registers spill.
template <class R>
constexpr int resident_blocks() {
  using Element = typename R::Element;
  if (std::is_same_v<Element, bool>) return 2;
  if (std::is_same_v<typename R::Accumulator, Distances>) return sizeof(Element) == 4 ? 3 : 2;
  return std::is_same_v<typename R::Accumulator, double> || std::is_same_v<Element, __nv_bfloat16> ? 3 : 4;
}

// A row needs fewer registers, because a vector is folded into one number.
template <class R>
constexpr int resident_row_blocks() {
  if (std::is_same_v<typename R::Element, bool>) return 2;
  return sizeof(typename R::Accumulator) > sizeof(float) ? 3 : 4;
}

template <class R>
__global__ void __launch_bounds__(256, resident_row_blocks<R>())
    reduce_cuda_v2_rows_kernel(const typename R::Element* x, typename R::Result* y, typename R::Partial* partial,
                               ReduceArgs args, ReducePlan plan, ReduceEnd result) {
  reduce_rows<R>(x, y, partial, args, plan, result);
}

template <class R, int kWidth>
__global__ void __launch_bounds__(256, resident_blocks<R>())
    reduce_cuda_v2_columns_kernel(const typename R::Element* x, typename R::Result* y, typename R::Partial* partial,
                                  ReduceArgs args, ReducePlan plan, ReduceEnd result) {
  reduce_columns<R, kWidth>(x, y, partial, args, plan, result);
}

template <class T>
void launch_vectorised(const ReduceArgs& args, Queue& queue) {
  const ReducePlan plan = reduce_v2_plan(args);
  dispatch_reduction<T>(args, [&]<class R>() {
    constexpr int kWide = kOfDistances<R> ? 2 : kVectorWidth<T>;
    constexpr int kNarrow = kOfDistances<R> || sizeof(T) >= 4 ? kWide : 4 / static_cast<int>(sizeof(T));
    launch_reduce<R>(plan.along            ? reduce_cuda_v2_rows_kernel<R>
                     : plan.width == kWide ? reduce_cuda_v2_columns_kernel<R, kWide>
                                           : reduce_cuda_v2_columns_kernel<R, kNarrow>,
                     args, plan, queue);
  });
}

}  // namespace

void reduce_cuda_v2_vectorised(const ReduceArgs& args, Queue& queue) {
  if (args.dtype == DType::kBool) return launch_vectorised<bool>(args, queue);
  dispatch_float(args.dtype, "reduce", [&]<class T>() { launch_vectorised<cuda_type_t<T>>(args, queue); });
}

}  // namespace rooflab::kernels
