// The SIMD rung of adamw on the CPU: see adamw.h for what it computes.
#include "kernels/adamw/adamw.h"
#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void adamw_cpu_v1_fused(const AdamwArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() {
    constexpr int64_t kLanes = SimdOf<T>::kLanes;
    const AdamwStep<typename ComputeOf<T>::type> step(adamw_numbers_now(args.numbers));
    const auto root = [](SimdOf<T> x) __attribute__((always_inline)) { return sqrt(x); };
    for (int i = 0; i < args.count; ++i) {
      const AdamwTensor& x = args.tensors[i];
      T *const ps = static_cast<T*>(x.p), *const ms = static_cast<T*>(x.m), *const vs = static_cast<T*>(x.v);
      const T* const gs = static_cast<const T*>(x.g);
      queue.parallel(x.n, 16384, [&](int64_t begin, int64_t end, int) {
        int64_t at = begin;
        for (; at + kLanes <= end; at += kLanes) {
          SimdOf<T> p = load<T>(ps + at), m = load<T>(ms + at), v = load<T>(vs + at);
          step(p, load<T>(gs + at), m, v, root);
          store<T>(ps + at, p);
          store<T>(ms + at, m);
          store<T>(vs + at, v);
        }
        if (const int64_t rest = end - at; rest > 0) {
          SimdOf<T> p = load<T>(ps + at, rest), m = load<T>(ms + at, rest), v = load<T>(vs + at, rest);
          step(p, load<T>(gs + at, rest), m, v, root);
          store<T>(ps + at, p, rest);
          store<T>(ms + at, m, rest);
          store<T>(vs + at, v, rest);
        }
      });
    }
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
