// GeLU on the CPU with SIMD: blocks of x pass through L1 (kernels/elementwise/staged.h).
#include "kernels/common/parallel.h"
#include "kernels/elementwise/staged.h"
#include "kernels/gelu/gelu.h"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <class S>
ROOFLAB_INLINE Simd<S> gelu(Simd<S> x) {
  const Simd<S> linear = S(-2 * kGeluScale), cubic = S(-2 * kGeluScale * kGeluCubic);
  return x / (S(1) + exp(x * fma(cubic, x * x, linear)));
}

template <class S>
void gelu_block(const void* from, void* to, int64_t n) {
  const S* x = static_cast<const S*>(from);
  S* y = static_cast<S*>(to);
  constexpr int kLanes = Simd<S>::kLanes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, gelu(load(x + i)));
  if (i < n) store(y + i, gelu(load(x + i, n - i)), n - i);
}

void run(const GeluArgs& args, bool streaming) {
  constexpr int64_t kDense[1] = {1};
  const StridedArray from{static_cast<char*>(const_cast<void*>(args.x)), args.dtype, args.ndim, args.sizes,
                          args.strides};
  const StridedArray to{static_cast<char*>(args.y), args.dtype, 1, &args.count, kDense};
  const auto block = args.dtype == DType::kFloat64 ? gelu_block<double> : gelu_block<float>;
  parallel_for(args.count, kParallelGrain, [&](int64_t first, int64_t last) {
    BlockReader x;
    BlockWriter y(to, SmallFloats::kAsFloat, streaming);
    x.open(from, SmallFloats::kAsFloat);
    for (int64_t begin = first; begin < last; begin += kBlock) {
      const int64_t n = last - begin < kBlock ? last - begin : kBlock;
      block(x.read(begin, n), y.target(begin), n);
      y.commit(begin, n);
    }
  });
}

}  // namespace

void gelu_cpu_v1_simd(const GeluArgs& args, Stream) { run(args, false); }

void gelu_cpu_v2_streaming(const GeluArgs& args, Stream) { run(args, true); }

}  // namespace rooflab::kernels::ROOFLAB_ISA
