// matmul_cpu_v6_gemv: a matrix times a vector (N = 1) or a vector times a matrix (M = 1). Each element of the matrix is
// used once, so memory bandwidth binds. All that a kernel can do is to read the matrix once, in long runs, on every
// core.
//   rows contiguous along k:  dot products of four rows at a time with the vector, which stays in cache; the next four
//                             are prefetched, because hardware prefetch is late on short rows
//   columns contiguous:       four columns at a time are added to a stretch of the result that stays in L1
#include "kernels/common/simd.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <class T>
struct Gemv {
  using Acc = typename ComputeOf<T>::type;
  using Vector = SimdOf<T>;
  static constexpr int64_t kLanes = Vector::kLanes, kGroup = 4, kStretch = 4096;

  const T* w;  // (R, K): y = W x
  const Acc* x;
  int64_t row_stride, k_stride;

  // out[r] = sum of w[r, p] * x[p] over p in [k0, k1), for r in [r0, r1).
  void part(int64_t r0, int64_t r1, int64_t k0, int64_t k1, Acc* out) const {
    if (k_stride == 1)
      dots(r0, r1, k0, k1, out);
    else
      for (int64_t r = r0; r < r1; r += kStretch) columns(r, smaller(r + kStretch, r1), k0, k1, out);
  }

  void dots(int64_t r0, int64_t r1, int64_t k0, int64_t k1, Acc* out) const {
    int64_t r = r0;
    for (; r + kGroup <= r1; r += kGroup) dot<kGroup>(r, k0, k1, out);
    for (; r < r1; ++r) dot<1>(r, k0, k1, out);
  }

  template <int kRows>
  void dot(int64_t r, int64_t k0, int64_t k1, Acc* out) const {
    Vector totals[kRows], sums[kRows];
    for (int i = 0; i < kRows; ++i) totals[i] = Vector(0);
    const T* row = w + r * row_stride;
    int64_t p = k0;
    do {
      for (int i = 0; i < kRows; ++i) sums[i] = Vector(0);
      for (const int64_t end = smaller(p + kMatmulRun, k1); p + kLanes <= end; p += kLanes) {
        const Vector factor = load<Acc>(x + p);
        for (int i = 0; i < kRows; ++i) {
          __builtin_prefetch(row + (i + kRows) * row_stride + p);  // for the next group
          sums[i] = fma(load<T>(row + i * row_stride + p), factor, sums[i]);
        }
      }
      for (int i = 0; i < kRows; ++i) totals[i] += sums[i];
    } while (p + kLanes <= k1);
    if (p < k1) {
      const Vector factor = load<Acc>(x + p, k1 - p);
      for (int i = 0; i < kRows; ++i) totals[i] = fma(load<T>(row + i * row_stride + p, k1 - p), factor, totals[i]);
    }
    for (int i = 0; i < kRows; ++i) out[r + i] = sum(totals[i]);
  }

  // Of at most kStretch rows. A sum takes few products before it is added to a total, which takes as few sums.
  void columns(int64_t r0, int64_t r1, int64_t k0, int64_t k1, Acc* out) const {
    const int64_t run = larger(256, static_cast<int64_t>(__builtin_sqrt(k1 - k0)));
    add_run(r0, r1, k0, smaller(k0 + run, k1), out + r0);
    for (int64_t p = k0 + run; p < k1; p += run) {
      Acc sums[kStretch];
      add_run(r0, r1, p, smaller(p + run, k1), sums);
      for (int64_t r = r0; r < r1; ++r) out[r] += sums[r - r0];
    }
  }

  // sums[r - r0] = sum of w[r, p] * x[p] over p in [k0, k1)
  void add_run(int64_t r0, int64_t r1, int64_t k0, int64_t k1, Acc* sums) const {
    __builtin_memset(sums, 0, (r1 - r0) * sizeof(Acc));
    int64_t p = k0;
    for (; p + kGroup <= k1; p += kGroup) add<kGroup>(r0, r1, p, sums);
    for (; p < k1; ++p) add<1>(r0, r1, p, sums);
  }

  template <int kColumns>
  void add(int64_t r0, int64_t r1, int64_t p, Acc* to) const {
    Vector factors[kColumns];
    for (int i = 0; i < kColumns; ++i) factors[i] = Vector(x[p + i]);
    const T* column = w + p * k_stride;
    int64_t r = r0;
    for (; r + kLanes <= r1; r += kLanes) {
      Vector sums = load<Acc>(to + r - r0);
      for (int i = 0; i < kColumns; ++i) sums = fma(load<T>(column + i * k_stride + r), factors[i], sums);
      store<Acc>(to + r - r0, sums);
    }
    if (r < r1) {
      Vector sums = load<Acc>(to + r - r0, r1 - r);
      for (int i = 0; i < kColumns; ++i) sums = fma(load<T>(column + i * k_stride + r, r1 - r), factors[i], sums);
      store<Acc>(to + r - r0, sums, r1 - r);
    }
  }
};

