// Vectors of 64 bytes for *_simd.cpp files: 16 floats (F32x16) or 8 doubles (F64x8) on every instruction set, held in
// one AVX-512 register, two of AVX2 or four of 16 bytes. Arithmetic uses the compiler's vector extension; what that has
// no operator for (square root, FMA, binary16) comes from the instruction set's header in simd/. Everything is inlined
// and lives in the namespace of one instruction set (see per_isa.h); for the same reason use load() and store() for
// Half and BFloat16 here, not their members.
//
//   load<T>(p), load<T>(p, n)        T in float, Half, BFloat16 -> F32x16;  double -> F64x8.  n lanes: the others are 0
//   store(p, v), store(p, v, n)      rounds to nearest even
//   + - * /  -x  < <= > >= == !=     comparisons give a Mask:  & | ~  any  select(mask, a, b)  store(bool*, mask)
//   lanes_below(n)                   the Mask of the first n lanes
//   fma sqrt abs min max             min and max pass NaN on, as NumPy and PyTorch do
//   rint floor ceil trunc            exact
//   exp log                          float: <= 1.6 ulp, exp <= 1 (without FMA 1.4); double: <= 1 ulp (1.2)
//   tanh sin cos                     float: <= 1.6 ulp; double: the C library, by lane
//   sum max_lane min_lane            the same tree order on every instruction set
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/dtype.h"

#if !defined(ROOFLAB_ISA) || !defined(ROOFLAB_SIMD)
#error "simd.h is for files compiled once per instruction set, with ROOFLAB_ISA and ROOFLAB_SIMD defined"
#endif

#define ROOFLAB_INLINE [[gnu::always_inline]] inline

#include "kernels/common/simd_register.h"

namespace rooflab::kernels::ROOFLAB_ISA {

ROOFLAB_INLINE int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
ROOFLAB_INLINE int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }
ROOFLAB_INLINE int64_t clamp(int64_t x, int64_t low, int64_t high) { return smaller(larger(x, low), high); }
ROOFLAB_INLINE int64_t parts_of(int64_t total, int64_t limit) { return (total + limit - 1) / limit; }
ROOFLAB_INLINE int64_t round_up(int64_t x, int64_t multiple) { return parts_of(x, multiple) * multiple; }

template <class Scalar>
struct NativeOf;
template <>
struct NativeOf<float> {
  using Value = NativeFloat;
  using Mask = NativeInt;
};
template <>
struct NativeOf<double> {
  using Value = NativeDouble;
  using Mask = NativeLong;
};

template <class Scalar>
struct Mask {
  typename NativeOf<Scalar>::Mask part[kParts];  // all ones where true
};

template <class Scalar>
struct Simd {
  static constexpr int kLanes = 64 / sizeof(Scalar);
  typename NativeOf<Scalar>::Value part[kParts];

  Simd() = default;
  ROOFLAB_INLINE Simd(Scalar x) {
    for (int i = 0; i < kParts; ++i) part[i] = x - typename NativeOf<Scalar>::Value{};  // x - 0 is x, -0 and NaN too
  }
};

using F32x16 = Simd<float>;
using F64x8 = Simd<double>;

// The scalar type in which elements of type T are computed, and its vector.
template <class T>
struct ComputeOf {
  using type = float;
};
template <>
struct ComputeOf<double> {
  using type = double;
};
template <class T>
using SimdOf = Simd<typename ComputeOf<T>::type>;

// Calls f.operator()<T>() with the type of the dtype, which must be floating.
template <class F>
ROOFLAB_INLINE auto with_floating(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat64: return f.template operator()<double>();
    case DType::kFloat32: return f.template operator()<float>();
    case DType::kFloat16: return f.template operator()<Half>();
    case DType::kBFloat16: return f.template operator()<BFloat16>();
    case DType::kInt64:
    case DType::kInt32:
    case DType::kBool: break;
  }
  __builtin_trap();
}

// ---- lifting functions of registers to vectors

