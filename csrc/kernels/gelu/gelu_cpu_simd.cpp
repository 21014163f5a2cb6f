// GeLU on the CPU with SIMD: blocks of x pass through L1 (kernels/elementwise/staged.h).
#include "kernels/elementwise/staged.h"
#include "kernels/gelu/gelu.h"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// 1 / x for 1 <= x <= 2^126, to 2 ulp: the CPU's estimate, refined once. A division would take longer than all the
// rest.
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
        const NativeFloat power = (NativeFloat)((NativeUint)p + ((NativeUint)shifted << 23));
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

// A cache line of results, computed in registers and stored past the caches.
template <class T>
ROOFLAB_INLINE void gelu_line(const T* x, T* y) {
  constexpr int kLanes = SimdOf<T>::kLanes;
  alignas(64) T line[64 / sizeof(T)];
  for (int i = 0; i < static_cast<int>(64 / sizeof(T)); i += kLanes) store(line + i, gelu(load(x + i)));
  stream_line(y, load(reinterpret_cast<const float*>(line)));
}

// A thread walks four parts of its range in turn, a chunk (of lines) at a time, and asks for the next chunk of each as
// it goes: a single walk leaves the memory idle while it computes (measured: 27 GB/s against 53 on two cores).
constexpr int64_t kWalks = 4, kChunk = 16;

template <class T>
void gelu_lines(const T* x, T* y, int64_t first, int64_t last) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t part = (last - first) / kWalks;
  for (int64_t begin = 0; begin < part; begin += kChunk) {
    const int64_t end = begin + kChunk < part ? begin + kChunk : part;
    for (int64_t p = 0; p < kWalks; ++p)
      for (int64_t i = first + p * part + begin; i < first + p * part + end; ++i) {
        _mm_prefetch(reinterpret_cast<const char*>(x + (i + kChunk) * kLine), _MM_HINT_T0);
        gelu_line(x + i * kLine, y + i * kLine);
      }
  }
  for (int64_t i = first + kWalks * part; i < last; ++i) gelu_line(x + i * kLine, y + i * kLine);
  _mm_sfence();
}

template <class T>
void stream_gelu(const GeluArgs& args, Queue& queue) {
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t lines = args.count / kLine, rest = args.count - lines * kLine;
  // One long part for each thread: walks less than 10 MB apart get in each other's way (measured: 15 % slower).
  const int64_t grain = kParallelGrain / kLine, share = lines / queue.target().threads;
  queue.parallel(lines, share > grain ? share : grain,
                 [&](int64_t first, int64_t last, int) { gelu_lines(x, y, first, last); });
  for (int64_t i = lines * kLine; i < lines * kLine + rest; i += SimdOf<T>::kLanes) {
    const int64_t left = args.count - i, n = left < SimdOf<T>::kLanes ? left : SimdOf<T>::kLanes;
    store(y + i, gelu(load(x + i, n)), n);
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
  switch (args.dtype) {
    case DType::kFloat64: return stream_gelu<double>(args, queue);
    case DType::kFloat32: return stream_gelu<float>(args, queue);
    case DType::kFloat16: return stream_gelu<Half>(args, queue);
    default: return stream_gelu<BFloat16>(args, queue);
  }
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
