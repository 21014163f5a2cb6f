// The rungs of matmul on the CPU that need no vector instructions: the reference, the effect of loop order and of cache
// blocking on it, and the BLAS that SciPy ships.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/dispatch.h"
#include "core/target.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels {
namespace {

// The type in which sums are kept.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

int64_t size_of_sum(DType dtype) { return dtype == DType::kFloat64 ? sizeof(double) : sizeof(float); }

template <class T>
struct Operands {
  const T *a, *b;
  T* c;
};

template <class T>
Operands<T> matrix(const MatmulArgs& args, int64_t i) {
  return {static_cast<const T*>(args.a) + i * args.a_batch_stride,
          static_cast<const T*>(args.b) + i * args.b_batch_stride, static_cast<T*>(args.c) + i * args.m * args.n};
}

template <class T>
void reference(const MatmulArgs& args) {
  for (int64_t batch = 0; batch < args.batch; ++batch) {
    const auto [a, b, c] = matrix<T>(args, batch);
    for (int64_t i = 0; i < args.m; ++i)
      for (int64_t j = 0; j < args.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < args.k; ++p)
          sum += static_cast<double>(static_cast<Sum<T>>(a[i * args.a_row_stride + p * args.a_col_stride])) *
                 static_cast<double>(static_cast<Sum<T>>(b[p * args.b_row_stride + j * args.b_col_stride]));
        c[i * args.n + j] = static_cast<T>(static_cast<Sum<T>>(sum));
      }
  }
}

// c[0 : columns] += a * b[0 : columns * b_step : b_step]
template <class T>
void add_row(Sum<T>* c, Sum<T> a, const T* b, int64_t b_step, int64_t columns) {
  if (b_step == 1)
    for (int64_t j = 0; j < columns; ++j) c[j] += a * static_cast<Sum<T>>(b[j]);
  else
    for (int64_t j = 0; j < columns; ++j) c[j] += a * static_cast<Sum<T>>(b[j * b_step]);
}

// The same for four rows of B at once: the sums are loaded and stored a quarter as often.
template <class T>
void add_4_rows(Sum<T>* c, const T* a, int64_t a_step, const T* b, int64_t b_row, int64_t b_step, int64_t columns) {
  const auto a0 = static_cast<Sum<T>>(a[0]), a1 = static_cast<Sum<T>>(a[a_step]);
  const auto a2 = static_cast<Sum<T>>(a[2 * a_step]), a3 = static_cast<Sum<T>>(a[3 * a_step]);
  const T *b0 = b, *b1 = b + b_row, *b2 = b + 2 * b_row, *b3 = b + 3 * b_row;
  const auto add = [&](int64_t step) {
    for (int64_t j = 0; j < columns; ++j)
      c[j] += a0 * static_cast<Sum<T>>(b0[j * step]) + a1 * static_cast<Sum<T>>(b1[j * step]) +
              a2 * static_cast<Sum<T>>(b2[j * step]) + a3 * static_cast<Sum<T>>(b3[j * step]);
  };
  if (b_step == 1)
    add(1);
  else
    add(b_step);
}

template <class T>
void loop_order(const MatmulArgs& args, Queue& queue) {
  Sum<T>* row = queue.scratch<Sum<T>>(args.n);
  for (int64_t batch = 0; batch < args.batch; ++batch) {
    const auto [a, b, c] = matrix<T>(args, batch);
    for (int64_t i = 0; i < args.m; ++i) {
      std::fill_n(row, args.n, Sum<T>{0});
      for (int64_t p = 0; p < args.k; ++p)
        add_row(row, static_cast<Sum<T>>(a[i * args.a_row_stride + p * args.a_col_stride]), b + p * args.b_row_stride,
                args.b_col_stride, args.n);
      for (int64_t j = 0; j < args.n; ++j) c[i * args.n + j] = static_cast<T>(row[j]);
    }
  }
}

constexpr int64_t kRows = 64, kColumns = 256, kDepth = 128;  // B's block: 128 KiB of floats, reused by 64 rows

template <class T>
void blocked(const MatmulArgs& args, Queue& queue) {
  Sum<T>* block = queue.scratch<Sum<T>>(kRows * kColumns);
  for (int64_t batch = 0; batch < args.batch; ++batch) {
    const auto [a, b, c] = matrix<T>(args, batch);
    for (int64_t i0 = 0; i0 < args.m; i0 += kRows)
      for (int64_t j0 = 0; j0 < args.n; j0 += kColumns) {
        const int64_t rows = std::min(kRows, args.m - i0), columns = std::min(kColumns, args.n - j0);
        std::fill_n(block, kRows * kColumns, Sum<T>{0});
        for (int64_t p0 = 0; p0 < args.k; p0 += kDepth) {
          const int64_t p1 = std::min(p0 + kDepth, args.k);
          for (int64_t i = 0; i < rows; ++i) {
            Sum<T>* sums = block + i * kColumns;
            const T* row = a + (i0 + i) * args.a_row_stride;
            const T* panel = b + j0 * args.b_col_stride;
            int64_t p = p0;
            for (; p + 4 <= p1; p += 4)
              add_4_rows(sums, row + p * args.a_col_stride, args.a_col_stride, panel + p * args.b_row_stride,
                         args.b_row_stride, args.b_col_stride, columns);
            for (; p < p1; ++p)
              add_row(sums, static_cast<Sum<T>>(row[p * args.a_col_stride]), panel + p * args.b_row_stride,
                      args.b_col_stride, columns);
          }
        }
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) c[(i0 + i) * args.n + j0 + j] = static_cast<T>(block[i * kColumns + j]);
      }
  }
}

