// matmul_cpu_v8_small: B is so small that it stays in L1, as the matrices of a large batch often are. Packing A, and
// waking threads for each matrix, would take longer than the products. So rows of A are read in place, up to kRows of
// them at a time, whose sums stay in registers while k runs; threads share the rows of the whole batch. B is read in
// place too where its rows are whole vectors, and padded to whole vectors otherwise. float32 and float64.
#include "kernels/common/simd.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int kRows = kNativeBytes == 64 ? 8 : 4;  // whose sums leave registers for B and A
constexpr int64_t kChunk = 64;                     // rows that a thread takes at a time
constexpr int64_t kWorthwhile = 1 << 16;           // products for which a thread is woken

template <class T>
struct SmallMatrix {
  using Vector = SimdOf<T>;
  static constexpr int64_t kLanes = Vector::kLanes;

  const MatmulArgs& args;
  const T* b;    // (K, N), in whole vectors
  int64_t step;  // from one row of b to the next

  // C[i : end] = A[i : end] B
  void multiply(const T* a, T* c, int64_t i, int64_t end) const {
    for (; i + kRows <= end; i += kRows) rows<kRows>(a, c, i);
    if (kRows > 4 && i + 4 <= end) rows<4>(a, c, std::exchange(i, i + 4));
    if (i + 2 <= end) rows<2>(a, c, std::exchange(i, i + 2));
    if (i < end) rows<1>(a, c, i);
  }

 private:
  template <int kCount>
  void rows(const T* a, T* c, int64_t i) const {
    for (int64_t j = 0; j < args.n; j += kLanes) {
      Vector sums[kCount];
      for (int r = 0; r < kCount; ++r) sums[r] = Vector(0);
      for (int64_t p = 0; p < args.k; ++p) {
        const Vector of_b = load<T>(b + p * step + j);
        for (int r = 0; r < kCount; ++r)
          sums[r] = fma(Vector(a[(i + r) * args.a_row_stride + p * args.a_col_stride]), of_b, sums[r]);
      }
      for (int r = 0; r < kCount; ++r) store<T>(c + (i + r) * args.n + j, sums[r], smaller(kLanes, args.n - j));
    }
  }
};

template <class T>
bool reads_in_place(const MatmulArgs& args) {
  return args.b_col_stride == 1 && args.n % SimdOf<T>::kLanes == 0;
}

// Elements of a padded B.
template <class T>
int64_t padded_size(const MatmulArgs& args) {
  return reads_in_place<T>(args) ? 0 : args.k * round_up(args.n, SimdOf<T>::kLanes);
}

template <class T>
void pad(const MatmulArgs& args, const T* b, T* padded) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  for (int64_t p = 0; p < args.k; ++p)
    for (int64_t j = 0; j < args.n; j += kLanes, padded += kLanes) {
      const int64_t columns = smaller(kLanes, args.n - j);
      const T* from = b + p * args.b_row_stride + j * args.b_col_stride;
      if (args.b_col_stride == 1) {
        store<T>(padded, load<T>(from, columns));
      } else {
        for (int64_t q = 0; q < kLanes; ++q) padded[q] = q < columns ? from[q * args.b_col_stride] : T(0);
      }
    }
}

template <class T>
void multiply(const MatmulArgs& args, Queue& queue) {
  const int64_t size = padded_size<T>(args), chunks = parts_of(args.m, kChunk);
  const int64_t products = smaller(args.m, kChunk) * args.n * larger(args.k, 1);
  T* scratch = queue.scratch<T>(size * queue.target().threads);
  queue.parallel(args.batch * chunks, 1 + kWorthwhile / products, [&](int64_t begin, int64_t end, int thread) {
    T* padded = scratch + thread * size;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t batch = at / chunks, first = at % chunks * kChunk;
      const T* b = static_cast<const T*>(args.b) + batch * args.b_batch_stride;
      if (size > 0 && (at == begin || first == 0)) pad(args, b, padded);
      SmallMatrix<T>{args, size > 0 ? padded : b, size > 0 ? size / args.k : args.b_row_stride}.multiply(
          static_cast<const T*>(args.a) + batch * args.a_batch_stride,
          static_cast<T*>(args.c) + batch * args.m * args.n, first, smaller(first + kChunk, args.m));
    }
  });
}

template <class F>
auto with_type(DType dtype, F f) {
  return dtype == DType::kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}

}  // namespace

void matmul_cpu_v8_small(const MatmulArgs& args, Queue& queue) {
  with_type(args.dtype, [&]<class T>() { multiply<T>(args, queue); });
}

Footprint matmul_cpu_v8_footprint(const MatmulArgs& args, const Target& target) {
  return with_type(args.dtype, [&]<class T>() {
    return Footprint{.scratch_bytes = padded_size<T>(args) * target.threads * static_cast<int64_t>(sizeof(T))};
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
