// The SIMD rung of scale_tensors on the CPU: see scale_tensors.h for what it computes.
#include "kernels/common/simd.h"
#include "kernels/scale_tensors/scale_tensors.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void scale_tensors_cpu_v1_simd(const ScaleTensorsArgs& args, Queue& queue) {
  constexpr int64_t kLength = 16384, kGrain = 4;  // elements of a piece; pieces that are worth waking a thread for
  const ListPieces pieces(args.list, kLength);
  with_floating(args.dtype, [&]<class T>() {
    constexpr int64_t kLanes = SimdOf<T>::kLanes;
    const SimdOf<T> factor(static_cast<typename ComputeOf<T>::type>(*args.factor));
    queue.parallel(pieces.total(), kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int i = pieces.tensor_of(piece);
        const int64_t first = (piece - pieces.first[i]) * kLength;
        T* const x = static_cast<T*>(args.list.tensors[i].data) + first;
        const int64_t n = smaller(args.list.tensors[i].n - first, kLength);
        int64_t at = 0;
        for (; at + kLanes <= n; at += kLanes) store<T>(x + at, load<T>(x + at) * factor);
        if (at < n) store<T>(x + at, load<T>(x + at, n - at) * factor, n - at);
      }
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
