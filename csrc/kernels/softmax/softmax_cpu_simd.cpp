// The SIMD rungs of softmax on the CPU: see softmax.h for what they compute and what was measured.
#include "kernels/common/row_simd.h"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// The sum of exp(x - shift) over a row, each exponential being passed to keep(i, n, vector) besides.
template <class T, class S, class Keep>
ROOFLAB_INLINE S sum_exponentials(const T* x, int64_t d, S shift, Keep keep) {
  return sum_row<T>(
      d, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        const SimdOf<T> exponential = first_lanes(exp(load_lanes(x + i, lanes) - shift), lanes);
        keep(i, lanes, exponential);
        return exponential;
      });
}

}  // namespace

void softmax_cpu_v1_online(const SoftmaxArgs& args, Queue& queue) {
  if (args.d == 0) return;
  constexpr int64_t kBlock = 2048;  // elements that stay in L1 between their maximum and their exponentials
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    for_each_row(queue, args.n, args.d, [&](int64_t n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      S maximum = -__builtin_inf(), sum = 0;
      for (int64_t begin = 0; begin < args.d; begin += kBlock) {
        const int64_t size = args.d - begin < kBlock ? args.d - begin : kBlock;
        const S last = maximum, block = extreme_row<true, false>(x + begin, size);
        maximum = block > last ? block : last;
        const S shift = maximum == S(-__builtin_inf()) ? S(0) : maximum;  // all -inf so far: their sum is 0
        sum = sum * __builtin_exp(last - shift) +
              sum_exponentials(x + begin, size, shift, [](int64_t, int64_t, SimdOf<T>) {});
      }
      const SimdOf<T> scale = S(1) / sum;
      write_row(
          static_cast<T*>(args.y) + n * args.d, args.d,
          streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            return exp(load_lanes(x + i, lanes) - maximum) * scale;
          });
    });
  });
}

void softmax_cpu_v2_one_pass(const SoftmaxArgs& args, Queue& queue) {
  if (args.d == 0) return;
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    for_each_row(queue, args.n, args.d, [&](int64_t n) {
      alignas(64) S exponentials[kSoftmaxCpuScratch / sizeof(S)];
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      const T* next = x + args.x_row_stride;
      const S maximum = extreme_row<true, false>(x, args.d);  // a NaN turns up in the sum
      const S sum = sum_exponentials(
          x, args.d, maximum, [&](int64_t i, int64_t lanes, SimdOf<T> exponential) __attribute__((always_inline)) {
            _mm_prefetch(reinterpret_cast<const char*>(next + i), _MM_HINT_T1);  // reads go on while this computes
            if (lanes == SimdOf<T>::kLanes)
              store<S>(exponentials + i, exponential);
            else
              store<S>(exponentials + i, exponential, lanes);
          });
      const SimdOf<T> scale = S(1) / sum;
      write_row(
          static_cast<T*>(args.y) + n * args.d, args.d,
          streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            return load_lanes<S>(exponentials + i, lanes) * scale;
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