// Fortran's gemm: column-major, every argument by address.
template <class T>
using Gemm = void (*)(char* trans_a, char* trans_b, int* m, int* n, int* k, T* alpha, T* a, int* lda, T* b, int* ldb,
                      T* beta, T* c, int* ldc);
Gemm<float> sgemm = nullptr;
Gemm<double> dgemm = nullptr;

// How Fortran can read a matrix that is stored row by row ('N', seen as its transpose) or column by column ('T').
struct Layout {
  bool readable;
  char trans;
  int leading;
};

Layout layout(int64_t rows, int64_t columns, int64_t row_stride, int64_t col_stride) {
  if (rows <= 1) row_stride = std::max<int64_t>(columns, 1);  // the stride of a single row is never used
  if (columns <= 1) col_stride = rows <= 1 || row_stride == 1 ? std::max<int64_t>(rows, 1) : 1;
  const auto leads = [](int64_t stride, int64_t least) {
    return stride >= std::max<int64_t>(least, 1) && stride <= std::numeric_limits<int>::max();
  };
  if (col_stride == 1 && leads(row_stride, columns)) return {true, 'N', static_cast<int>(row_stride)};
  if ((row_stride == 1 || rows <= 1) && leads(col_stride, rows)) return {true, 'T', static_cast<int>(col_stride)};
  return {false, 'N', 0};
}

// C = A B row by row is the same as C^T = B^T A^T column by column.
template <class T>
void call_blas(Gemm<T> gemm, const MatmulArgs& args) {
  Layout a = layout(args.m, args.k, args.a_row_stride, args.a_col_stride);
  Layout b = layout(args.k, args.n, args.b_row_stride, args.b_col_stride);
  int m = static_cast<int>(args.m), n = static_cast<int>(args.n), k = static_cast<int>(args.k);
  T one = 1, zero = 0;
  for (int64_t batch = 0; batch < args.batch; ++batch) {
    const auto [pa, pb, pc] = matrix<T>(args, batch);
    gemm(&b.trans, &a.trans, &n, &m, &k, &one, const_cast<T*>(pb), &b.leading, const_cast<T*>(pa), &a.leading, &zero,
         pc, &n);
  }
}

}  // namespace

void matmul_cpu_v0_reference(const MatmulArgs& args, Queue&) {
  dispatch_floating(args.dtype, "matmul", [&]<class T>() { reference<T>(args); });
}

void matmul_cpu_v1_loop_order(const MatmulArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "matmul", [&]<class T>() { loop_order<T>(args, queue); });
}

Footprint matmul_cpu_v1_footprint(const MatmulArgs& args, const Target&) {
  return {.scratch_bytes = args.n * size_of_sum(args.dtype)};
}

void matmul_cpu_v2_blocked(const MatmulArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "matmul", [&]<class T>() { blocked<T>(args, queue); });
}

Footprint matmul_cpu_v2_footprint(const MatmulArgs& args, const Target&) {
  return {.scratch_bytes = kRows * kColumns * size_of_sum(args.dtype)};
}

void set_cpu_blas(void* sgemm_pointer, void* dgemm_pointer) {
  sgemm = reinterpret_cast<Gemm<float>>(sgemm_pointer);
  dgemm = reinterpret_cast<Gemm<double>>(dgemm_pointer);
}

bool matmul_cpu_library_accepts(const MatmulArgs& args, const Target&) {
  if (args.dtype == DType::kFloat32 ? !sgemm : args.dtype != DType::kFloat64 || !dgemm) return false;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return args.m <= kMost && args.n <= kMost && args.k <= kMost &&
         layout(args.m, args.k, args.a_row_stride, args.a_col_stride).readable &&
         layout(args.k, args.n, args.b_row_stride, args.b_col_stride).readable;
}

void matmul_cpu_library(const MatmulArgs& args, Queue&) {
  if (args.batch == 0 || args.m == 0 || args.n == 0) return;
  if (args.k == 0)
    std::memset(args.c, 0, static_cast<size_t>(args.batch * args.m * args.n * size_of(args.dtype)));
  else if (args.dtype == DType::kFloat32)
    call_blas(sgemm, args);
  else
    call_blas(dgemm, args);
}

}  // namespace rooflab::kernels
