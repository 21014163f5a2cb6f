// The rungs of matmul between plain loops and matmul_packed.h, one idea each; one thread, float32 and float64. The
// figures are for float32 on one AMD EPYC (Zen 4) core with AVX-512, as a share of NumPy's OpenBLAS on one thread, by
// CPU time, measured alternately with it on a busy machine. For v2a and v3 they are the range of three medians of five
// turns (three turns for N = 2048), and for v2b the 20th to 80th percentile of one run.
//   matmul_cpu_v2a_register_tile   6 rows by 2 vectors of sums stay in registers while k runs: a step reads 2 vectors
//                                  of B and 6 numbers of A for 12 FMAs, and C is written once. The 12 sums, 2 vectors
//                                  and 1 number of A fit into the 16 registers of SSE2 and AVX2.
//                                  N = 1024: 96 to 103 %, where v2_blocked has 19 %. N = 2048: 52 to 58 %, because
//                                  each step of k reads another row of B, 8 KiB further on, which is on another page
//   matmul_cpu_v2b_packed_b        2 vectors by kDepth rows of B are first copied into one piece, in the order in
//                                  which they are read. It stays in L2 while all rows of A pass. Where k is deeper, C
//                                  is read and written again for each piece.
//                                  N = 1024: 99 to 103 %, N = 2048: 84 to 90 %
// v3_packed_simd packs A as well, in blocks for L2, makes the tile as tall as the registers allow (N = 1024: 104 to 109
// %), and uses all threads.
#include "kernels/common/simd.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <class T>
struct RegisterTile {
  using Vector = typename NativeOf<T>::Value;
  static constexpr int64_t kLanes = kNativeBytes / sizeof(T), kRows = 6, kVectors = 2, kColumns = kVectors * kLanes;

  const MatmulArgs& args;
  const T *a, *b;  // one matrix of the batch
  T* c;
  T* panel;  // (depth, kColumns), for columns of B that are copied

  // C[i : i + kRows, j : j + columns] (+)= A[i : i + kRows, k0 : k1] panel. Past the last row of A that row is used
  // again, and its sums are not stored.
  void tile(int64_t i, int64_t j, int64_t columns, int64_t k0, int64_t k1, const T* from, int64_t step) const {
    const int64_t rows = smaller(kRows, args.m - i);
    const T* row[kRows];
    for (int64_t r = 0; r < kRows; ++r) row[r] = a + (i + smaller(r, rows - 1)) * args.a_row_stride;
    Vector sums[kRows][kVectors] = {};
    for (int64_t p = k0; p < k1; ++p, from += step) {
      Vector columns_of_b[kVectors];
      for (int64_t v = 0; v < kVectors; ++v) read(from + v * kLanes, columns_of_b[v]);
#pragma GCC unroll 6
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t v = 0; v < kVectors; ++v) sums[r][v] += row[r][p * args.a_col_stride] * columns_of_b[v];
    }
    for (int64_t r = 0; r < rows; ++r) {
      T* out = c + (i + r) * args.n + j;
      T line[kColumns] = {};  // the row where C has all of it, otherwise what C has of it
      T* whole = columns == kColumns ? out : line;
      if (k0 > 0 && whole == line) __builtin_memcpy(line, out, columns * sizeof(T));
      for (int64_t v = 0; v < kVectors; ++v) {
        Vector before = {};
        if (k0 > 0) read(whole + v * kLanes, before);
        write(whole + v * kLanes, before + sums[r][v]);
      }
      if (whole == line) __builtin_memcpy(out, line, columns * sizeof(T));
    }
  }

  // panel[p - k0][q] = B[p, j + q], and zero from the last column on.
  void pack(int64_t j, int64_t columns, int64_t k0, int64_t k1) const {
    for (int64_t p = k0; p < k1; ++p) {
      T* row = panel + (p - k0) * kColumns;
      const T* from = b + p * args.b_row_stride + j * args.b_col_stride;
      if (columns < kColumns) __builtin_memset(row, 0, kColumns * sizeof(T));
      if (args.b_col_stride == 1)
        __builtin_memcpy(row, from, columns * sizeof(T));
      else
        for (int64_t q = 0; q < columns; ++q) row[q] = from[q * args.b_col_stride];
    }
  }

  // Multiplies `depth` rows of B at a time. Columns are read in place if that is allowed and they are whole vectors.
  void multiply(int64_t depth, bool in_place) const {
    for (int64_t j = 0; j < args.n; j += kColumns)
      for (int64_t k0 = 0; k0 == 0 || k0 < args.k; k0 += depth) {  // even if k is 0, zeros must be written
        const int64_t columns = smaller(kColumns, args.n - j), k1 = smaller(k0 + depth, args.k);
        const bool lies_well = in_place && args.b_col_stride == 1 && columns == kColumns;
        if (!lies_well) pack(j, columns, k0, k1);
        const T* from = lies_well ? b + k0 * args.b_row_stride + j : panel;
        for (int64_t i = 0; i < args.m; i += kRows)
          tile(i, j, columns, k0, k1, from, lies_well ? args.b_row_stride : kColumns);
      }
  }
};

constexpr int64_t kDepth = 512;  // rows of a panel: 64 KiB with AVX-512

// Rows of B that are multiplied at a time; if k is 0 this is one, so that a panel has a size.
int64_t whole_depth(const MatmulArgs& args) { return args.k > 0 ? args.k : 1; }
int64_t panel_depth(const MatmulArgs& args) { return smaller(whole_depth(args), kDepth); }

template <class T>
void multiply(const MatmulArgs& args, Queue& queue, int64_t depth, bool in_place) {
  T* panel = queue.scratch<T>(depth * RegisterTile<T>::kColumns);
  for (int64_t i = 0; i < args.batch; ++i)
    RegisterTile<T>{args, static_cast<const T*>(args.a) + i * args.a_batch_stride,
                    static_cast<const T*>(args.b) + i * args.b_batch_stride,
                    static_cast<T*>(args.c) + i * args.m * args.n, panel}
        .multiply(depth, in_place);
}

template <class F>
auto with_scalar(DType dtype, F f) {
  return dtype == DType::kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}

Footprint panel(const MatmulArgs& args, int64_t depth) {
  return with_scalar(args.dtype, [&]<class T>() {
    const int64_t size = depth * RegisterTile<T>::kColumns;
    return Footprint{.scratch_bytes = size * static_cast<int64_t>(sizeof(T))};
  });
}

}  // namespace

void matmul_cpu_v2a_register_tile(const MatmulArgs& args, Queue& queue) {
  with_scalar(args.dtype, [&]<class T>() { multiply<T>(args, queue, whole_depth(args), true); });
}

void matmul_cpu_v2b_packed_b(const MatmulArgs& args, Queue& queue) {
  with_scalar(args.dtype, [&]<class T>() { multiply<T>(args, queue, panel_depth(args), false); });
}

Footprint matmul_cpu_v2a_footprint(const MatmulArgs& args, const Target&) { return panel(args, whole_depth(args)); }

Footprint matmul_cpu_v2b_footprint(const MatmulArgs& args, const Target&) { return panel(args, panel_depth(args)); }

}  // namespace rooflab::kernels::ROOFLAB_ISA
