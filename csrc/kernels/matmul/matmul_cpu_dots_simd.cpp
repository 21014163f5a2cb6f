// matmul_cpu_v7_dots: one operand has few rows (or columns), and the other is contiguous along k. Each element of the
// larger operand is used a few times only, so packing it would take longer than the products. Tiles of kSide by 4 dot
// products stay in registers; the larger operand is read once, and the smaller one stays in cache. It is turned first
// where it is not contiguous along k itself.
#include "kernels/common/simd.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int64_t kSide = kNativeBytes == 64 ? 4 : 2;  // rows of the smaller operand in a tile
constexpr int64_t kGroup = 4;                          // and of the larger one

// c[i * x_step + j * w_step] = sum over p of x[i, p] w[j, p], where x has few rows and w many.
template <class T>
struct Dots {
  using Vector = SimdOf<T>;
  static constexpr int64_t kLanes = Vector::kLanes;

  int64_t depth, few, x_row_stride, w_row_stride, x_step, w_step;

  // Rows [begin, end) of w.
  void rows(const T* x, const T* w, T* c, int64_t begin, int64_t end) const {
    int64_t j = begin;
    for (; j + kGroup <= end; j += kGroup) group<kGroup>(x, w, c, j);
    for (; j < end; ++j) group<1>(x, w, c, j);
  }

 private:
  template <int kRows>
  void group(const T* x, const T* w, T* c, int64_t j) const {
    const T* own = w + j * w_row_stride;
    T* out = c + j * w_step;
    int64_t i = 0;
    for (; i + kSide <= few; i += kSide) tile<kSide, kRows>(x + i * x_row_stride, own, out + i * x_step);
    for (; i < few; ++i) tile<1, kRows>(x + i * x_row_stride, own, out + i * x_step);
  }

  template <int kX, int kW>
  void tile(const T* x, const T* w, T* c) const {
    Vector totals[kX][kW], sums[kX][kW];
    clear(totals);
    int64_t p = 0;
    do {
      clear(sums);
      for (const int64_t end = smaller(p + kMatmulRun, depth); p + kLanes <= end; p += kLanes)
        add(
            sums, [&](const T* from) __attribute__((always_inline)) { return load<T>(from + p); }, x, w);
      for (int i = 0; i < kX; ++i)
        for (int j = 0; j < kW; ++j) totals[i][j] += sums[i][j];
    } while (p + kLanes <= depth);
    if (p < depth)
      add(
          totals, [&](const T* from) __attribute__((always_inline)) { return load<T>(from + p, depth - p); }, x, w);
    for (int i = 0; i < kX; ++i)
      for (int j = 0; j < kW; ++j) store<T>(c + i * x_step + j * w_step, Vector(sum(totals[i][j])), 1);
  }

  template <int kX, int kW>
  ROOFLAB_INLINE static void clear(Vector (&sums)[kX][kW]) {
    for (int i = 0; i < kX; ++i)
      for (int j = 0; j < kW; ++j) sums[i][j] = Vector(0);
  }

  template <int kX, int kW, class Load>
  ROOFLAB_INLINE void add(Vector (&sums)[kX][kW], Load at, const T* x, const T* w) const {
    Vector of_x[kX];
    for (int i = 0; i < kX; ++i) of_x[i] = at(x + i * x_row_stride);
    for (int j = 0; j < kW; ++j) {
      const Vector of_w = at(w + j * w_row_stride);
      for (int i = 0; i < kX; ++i) sums[i][j] = fma(of_x[i], of_w, sums[i][j]);
    }
  }
};

template <class T>
void dots(const MatmulArgs& args, Queue& queue) {
  constexpr int64_t kGrain = int64_t{1} << 17;  // bytes of the larger operand that are worth waking a thread for
  const bool few_columns = matmul_dots_few_columns(args);
  const int64_t few = few_columns ? args.n : args.m, many = few_columns ? args.m : args.n;
  const void* x = few_columns ? args.b : args.a;
  int64_t x_row_stride = few_columns ? args.b_col_stride : args.a_row_stride;
  int64_t x_batch_stride = few_columns ? args.b_batch_stride : args.a_batch_stride;
  if (const int64_t lines = matmul_dots_turned_lines(args); lines > 0) {
    const int64_t step = few_columns ? args.b_row_stride : args.a_col_stride;
    T* turned = queue.scratch<T>(lines * args.k);
    queue.parallel(lines, kGrain / (larger(args.k, 1) * sizeof(T)) + 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t line = begin; line < end; ++line) {
        const T* from = static_cast<const T*>(x) + line / few * x_batch_stride + line % few * x_row_stride;
        for (int64_t p = 0; p < args.k; ++p) turned[line * args.k + p] = from[p * step];
      }
    });
    x = turned;
    x_row_stride = args.k;
    if (x_batch_stride != 0) x_batch_stride = few * args.k;
  }
  const void* w = few_columns ? args.a : args.b;
  const int64_t w_batch_stride = few_columns ? args.a_batch_stride : args.b_batch_stride;
  const Dots<T> plan = few_columns ? Dots<T>{args.k, few, x_row_stride, args.a_row_stride, 1, args.n}
                                   : Dots<T>{args.k, few, x_row_stride, args.b_col_stride, args.n, 1};
  const int64_t groups = (many + kGroup - 1) / kGroup;
  const int64_t bytes = kGroup * args.k * static_cast<int64_t>(sizeof(T));
  queue.parallel(args.batch * groups, kGrain / larger(bytes, 1) + 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end;) {
      const int64_t batch = at / groups, first = at - batch * groups, last = smaller(groups, first + end - at);
      plan.rows(static_cast<const T*>(x) + batch * x_batch_stride, static_cast<const T*>(w) + batch * w_batch_stride,
                static_cast<T*>(args.c) + batch * args.m * args.n, first * kGroup, smaller(last * kGroup, many));
      at += last - first;
    }
  });
}

}  // namespace

void matmul_cpu_v7_dots(const MatmulArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() { dots<T>(args, queue); });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
