// The SIMD rung of sum_squares on the CPU: see sum_squares.h for what it computes.
#include "kernels/common/simd.h"
#include "kernels/sum_squares/sum_squares.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Eight floats as doubles.
ROOFLAB_INLINE F64x8 widen(const float* p) {
  constexpr int kEach = 8 / kParts;
  using Narrow = float __attribute__((vector_size(kEach * sizeof(float))));
  F64x8 out;
  for (int i = 0; i < kParts; ++i) {
    Narrow part;
    std::memcpy(&part, p + i * kEach, sizeof(part));
    out.part[i] = __builtin_convertvector(part, NativeDouble);
  }
  return out;
}

ROOFLAB_INLINE void add_squares(F64x8 x, F64x8& sum) { sum += x * x; }
ROOFLAB_INLINE void add_squares(F64x8 x, F64x8& sum, F64x8&) { add_squares(x, sum); }
ROOFLAB_INLINE void add_squares(F32x16 x, F64x8& low, F64x8& high) {
  float lanes[16];
  store<float>(lanes, x);
  add_squares(widen(lanes), low);
  add_squares(widen(lanes + 8), high);
}

template <class T>
double squares(const T* x, int64_t n) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  F64x8 sums[4] = {0, 0, 0, 0};  // as many as hide the latency of an addition
  int64_t at = 0;
  for (; at + 2 * kLanes <= n; at += 2 * kLanes) {
    add_squares(load<T>(x + at), sums[0], sums[1]);
    add_squares(load<T>(x + at + kLanes), sums[2], sums[3]);
  }
  for (; at < n; at += kLanes) add_squares(load<T>(x + at, smaller(n - at, kLanes)), sums[0], sums[1]);
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace

void sum_squares_cpu_v1_simd(const SumSquaresArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 4;  // pieces that are worth waking a thread for
  const int64_t length = sum_squares_piece(size_of(args.dtype));
  const ListPieces pieces(args.list, length);
  double* const partial = queue.scratch<double>(pieces.total());
  with_floating(args.dtype, [&]<class T>() {
    queue.parallel(pieces.total(), kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int i = pieces.tensor_of(piece);
        const FlatTensor& x = args.list.tensors[i];
        const int64_t at = (piece - pieces.first[i]) * length;
        partial[piece] = squares(static_cast<const T*>(x.data) + at, smaller(x.n - at, length));
      }
    });
  });
  double sum = args.continues ? *args.y : 0;
  for (int64_t piece = 0; piece < pieces.total(); ++piece) sum += partial[piece];
  *args.y = sum;
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