template <class S, class F>
ROOFLAB_INLINE Simd<S> map(Simd<S> a, F f) {
  Simd<S> out;
  for (int i = 0; i < kParts; ++i) out.part[i] = f(a.part[i]);
  return out;
}
template <class S, class F>
ROOFLAB_INLINE Simd<S> map(Simd<S> a, Simd<S> b, F f) {
  Simd<S> out;
  for (int i = 0; i < kParts; ++i) out.part[i] = f(a.part[i], b.part[i]);
  return out;
}
template <class S, class F>
ROOFLAB_INLINE Mask<S> compare(Simd<S> a, Simd<S> b, F f) {
  Mask<S> out;
  for (int i = 0; i < kParts; ++i) out.part[i] = f(a.part[i], b.part[i]);
  return out;
}

// Binary operators take a vector or a scalar on either side: the parameter that is not deduced converts.
template <class T>
struct Same {
  using type = T;
};
template <class T>
using same_t = typename Same<T>::type;

#define ROOFLAB_SIMD_OPERATOR(Result, lift, op)                                      \
  template <class S>                                                                 \
  ROOFLAB_INLINE Result<S> operator op(Simd<S> a, Simd<S> b) {                       \
    return lift(                                                                     \
        a, b, [](auto x, auto y) __attribute__((always_inline)) { return x op y; }); \
  }                                                                                  \
  template <class S>                                                                 \
  ROOFLAB_INLINE Result<S> operator op(Simd<S> a, same_t<S> b) {                     \
    return a op Simd<S>(b);                                                          \
  }                                                                                  \
  template <class S>                                                                 \
  ROOFLAB_INLINE Result<S> operator op(same_t<S> a, Simd<S> b) {                     \
    return Simd<S>(a) op b;                                                          \
  }
ROOFLAB_SIMD_OPERATOR(Simd, map, +)
ROOFLAB_SIMD_OPERATOR(Simd, map, -)
ROOFLAB_SIMD_OPERATOR(Simd, map, *)
ROOFLAB_SIMD_OPERATOR(Simd, map, /)
ROOFLAB_SIMD_OPERATOR(Mask, compare, <)
ROOFLAB_SIMD_OPERATOR(Mask, compare, <=)
ROOFLAB_SIMD_OPERATOR(Mask, compare, >)
ROOFLAB_SIMD_OPERATOR(Mask, compare, >=)
ROOFLAB_SIMD_OPERATOR(Mask, compare, ==)
ROOFLAB_SIMD_OPERATOR(Mask, compare, !=)
#undef ROOFLAB_SIMD_OPERATOR

template <class S>
ROOFLAB_INLINE Simd<S> operator-(Simd<S> a) {
  return map(
      a, [](auto x) __attribute__((always_inline)) { return -x; });
}
template <class S>
ROOFLAB_INLINE Simd<S>& operator+=(Simd<S>& a, Simd<S> b) {
  return a = a + b;
}
template <class S>
ROOFLAB_INLINE Simd<S>& operator*=(Simd<S>& a, Simd<S> b) {
  return a = a * b;
}

template <class S>
ROOFLAB_INLINE Mask<S> operator&(Mask<S> a, Mask<S> b) {
  for (int i = 0; i < kParts; ++i) a.part[i] &= b.part[i];
  return a;
}
template <class S>
ROOFLAB_INLINE Mask<S> operator|(Mask<S> a, Mask<S> b) {
  for (int i = 0; i < kParts; ++i) a.part[i] |= b.part[i];
  return a;
}
template <class S>
ROOFLAB_INLINE Mask<S> operator~(Mask<S> a) {
  for (int i = 0; i < kParts; ++i) a.part[i] = ~a.part[i];
  return a;
}
template <class S>
ROOFLAB_INLINE Simd<S> select(Mask<S> mask, Simd<S> a, Simd<S> b) {
  for (int i = 0; i < kParts; ++i) b.part[i] = mask.part[i] ? a.part[i] : b.part[i];
  return b;
}
template <class S>
ROOFLAB_INLINE bool any(Mask<S> mask) {
  long long words[8], all = 0;
  std::memcpy(words, mask.part, 64);
  for (long long word : words) all |= word;
  return all != 0;
}
template <class S>
ROOFLAB_INLINE void store(bool* out, Mask<S> mask, int64_t n = Simd<S>::kLanes) {
  decltype(mask.part[0][0] + 0) lanes[Simd<S>::kLanes];
  std::memcpy(lanes, mask.part, 64);
  for (int64_t i = 0; i < n; ++i) out[i] = lanes[i] != 0;
}

