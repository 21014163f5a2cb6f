// Elementwise ops whose operands are converted on their way in, or whose results are on their way out. Dtypes and ops
// are found at run time, so there is one kernel for each type that is computed in, not one for each pair of dtypes.
#include "kernels/elementwise/elementwise_cuda.cuh"

namespace rooflab::kernels {
namespace {

// An element as an element of `dtype` holds it.
template <class Compute, class T>
__device__ __forceinline__ Compute converted(T value, DType dtype) {
  if constexpr (std::is_same_v<Compute, float>) {
    if (dtype == DType::kFloat16) return widen(narrow<__half>(widen(value)));
    if (dtype == DType::kBFloat16) return widen(narrow<__nv_bfloat16>(widen(value)));
  }
  return convert<Compute>(widen(value));
}

// The loads come before the conversions, so that all of them are under way at once.
template <class Compute, int kCount, int kArrays>
__device__ __forceinline__ void load_converted(const ElementwiseOperand& operand, DType dtype,
                                               const int64_t (&offsets)[kCount][kArrays], int k,
                                               Compute (&elements)[kCount]) {
  if (operand.data == nullptr) {
#pragma unroll
    for (int u = 0; u < kCount; ++u) elements[u] = scalar_as<Compute>(operand.scalar);
    return;
  }
  with_type(operand.dtype, [&]<class Element>(Element) {
    using T = cuda_type_t<Element>;
    T raw[kCount];
#pragma unroll
    for (int u = 0; u < kCount; ++u) raw[u] = static_cast<const T*>(operand.data)[offsets[u][k + 1]];
#pragma unroll
    for (int u = 0; u < kCount; ++u) elements[u] = converted<Compute>(raw[u], dtype);
  });
}

template <class Compute, int kCount>
__device__ __forceinline__ void evaluate_mixed(const ElementwiseLaunch& launch, const Compute (&a)[kCount],
                                               const Compute (&b)[kCount], const Compute (&c)[kCount],
                                               Compute (&out)[kCount]) {
  using enum ElementwiseOp;
  if (launch.args.op == kWhere || is_comparison(launch.args.op)) {
#pragma unroll
    for (int u = 0; u < kCount; ++u)
      out[u] = launch.args.op == kWhere ? (a[u] != Compute(0) ? b[u] : c[u])
                                        : static_cast<Compute>(holds(launch.outcomes, a[u], b[u]));
    return;
  }
  dispatch_arithmetic(launch.args.op, [&]<ElementwiseOp kOp>() {
    if constexpr (takes<Compute>(kOp)) {
#pragma unroll
      for (int u = 0; u < kCount; ++u) out[u] = evaluate<kOp>(a[u], info(kOp).arity > 1 ? b[u] : a[u], c[u]);
    }
  });
}

// One thread computes kElementwiseUnroll elements of out, a block's width apart.
template <class Compute>
__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise_cuda_v3_mixed_kernel(const __grid_constant__ ElementwiseLaunch launch) {
  let_next_kernel_come();
  constexpr int kCount = kElementwiseUnroll;
  const ElementwiseArgs& args = launch.args;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kElementwiseThreads * kCount + threadIdx.x;
  int64_t indices[kCount], offsets[kCount][4];
#pragma unroll
  for (int u = 0; u < kCount; ++u) indices[u] = min(begin + u * kElementwiseThreads, args.count - 1);
  const int64_t* strides[4] = {args.out_strides, args.inputs[0].strides, args.inputs[1].strides,
                               args.inputs[2].strides};
  locate(launch, indices, strides, offsets);
  wait_for_previous_kernel();

  const bool is_where = args.op == ElementwiseOp::kWhere;
  Compute a[kCount], b[kCount] = {}, c[kCount] = {}, out[kCount] = {};
  load_converted(args.inputs[0], is_where ? DType::kBool : args.dtype, offsets, 0, a);
  if (arity(args.op) > 1) load_converted(args.inputs[1], args.dtype, offsets, 1, b);
  if (arity(args.op) > 2) load_converted(args.inputs[2], args.dtype, offsets, 2, c);
  evaluate_mixed(launch, a, b, c, out);
  with_type(args.out_dtype, [&]<class Element>(Element) {
    using T = cuda_type_t<Element>;
#pragma unroll
    for (int u = 0; u < kCount; ++u)
      if (begin + u * kElementwiseThreads < args.count) static_cast<T*>(args.out)[offsets[u][0]] = narrow<T>(out[u]);
  });
}

}  // namespace

void elementwise_cuda_v3_mixed(const ElementwiseArgs& args, Queue& queue) {
  const ElementwiseLaunch launch = prepared(args);
  const int64_t per_block = int64_t{kElementwiseThreads} * kElementwiseUnroll;
  const auto start = [&](auto kernel) {
    const LaunchShape shape{(args.count + per_block - 1) / per_block, kElementwiseThreads};
    queue.launch(kernel, early(shape, queue), launch);
  };
  if (!is_floating(args.dtype)) return start(elementwise_cuda_v3_mixed_kernel<int64_t>);
  if (args.dtype == DType::kFloat64) return start(elementwise_cuda_v3_mixed_kernel<double>);
  return start(elementwise_cuda_v3_mixed_kernel<float>);
}

}  // namespace rooflab::kernels