// How the work is divided: rows over threads or, where there are few rows, parts of k, whose sums are added at the end.
template <class T>
struct Deal {
  bool by_rows;  // W is A; otherwise its role is B's transpose
  int64_t rows, x_stride, threads, parts, grain;
  bool direct_x, direct_y;
  int64_t x_size, y_size;  // scratch: x converted, and the sums of each part

  Deal(const MatmulArgs& args, const Target& target) {
    by_rows = args.n == 1;
    rows = by_rows ? args.m : args.n;
    x_stride = by_rows ? args.b_row_stride : args.a_col_stride;
    const int64_t bytes = rows * args.k * static_cast<int64_t>(sizeof(T));
    threads = bytes >> 17 < 2 ? 1 : smaller(target.threads, bytes >> 17);  // a thread is worth waking for 128 KiB
    parts = rows >= threads * 256 ? 1 : larger(1, smaller(threads, args.k));
    // A thread reads columns in runs as long as its piece of rows, so pieces are as large as possible.
    const bool has_columns = (by_rows ? args.a_col_stride : args.b_row_stride) != 1;
    grain = has_columns ? (rows + threads - 1) / threads : Gemv<T>::kGroup;
    const bool converts = sizeof(T) != sizeof(typename Gemv<T>::Acc);
    direct_x = !converts && x_stride == 1;
    direct_y = !converts && parts == 1;
    x_size = direct_x ? 0 : args.k;
    y_size = direct_y ? 0 : (rows + 63) / 64 * 64;
  }
  int64_t scratch_size() const { return y_size * parts + x_size; }
};

template <class T>
void gemv(const MatmulArgs& args, Queue& queue) {
  using Acc = typename Gemv<T>::Acc;
  constexpr int64_t kLanes = Gemv<T>::kLanes;
  const Deal<T> deal(args, queue.target());
  const int64_t rows = deal.rows, depth = args.k, x_stride = deal.x_stride, parts = deal.parts;
  Gemv<T> plan{};
  plan.row_stride = deal.by_rows ? args.a_row_stride : args.b_col_stride;
  plan.k_stride = deal.by_rows ? args.a_col_stride : args.b_row_stride;
  if (depth == 1 && plan.row_stride != 1) plan.k_stride = 1;  // one column: its step is never used
  Acc* sums = queue.scratch<Acc>(deal.scratch_size());
  Acc* converted = sums + deal.y_size * parts;

  for (int64_t batch = 0; batch < args.batch; ++batch) {
    const T* a = static_cast<const T*>(args.a) + batch * args.a_batch_stride;
    const T* b = static_cast<const T*>(args.b) + batch * args.b_batch_stride;
    T* y = static_cast<T*>(args.c) + batch * rows;
    const T* x = deal.by_rows ? b : a;
    plan.w = deal.by_rows ? a : b;
    if (deal.direct_x) {
      plan.x = reinterpret_cast<const Acc*>(x);
    } else {
      plan.x = converted;
      for (int64_t p = 0; p < depth; p += x_stride == 1 ? kLanes : 1) {
        const int64_t count = x_stride == 1 ? smaller(kLanes, depth - p) : 1;
        store<Acc>(converted + p, load<T>(x + p * x_stride, count), count);
      }
    }

    Acc* out = deal.direct_y ? reinterpret_cast<Acc*>(y) : sums;
    if (parts == 1)
      queue.parallel(rows, deal.grain, deal.threads,
                     [&](int64_t begin, int64_t end, int) { plan.part(begin, end, 0, depth, out); });
    else
      queue.parallel(parts, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i)
          plan.part(0, rows, depth * i / parts, depth * (i + 1) / parts, out + i * deal.y_size);
      });
    if (deal.direct_y) continue;
    for (int64_t r = 0; r < rows; r += kLanes) {
      const int64_t count = smaller(kLanes, rows - r);
      SimdOf<T> total = load<Acc>(out + r, count);
      for (int64_t i = 1; i < parts; ++i) total += load<Acc>(out + i * deal.y_size + r, count);
      store<T>(y + r, total, count);
    }
  }
}

bool is_empty(const MatmulArgs& args) { return args.m == 0 || args.n == 0; }

}  // namespace

void matmul_cpu_v6_gemv(const MatmulArgs& args, Queue& queue) {
  if (!is_empty(args)) with_floating(args.dtype, [&]<class T>() { gemv<T>(args, queue); });
}

Footprint matmul_cpu_v6_footprint(const MatmulArgs& args, const Target& target) {
  if (is_empty(args)) return {};
  return with_floating(args.dtype, [&]<class T>() {
    const int64_t size = Deal<T>(args, target).scratch_size();
    return Footprint{.scratch_bytes = size * static_cast<int64_t>(sizeof(typename Gemv<T>::Acc))};
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