// ---- memory

template <class T>
ROOFLAB_INLINE SimdOf<T> load(const T* p) {
  SimdOf<T> out;
  for (int i = 0; i < kParts; ++i) read(p + i * (SimdOf<T>::kLanes / kParts), out.part[i]);
  return out;
}
template <class T>
ROOFLAB_INLINE void store(T* p, SimdOf<T> x) {
  constexpr int kStep = SimdOf<T>::kLanes / kParts;
  if constexpr (sizeof(T) == 2 && kParts > 1) {
    for (int i = 0; i < kParts; i += 2) {
      const NativeU16x2 bits = narrow<T>(x.part[i], x.part[i + 1]);
      std::memcpy(static_cast<void*>(p + i * kStep), &bits, sizeof(bits));
    }
  } else {
    for (int i = 0; i < kParts; ++i) write(p + i * kStep, x.part[i]);
  }
}

// The first n lanes (0 <= n <= kLanes): nothing beyond p[n - 1] is touched.
template <class T>
ROOFLAB_INLINE SimdOf<T> load(const T* p, int64_t n) {
  constexpr int kStep = SimdOf<T>::kLanes / kParts;
  SimdOf<T> out;
  for (int i = 0; i < kParts; ++i) read(p + i * kStep, clamp(n - i * kStep, 0, kStep), out.part[i]);
  return out;
}
template <class T>
ROOFLAB_INLINE void store(T* p, SimdOf<T> x, int64_t n) {
  constexpr int kStep = SimdOf<T>::kLanes / kParts;
  for (int i = 0; i < kParts; ++i) write(p + i * kStep, clamp(n - i * kStep, 0, kStep), x.part[i]);
}

