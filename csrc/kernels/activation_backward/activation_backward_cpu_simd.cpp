// The SIMD rung of activation_backward on the CPU: see activation_backward.h for what it computes.
#include "kernels/activation_backward/activation_backward.h"
#include "kernels/common/float_element_simd.h"
#include "kernels/common/row_simd.h"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

struct ValueAndSlope {
  F32x16 value, slope;
};

// 1 - s is computed as exp(-u) s, because the difference would cancel where s is nearly 1.
template <Activation kActivation>
ROOFLAB_INLINE ValueAndSlope activate(F32x16 a) {
  constexpr ActivationRange kRange = kActivation == Activation::kGelu ? kGeluRange : kSiluRange;
  const F32x16 above = max(a, F32x16(kRange.low)), x = min(above, F32x16(kRange.high));
  F32x16 u = x, slope_of_u = 1;
  if constexpr (kActivation == Activation::kGelu) {
    constexpr float kScale = static_cast<float>(2 * kGeluScale),
                    kCube = static_cast<float>(2 * kGeluScale * kGeluCubic);
    const F32x16 cube = kCube * (x * x);
    u = x * (kScale + cube);
    slope_of_u = kScale + 3.0f * cube;
  }
  const F32x16 e = exp(-u), s = 1.0f / (1.0f + e);
  return {above * s, s * (1.0f + x * (e * s) * slope_of_u)};
}

constexpr int64_t kChunk = 2048;  // elements that pass through L1 at a time

template <class T, Activation kActivation>
ROOFLAB_INLINE void chunk_backward(const T* dy, const T* a, const T* b, T* da, T* db, int64_t count, bool streaming) {
  if (!b)
    return write_row(
        da, count, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
          return load_lanes(dy + i, lanes) * activate<kActivation>(load_lanes(a + i, lanes)).slope;
        });
  alignas(64) float of_a[kChunk], of_b[kChunk];
  for (int64_t i = 0; i < count; i += F32x16::kLanes) {
    const int64_t lanes = count - i < F32x16::kLanes ? count - i : F32x16::kLanes;
    const F32x16 slope = load_lanes(dy + i, lanes);
    const ValueAndSlope active = activate<kActivation>(load_lanes(a + i, lanes));
    store<float>(of_a + i, slope * load_lanes(b + i, lanes) * active.slope);
    store<float>(of_b + i, slope * active.value);
  }
  const auto write = [&](T * to, const float* from) __attribute__((always_inline)) {
    write_row(
        to, count, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
          return load_lanes(from + i, lanes);
        });
  };
  write(da, of_a);
  write(db, of_b);
}

template <class T, Activation kActivation>
ROOFLAB_INLINE void backward(const ActivationBackwardArgs& args, Queue& queue) {
  const int64_t chunks = (args.d + kChunk - 1) / kChunk, size = args.d < kChunk ? args.d : kChunk;
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  queue.parallel(args.n * chunks, 1 + 32768 / size, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / chunks, at = i % chunks * kChunk, left = args.d - at;
      const T* dy = static_cast<const T*>(args.dy) + row * args.dy_row_stride + at;
      const T* a = static_cast<const T*>(args.a) + row * args.a_row_stride + at;
      const T* b = args.b ? static_cast<const T*>(args.b) + row * args.b_row_stride + at : nullptr;
      T* da = static_cast<T*>(args.da) + row * args.d + at;
      T* db = args.db ? static_cast<T*>(args.db) + row * args.d + at : nullptr;
      chunk_backward<T, kActivation>(dy, a, b, da, db, left < kChunk ? left : kChunk, streaming);
    }
    fence();
  });
}

}  // namespace

void activation_backward_cpu_v1_simd(const ActivationBackwardArgs& args, Queue& queue) {
  with_float_element(args.dtype, [&]<class T>() {
    if (args.activation == Activation::kGelu)
      backward<T, Activation::kGelu>(args, queue);
    else
      backward<T, Activation::kSilu>(args, queue);
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
