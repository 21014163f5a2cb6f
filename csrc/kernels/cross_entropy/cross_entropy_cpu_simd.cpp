// The SIMD rungs of cross_entropy and cross_entropy_backward on the CPU: see their headers for what they compute.
#include "kernels/common/max_sum_simd.h"
#include "kernels/cross_entropy/cross_entropy_backward.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <class T, class S>
ROOFLAB_INLINE void store_one(void* to, S value) {
  store<T>(static_cast<T*>(to), SimdOf<T>(value), 1);
}

// Stores a loss: as T, or, if wide, in the type that it was computed in.
template <class T, class S>
ROOFLAB_INLINE void store_loss(bool wide, void* losses, int64_t row, S value) {
  if (wide)
    static_cast<S*>(losses)[row] = value;
  else
    store_one<T>(static_cast<T*>(losses) + row, value);
}

template <class T>
ROOFLAB_INLINE auto load_one(const void* from) {
  typename ComputeOf<T>::type value;
  store(&value, load<T>(static_cast<const T*>(from), 1), 1);
  return value;
}

// The sum or the mean of the losses.
template <class T, class S>
ROOFLAB_INLINE void reduce_losses(const CrossEntropyArgs& args, const S* losses) {
  S sum = sum_row<S>(
      args.n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load_lanes(losses + i, lanes); });
  int64_t count = 0;
  for (int64_t row = 0; row < args.n; ++row) count += class_of(args.classes, row) != args.classes.ignore_index;
  if (args.count) {
    *static_cast<S*>(args.count) = static_cast<S>(count);
    sum /= static_cast<S>(count);
  }
  store_loss<T>(args.wide_loss, args.loss, 0, sum);
}

}  // namespace

void cross_entropy_cpu_v1_online(const CrossEntropyArgs& args, Queue& queue) {
  check_classes(args.classes, args.n, queue);
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    S* const losses = args.reduces ? queue.scratch<S>(args.n) : nullptr;
    for_each_row(queue, args.n, args.v, [&](int64_t n) {
      const T* x = static_cast<const T*>(args.logits) + n * args.row_stride;
      const auto [maximum, sum] = max_sum_row(x, args.v);
      const S rest = sizeof(S) == 4 ? S(__builtin_logf(sum)) : S(__builtin_log(sum));
      store_lse<S>(args, n, maximum, rest);
      const int64_t target = class_of(args.classes, n);
      const S loss = target == args.classes.ignore_index ? S(0) : rest - (load_one<T>(x + target) - maximum);
      if (args.reduces)
        losses[n] = loss;
      else
        store_loss<T>(args.wide_loss, args.loss, n, loss);
    });
    if (args.reduces) reduce_losses<T>(args, losses);
  });
}

void cross_entropy_backward_cpu_v1_recompute(const CrossEntropyBackwardArgs& args, Queue& queue) {
  check_classes(args.classes, args.n, queue);
  const bool streaming = queue.target().exceeds_cache(args.n * args.v * size_of(args.dtype));
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    constexpr int64_t kLanes = SimdOf<T>::kLanes;
    const S divisor = args.count ? *static_cast<const S*>(args.count) : S(1);
    for_each_row(queue, args.n, args.v, [&](int64_t n) {
      const T* x = static_cast<const T*>(args.logits) + n * args.row_stride;
      T* dx = static_cast<T*>(args.dlogits) + n * args.v;
      const int64_t target = class_of(args.classes, n);
      if (target == args.classes.ignore_index) {
        write_row(
            dx, args.v, streaming, [](int64_t, int64_t) __attribute__((always_inline)) { return SimdOf<T>(S(0)); });
        return;
      }
      const S lse = static_cast<const S*>(args.lse)[n];
      const S rest = args.lse_rest ? static_cast<const S*>(args.lse_rest)[n] : S(0);
      const int64_t at = n * args.dloss_stride;
      const S dloss =
          args.wide_loss ? static_cast<const S*>(args.dloss)[at] : load_one<T>(static_cast<const T*>(args.dloss) + at);
      const S gradient = dloss / divisor;
      write_row(
          dx, args.v, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            SimdOf<T> p = exp(load_lanes(x + i, lanes) - lse - rest);
            if (target >= i && target < i + kLanes) {
              S each[kLanes];
              store<S>(each, p);
              each[target - i] -= 1;
              p = load<S>(each);
            }
            return p * gradient;
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