// True in the first n lanes.
template <class S>
ROOFLAB_INLINE Mask<S> lanes_below(int64_t n) {
  using Index = std::conditional_t<sizeof(S) == 8, int64_t, int32_t>;
  constexpr Index kIndices[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Mask<S> out;
  for (int i = 0; i < kParts; ++i) {
    std::memcpy(&out.part[i], kIndices + i * (Simd<S>::kLanes / kParts), kNativeBytes);
    out.part[i] = out.part[i] < static_cast<Index>(n);
  }
  return out;
}

// ---- arithmetic

template <class S>
ROOFLAB_INLINE Simd<S> fma(Simd<S> a, Simd<S> b, Simd<S> c) {  // a * b + c, rounded once where the CPU can
  for (int i = 0; i < kParts; ++i) c.part[i] = native_fma(a.part[i], b.part[i], c.part[i]);
  return c;
}
template <class S>
ROOFLAB_INLINE Simd<S> sqrt(Simd<S> a) {
  return map(
      a, [](auto x) __attribute__((always_inline)) { return native_sqrt(x); });
}
template <class S>
ROOFLAB_INLINE Simd<S> abs(Simd<S> a) {
  return map(
      a, [](auto x) __attribute__((always_inline)) {
        using Bits = typename NativeOf<S>::Mask;
        return (decltype(x))((Bits)x & ~(Bits)(-decltype(x){}));
      });
}
// The larger of each lane; NaN where either is. Also on a register.
template <class V>
ROOFLAB_INLINE V larger_or_nan(V x, V y) {
  const V larger = x > y ? x : y;  // y when either is NaN
  return x == x ? larger : x;
}
template <class S>
ROOFLAB_INLINE Simd<S> max(Simd<S> a, Simd<S> b) {
  return map(
      a, b, [](auto x, auto y) __attribute__((always_inline)) { return larger_or_nan(x, y); });
}
template <class S>
ROOFLAB_INLINE Simd<S> min(Simd<S> a, Simd<S> b) {
  return map(
      a, b, [](auto x, auto y) __attribute__((always_inline)) {
        const auto smaller = x < y ? x : y;
        return x == x ? smaller : x;
      });
}

// Applies a C function to one lane at a time.
template <class S, class F>
ROOFLAB_INLINE Simd<S> map_lanes(Simd<S> a, F f) {
  S lanes[Simd<S>::kLanes];
  store<S>(lanes, a);
  for (S& lane : lanes) lane = f(lane);
  return load<S>(lanes);
}

// Folds each lane with the one `kHalf` further on, and so on by halves; the result is in lane 0.
template <int kHalf, class V, class F>
ROOFLAB_INLINE V fold_halves(V x, F f) {
  if constexpr (kHalf == 0)
    return x;
  else
    return fold_halves<kHalf / 2>(f(x, rotate<kHalf>(x, std::make_integer_sequence<int, sizeof(V) / sizeof(x[0])>{})),
                                  f);
}
template <class S, class F>
ROOFLAB_INLINE S fold_lanes(Simd<S> a, F f) {
  for (int half = kParts / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) a.part[i] = f(a.part[i], a.part[i + half]);
  return fold_halves<Simd<S>::kLanes / kParts / 2>(a.part[0], f)[0];
}

// Lanes [0, kHalf) of every 2 kHalf lanes of a and then of b, each folded with the one kHalf further on.
template <int kHalf, class V, class F, int... kLane>
ROOFLAB_INLINE V fold_pair(V a, V b, F f, std::integer_sequence<int, kLane...>) {
  return f(shuffle<(kLane / kHalf * 2 * kHalf + kLane % kHalf)...>(a, b),
           shuffle<(kLane / kHalf * 2 * kHalf + kLane % kHalf + kHalf)...>(a, b));
}
template <int kHalf, class V, class F>
ROOFLAB_INLINE V fold_registers(V* rows, F f) {
  if constexpr (kHalf == 0) {
    return rows[0];
  } else {
    for (int i = 0; i < kHalf; ++i)
      rows[i] = fold_pair<kHalf>(rows[2 * i], rows[2 * i + 1], f,
                                 std::make_integer_sequence<int, sizeof(V) / sizeof(rows[0][0])>{});
    return fold_registers<kHalf / 2>(rows, f);
  }
}
// Lane l is what fold_lanes makes of rows[l], for as many rows as there are lanes: a quarter of the instructions.
template <class S, class F>
ROOFLAB_INLINE Simd<S> fold_rows(const Simd<S>* rows, F f) {
  constexpr int kLanes = Simd<S>::kLanes;
  typename NativeOf<S>::Value folded[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    Simd<S> row = rows[l];
    for (int half = kParts / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) row.part[i] = f(row.part[i], row.part[i + half]);
    folded[l] = row.part[0];
  }
  Simd<S> out;
  for (int i = 0; i < kParts; ++i) out.part[i] = fold_registers<kLanes / kParts / 2>(folded + i * (kLanes / kParts), f);
  return out;
}
template <class S>
ROOFLAB_INLINE S sum(Simd<S> a) {
  return fold_lanes(
      a, [](auto x, auto y) __attribute__((always_inline)) { return x + y; });
}
template <class S>
ROOFLAB_INLINE S max_lane(Simd<S> a) {
  return fold_lanes(
      a, [](auto x, auto y) __attribute__((always_inline)) { return larger_or_nan(x, y); });
}
template <class S>
ROOFLAB_INLINE S min_lane(Simd<S> a) {
  return -max_lane(-a);
}

}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd_math.h"
