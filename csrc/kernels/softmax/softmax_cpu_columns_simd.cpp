// The rung of softmax on the CPU for rows that are columns: see softmax.h.
#include "kernels/common/columns.h"
#include "kernels/common/max_sum_simd.h"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Neighbouring columns, kVectors vectors of them, of which the last counts `lanes`.
template <class T, int kVectors>
ROOFLAB_INLINE void softmax_columns(const SoftmaxArgs& args, const T* x, T* y, int64_t lanes) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes, kKept = kSoftmaxCpuScratch / (kVectors * kLanes * sizeof(S));
  alignas(64) S exponentials[kKept * kVectors * kLanes];
  const bool keeps = !args.logarithm && args.d <= kKept;
  const auto element = [&](int64_t k, int v) __attribute__((always_inline)) {
    return load_lanes(x + k * args.step + v * kLanes, lanes);
  };
  SimdOf<T> maximum[kVectors];
  for (int v = 0; v < kVectors; ++v) maximum[v] = -S(__builtin_inf());
  for (int64_t k = 0; k < args.d; ++k)
    for (int v = 0; v < kVectors; ++v) {
      const SimdOf<T> value = element(k, v);
      maximum[v] = select(value > maximum[v], value, maximum[v]);  // a NaN shows up in the sum
    }
  const auto sum = sum_exponentials_of_columns<S, kVectors>(
      0, args.d, maximum, element, [&](int64_t k, int v, SimdOf<T> exponential) __attribute__((always_inline)) {
        if (keeps) store<S>(exponentials + (k * kVectors + v) * kLanes, exponential);
      });
  SimdOf<T> last[kVectors];
  for (int v = 0; v < kVectors; ++v) last[v] = args.logarithm ? log(sum.of[v]) : S(1) / sum.of[v];
  for (int64_t k = 0; k < args.d; ++k)
    for (int v = 0; v < kVectors; ++v) {
      SimdOf<T> result;
      if (keeps)
        result = load<S>(exponentials + (k * kVectors + v) * kLanes) * last[v];
      else if (args.logarithm)
        result = element(k, v) - maximum[v] - last[v];
      else
        result = exp(element(k, v) - maximum[v]) * last[v];
      T* to = y + k * args.inner + v * kLanes;
      lanes == kLanes ? store<T>(to, result) : store<T>(to, result, lanes);
    }
}

}  // namespace

void softmax_cpu_v4_columns(const SoftmaxArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() {
    constexpr int64_t kLanes = SimdOf<T>::kLanes;
    for_columns(queue, args.n / args.inner, args.d, args.inner, [&](int64_t outer, int64_t first, int64_t count) {
      const T* x = static_cast<const T*>(args.columns) + outer * args.outer_stride + first;
      T* y = static_cast<T*>(args.y) + outer * args.d * args.inner + first;
      if (count == kColumns) return softmax_columns<T, kColumns / kLanes>(args, x, y, kLanes);
      for (int64_t c = 0; c < count; c += kLanes) softmax_columns<T, 1>(args, x + c, y + c, smaller(kLanes, count - c));
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
