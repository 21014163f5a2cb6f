// GeLU on the CPU with SIMD: blocks of x pass through L1 (kernels/elementwise/staged.h).
#include "kernels/elementwise/staged.h"
#include "kernels/gelu/gelu.h"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// exp(-2u) as 2^t, which is inf from t = 128 on. Numbers below kLowest, where t is 128.2, are taken for it: Exp2 takes
// no larger t, and -inf gives 0. The division overlaps with the polynomial. That was measured to be faster than the
// CPU's estimate of 1 / x with one refinement.
constexpr float kLowest = -10.067f;
ROOFLAB_INLINE F32x16 gelu(F32x16 x, const Exp2& exp2) {
  return map(
      x, [&](NativeFloat v) __attribute__((always_inline)) {
        constexpr double kLog2E = 1.44269504088896340736;
        const NativeFloat zero = {}, lowest = zero + kLowest;
        const NativeFloat linear = zero + static_cast<float>(-2 * kGeluScale * kLog2E);
        const NativeFloat cubic = zero + static_cast<float>(-2 * kGeluScale * kGeluCubic * kLog2E);
        v = v < lowest ? lowest : v;
        return v / (1.0f + exp2(v * native_fma(cubic, v * v, linear)));
      });
}
ROOFLAB_INLINE F64x8 gelu(F64x8 x, const Exp2&) {
  x = select(x < double{kGeluLowest}, F64x8(kGeluLowest), x);
  return x / (1.0 + exp(x * fma(F64x8(-2 * kGeluScale * kGeluCubic), x * x, F64x8(-2 * kGeluScale))));
}

template <class S>
void gelu_block(const void* from, void* to, int64_t n) {
  const S* x = static_cast<const S*>(from);
  S* y = static_cast<S*>(to);
  constexpr int kLanes = Simd<S>::kLanes;
  const Exp2 exp2;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, gelu(load(x + i), exp2));
  if (i < n) store(y + i, gelu(load(x + i, n - i), exp2), n - i);
}

template <class T>
void stream_gelu(const GeluArgs& args, Queue& queue) {
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);
  const int64_t lines = args.count / kLine<T>;
  parallel_lines(
      queue, lines, [&](int64_t first, int64_t last) __attribute__((always_inline)) {
        const Exp2 exp2;
        for (int64_t line = first * kLine<T>; line < last * kLine<T>; line += kLine<T>) {
          prefetch_chunk(x + line);
          write_line(
              y + line, true, [&](int64_t i) __attribute__((always_inline)) { return gelu(load(x + line + i), exp2); });
        }
      });
  for (int64_t i = lines * kLine<T>; i < args.count; i += SimdOf<T>::kLanes) {
    const int64_t left = args.count - i, n = left < SimdOf<T>::kLanes ? left : SimdOf<T>::kLanes;
    store(y + i, gelu(load(x + i, n), Exp2()), n);
  }
}

}  // namespace

void gelu_cpu_v1_simd(const GeluArgs& args, Queue& queue) {
  constexpr int64_t kDense[1] = {1};
  const StridedArray from{static_cast<char*>(const_cast<void*>(args.x)), args.dtype, args.ndim, args.sizes,
                          args.strides};
  const StridedArray to{static_cast<char*>(args.y), args.dtype, 1, &args.count, kDense};
  const auto block = args.dtype == DType::kFloat64 ? gelu_block<double> : gelu_block<float>;
  queue.parallel(args.count, kParallelGrain, [&](int64_t first, int64_t last, int) {
    BlockReader x;
    BlockWriter y(to, SmallFloats::kAsFloat, false);
    x.open(from, SmallFloats::kAsFloat);
    for (int64_t begin = first; begin < last; begin += kBlock) {
      const int64_t n = last - begin < kBlock ? last - begin : kBlock;
      block(x.read(begin, n), y.target(begin), n);
      y.commit(begin, n);
    }
  });
}

void gelu_cpu_v2_streaming(const GeluArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() { stream_gelu<T>(args, queue); });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
