// GeLU on the CPU with SIMD: blocks of x pass through L1 (kernels/elementwise/staged.h).
#include "kernels/common/parallel.h"
#include "kernels/elementwise/staged.h"
#include "kernels/gelu/gelu.h"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// 1 / x for 1 <= x <= 2^126, to 2 ulp: the CPU's estimate, refined once. A division would take longer than all the rest.
ROOFLAB_INLINE NativeFloat reciprocal(NativeFloat x) {
#if defined(__AVX512F__)
  const NativeFloat estimate = (NativeFloat)_mm512_maskz_rcp14_ps(0xffff, (__m512)x);
#elif defined(__AVX2__)
  const NativeFloat estimate = (NativeFloat)_mm256_rcp_ps((__m256)x);
#else
  const NativeFloat estimate = (NativeFloat)_mm_rcp_ps((__m128)x);
#endif
  return native_fma(estimate, native_fma(-x, estimate, NativeFloat{} + 1.0f), estimate);
}

// exp(-2u) as 2^t = 2^n 2^f, |f| <= 1/2, with a polynomial fitted to 2^f; n is added to the exponent's bits.
ROOFLAB_INLINE F32x16 gelu(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) {
        constexpr double kLog2E = 1.44269504088896340736;
        const NativeFloat zero = {},
                          shifter = zero + 0x1.8p23f;  // adding it rounds to an integer, held in the low bits
        const NativeFloat linear = zero + static_cast<float>(-2 * kGeluScale * kLog2E);
        const NativeFloat cubic = zero + static_cast<float>(-2 * kGeluScale * kGeluCubic * kLog2E);
        const NativeFloat t = v * native_fma(cubic, v * v, linear);
        const NativeFloat exponent = t < zero - 126.0f ? zero - 126.0f : t;
        const NativeFloat shifted = exponent + shifter, f = exponent - (shifted - shifter);
        NativeFloat p = zero + 0.0013264727f;
        p = native_fma(p, f, zero + 0.009671513f);
        p = native_fma(p, f, zero + 0.055507336f);
        p = native_fma(p, f, zero + 0.24022242f);
        p = native_fma(p, f, zero + 0.693147f);
        p = native_fma(p, f, zero + 1.0f);
        const NativeFloat power = (NativeFloat)((NativeInt)p + ((NativeInt)shifted << 23));
        const NativeFloat sigmoid = reciprocal(1.0f + power);
        return v * (t < zero + 126.0f ? sigmoid : zero);  // beyond, it is 0 but for NaN, and -inf becomes NaN
      });
}
ROOFLAB_INLINE F64x8 gelu(F64x8 x) {
  return x / (1.0 + exp(x * fma(F64x8(-2 * kGeluScale * kGeluCubic), x * x, F64x8(-2 * kGeluScale))));
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
