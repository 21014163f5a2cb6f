// matmul_cpu_v3_packed_simd: the loops of matmul_packed.h around a tile of sums in vector registers: 6 rows of 2
// vectors where there are 16 registers, 14 rows where there are 32, and 8 rows of 3 vectors of NEON. Each step of k
// loads 2 or 3 vectors of B and broadcasts one element of A per row, for as many FMAs per row, so the FMA units bind,
// not the loads. float16 and bfloat16 are converted to float while they are packed.
#include "kernels/matmul/matmul_packed.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <class Storage, class Scalar>
struct FmaKernel {
  using T = Storage;
  using Acc = Scalar;
  using Packed = Scalar;
  using Vector = typename NativeOf<Scalar>::Value;
  static constexpr bool kDirect = sizeof(T) == sizeof(Acc);
  static constexpr int64_t kLanes = kNativeBytes / sizeof(Scalar);
  static constexpr int64_t kDirectRows = 4, kDirectColumns = kLanes;
  static constexpr int64_t kVectors = kNativeBytes == 16 && kRegisters == 32 ? 3 : 2;
  static constexpr int64_t kMr = kNativeBytes == 64 ? 14 : kRegisters == 32 ? 8 : 6;
  static constexpr int64_t kNr = kVectors * kLanes, kKStep = 1;
  static constexpr int64_t kKc = 2048 / sizeof(Scalar);
  static constexpr int64_t kMc = kNativeBytes == 64 ? 24 * kMr : 16 * kMr, kNc = 2048;

  struct Session {};  // a thread needs no preparation

  static void pack_a(Scalar* panel, const T* a, int64_t row, int64_t col, int64_t depth, int64_t rows) {
    pack<kMr>(panel, a, row, col, depth, rows);
  }
  static void pack_b(Scalar* panel, const T* b, int64_t row, int64_t col, int64_t depth, int64_t columns) {
    pack<kNr>(panel, b, col, row, depth, columns);
  }

