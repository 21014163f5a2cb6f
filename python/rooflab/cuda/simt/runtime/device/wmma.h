// nvcuda::wmma for 16-bit matrices: a stand-in. Which element of a fragment a thread holds is not specified by CUDA;
// here each thread holds neighbours in memory, so that a fragment is loaded by the widest loads.
#pragma once

#include "half.h"
#include "threads.h"

extern "C" void rl_matrix_product(unsigned site, unsigned line, const rl_product* product);

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K>
struct rl_extent;
template <int M, int N, int K>
struct rl_extent<matrix_a, M, N, K> {
  static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct rl_extent<matrix_b, M, N, K> {
  static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct rl_extent<accumulator, M, N, K> {
  static constexpr int rows = M, columns = N;
};

template <class T>
constexpr bool rl_is_16_bits = __is_same(T, half) || __is_same(T, __nv_bfloat16);

template <class Use, int M, int N, int K, class T, class Layout = row_major>
struct fragment {
  static_assert(M * N * K == 4096 && K == 16, "a product is 16 x 16 x 16, 32 x 8 x 16 or 8 x 32 x 16");
  static_assert(__is_same(Use, accumulator) || rl_is_16_bits<T>,
                "matrices of half or __nv_bfloat16 are multiplied here, and none of other types");
  static_assert(!__is_same(Use, accumulator) || __is_same(T, half) || __is_same(T, float),
                "an accumulator is of half or float here");
  static constexpr bool by_columns = __is_same(Layout, col_major);
  static constexpr int rows = rl_extent<Use, M, N, K>::rows, columns = rl_extent<Use, M, N, K>::columns;
  static constexpr int num_elements = rows * columns / 32;
  alignas(16) T x[num_elements];
};

template <class T, int Count>
RL_INLINE void rl_copy(T* to, const T* from) {
  constexpr int bytes = Count * sizeof(T), piece = bytes < 16 ? bytes : 16;
  typedef typename rl_carrier<piece>::type whole;
  rl_copy_whole<whole>(to, from);
  if constexpr (bytes > 16) rl_copy_whole<whole>((whole*)to + 1, (const whole*)from + 1);
}
// Where this thread's elements begin, in a matrix whose rows (or columns) are `stride` apart.
template <class F>
RL_INLINE long rl_place(unsigned stride, bool by_columns) {
  const unsigned length = by_columns ? F::rows : F::columns, first = rl_lane() * F::num_elements;
  return (long)(first / length) * stride + first % length;
}

template <class Use, int M, int N, int K, class T, class Layout>
RL_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& to, const T* from, unsigned stride, RL_LINE) {
  typedef fragment<Use, M, N, K, T, Layout> F;
  static_assert(!__is_same(Use, accumulator), "an accumulator is loaded with its layout");
  __syncwarp(0xffffffffu, line);
  rl_copy<T, F::num_elements>(to.x, from + rl_place<F>(stride, F::by_columns));
}
template <int M, int N, int K, class T>
RL_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T>& to, const T* from, unsigned stride, layout_t layout,
                                RL_LINE) {
  typedef fragment<accumulator, M, N, K, T> F;
  __syncwarp(0xffffffffu, line);
  if (layout == mem_row_major) return rl_copy<T, F::num_elements>(to.x, from + rl_place<F>(stride, false));
  for (int i = 0; i < F::num_elements; ++i) {
    const unsigned at = rl_lane() * F::num_elements + i;
    to.x[i] = from[at % F::columns * stride + at / F::columns];
  }
}
template <int M, int N, int K, class T>
RL_INLINE void store_matrix_sync(T* to, const fragment<accumulator, M, N, K, T>& from, unsigned stride, layout_t layout,
                                 RL_LINE) {
  typedef fragment<accumulator, M, N, K, T> F;
  __syncwarp(0xffffffffu, line);
  if (layout == mem_row_major) return rl_copy<T, F::num_elements>(to + rl_place<F>(stride, false), from.x);
  for (int i = 0; i < F::num_elements; ++i) {
    const unsigned at = rl_lane() * F::num_elements + i;
    to[at % F::columns * stride + at / F::columns] = from.x[i];
  }
}
template <class F, class T>
RL_INLINE void fill_fragment(F& to, T value) {
#pragma GCC unroll 16
  for (int i = 0; i < F::num_elements; ++i) to.x[i] = value;
}

template <int M, int N, int K, class T, class A, class B, class C>
RL_INLINE void mma_sync(fragment<accumulator, M, N, K, C>& d, const fragment<matrix_a, M, N, K, T, A>& a,
                        const fragment<matrix_b, M, N, K, T, B>& b, const fragment<accumulator, M, N, K, C>& c,
                        RL_LINE) {
  static_assert(__is_same(T, half) || __is_same(C, float), "the accumulator of a product of __nv_bfloat16 is of float");
  const rl_product product = {
      a.x, b.x, c.x, d.x, M, N, K, __is_same(T, __nv_bfloat16), __is_same(C, half), a.by_columns, b.by_columns};
  rl_matrix_product(0, line, &product);
}

}  // namespace wmma
}  // namespace nvcuda