  // panel[p][i] = x[i * stride + p * step] for i < width, 0 for the rest of kWidth.
  template <int64_t kWidth>
  static void pack(Scalar* panel, const T* x, int64_t stride, int64_t step, int64_t depth, int64_t width) {
    if (width < kWidth) __builtin_memset(panel, 0, depth * kWidth * sizeof(Scalar));
    if (stride == 1 && width == kWidth && kWidth % kLanes == 0) {
      for (int64_t p = 0; p < depth; ++p)
        for (int64_t i = 0; i < kWidth; i += kLanes) {
          Vector lanes;
          read(x + p * step + i, lanes);
          write(panel + p * kWidth + i, lanes);
        }
      return;
    }
    constexpr int64_t kChunk = Simd<Scalar>::kLanes;
    if (step == 1) {  // rows of x become columns of the panel, four at a time where possible
      int64_t i = 0;
      for (; i + 4 <= width; i += 4) transpose_4<kWidth>(panel + i, x + i * stride, stride, depth);
      if (i < width && width >= 4) transpose_4<kWidth>(panel + width - 4, x + (width - 4) * stride, stride, depth);
      if (width >= 4) return;
    }
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t i = 0; i < width; i += kChunk) {
        const int64_t count = smaller(kChunk, width - i);
        if (stride == 1) {
          store<Scalar>(panel + p * kWidth + i, load<T>(x + p * step + i, count), count);
        } else {
          for (int64_t q = 0; q < count; ++q)
            store<Scalar>(panel + p * kWidth + i + q, load<T>(x + (i + q) * stride + p * step, 1), 1);
        }
      }
  }

  // panel[p * kWidth + i] = x[i * stride + p] for i < 4.
  template <int64_t kWidth>
  static void transpose_4(Scalar* panel, const T* x, int64_t stride, int64_t depth) {
    typedef Scalar Quad __attribute__((vector_size(4 * sizeof(Scalar))));
    constexpr int64_t kChunk = Simd<Scalar>::kLanes;
    alignas(64) Scalar rows[4][kChunk];
    Quad in[4], out[4];
    for (int64_t p = 0; p < depth; p += kChunk) {
      const int64_t count = smaller(kChunk, depth - p);
      for (int i = 0; i < 4; ++i) {
        const T* row = x + i * stride + p;
        store<Scalar>(rows[i], count == kChunk ? load<T>(row) : load<T>(row, count));
      }
      for (int64_t q = 0; q < count; q += 4) {
        for (int i = 0; i < 4; ++i) __builtin_memcpy(&in[i], &rows[i][q], sizeof(Quad));
        transpose_quads(in, out);
        for (int64_t i = 0; i < smaller(4, count - q); ++i)
          __builtin_memcpy(panel + (p + q + i) * kWidth, &out[i], sizeof(Quad));
      }
    }
  }

  static constexpr int kMiddle = kMr > 8 ? 8 : kMr;
  static constexpr int64_t kAhead = 16;  // steps of k

  // c[i][j] (+)= sum over p of a[i, p] b[p, j]. A row_step of 0 says that `a` is a packed panel. Columns that fit into
  // one vector take one.
  static void tile(int64_t rows, int64_t columns, int64_t depth, const Scalar* a, int64_t row_step, int64_t a_step,
                   const Scalar* b, int64_t b_step, Scalar* c, int64_t c_step, bool add) {
    if (columns <= kLanes) return tile_of<1>(rows, depth, a, row_step, a_step, b, b_step, c, c_step, add);
    tile_of<kVectors>(rows, depth, a, row_step, a_step, b, b_step, c, c_step, add);
  }

  template <int kUsed>
  static void tile_of(int64_t rows, int64_t depth, const Scalar* a, int64_t row_step, int64_t a_step, const Scalar* b,
                      int64_t b_step, Scalar* c, int64_t c_step, bool add) {
    if (row_step) {
      const auto in_place = [&]<int kRows>() __attribute__((always_inline)) {
        rows_tile<kRows, kUsed, false>(depth, a, row_step, a_step, b, b_step, c, c_step, add);
      };
      switch (rows) {
        case 1: return in_place.template operator()<1>();
        case 2: return in_place.template operator()<2>();
        case 3: return in_place.template operator()<3>();
        case 4: return in_place.template operator()<4>();
        default: return in_place.template operator()<kMr>();
      }
    }
    if (rows > kMiddle && b_step != kNr)
      return rows_tile<kMr, kUsed, true, true>(depth, a, 1, kMr, b, b_step, c, c_step, add);
    if (rows > kMiddle) return rows_tile<kMr, kUsed, true>(depth, a, 1, kMr, b, b_step, c, c_step, add);
    if (rows > 4) return rows_tile<kMiddle, kUsed, true>(depth, a, 1, kMr, b, b_step, c, c_step, add);
    if (rows > 2) return rows_tile<4, kUsed, true>(depth, a, 1, kMr, b, b_step, c, c_step, add);
    rows_tile<2, kUsed, true>(depth, a, 1, kMr, b, b_step, c, c_step, add);
  }

  // kFar: B may be read in place, where its rows lie far apart.
  template <int kRows, int kUsed, bool kPackedA, bool kFar = (kRows < kMr)>
  static void rows_tile(int64_t depth, const Scalar* a, int64_t row_step, int64_t a_step, const Scalar* b,
                        int64_t b_step, Scalar* c, int64_t c_step, bool add) {
    Vector sums[kRows][kUsed] = {};
    for (int i = 0; i < kRows; ++i)  // prefetches C while the sums are computed
      for (int64_t line = 0; line < kUsed * kLanes; line += 64 / sizeof(Scalar))
        __builtin_prefetch(c + i * c_step + line, 1);
    const int64_t row = kPackedA ? 1 : row_step, step = kPackedA ? kMr : a_step;
    for (int64_t p = 0; p < depth; ++p, a += step, b += b_step) {
      Vector columns[kUsed];
      for (int j = 0; j < kUsed; ++j) read(b + j * kLanes, columns[j]);
      if constexpr (kFar)
        for (int64_t line = 0; line < kUsed * kLanes; line += 64 / sizeof(Scalar))
          __builtin_prefetch(b + kAhead * b_step + line);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kUsed; ++j) sums[i][j] += a[i * row] * columns[j];
    }
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kUsed; ++j) {
        Vector old = {};
        if (add) read(c + i * c_step + j * kLanes, old);
        write(c + i * c_step + j * kLanes, old + sums[i][j]);
      }
  }
};

}  // namespace

void matmul_cpu_v3_packed_simd(const MatmulArgs& args, Queue& queue) {
  with_floating(args.dtype,
                [&]<class T>() { PackedMatmul<FmaKernel<T, typename ComputeOf<T>::type>>::run(args, queue); });
}

Footprint matmul_cpu_v3_footprint(const MatmulArgs& args, const Target& target) {
  return with_floating(args.dtype, [&]<class T>() {
    return PackedMatmul<FmaKernel<T, typename ComputeOf<T>::type>>::footprint(args, target);
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
