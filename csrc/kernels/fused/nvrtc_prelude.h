// What the functors need from the standard library and from the core, for NVRTC, which has no host headers. Kernels
// that are compiled at run time include this file instead of those headers (fused_source.cpp lists them).
#pragma once

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

namespace std {

using ::abs, ::exp, ::exp2, ::log, ::log2, ::log10, ::tanh, ::sqrt, ::sin, ::cos, ::pow, ::fmod, ::fma;
using ::copysign;
using ::floor, ::ceil, ::trunc, ::rint;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;

template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
inline constexpr bool is_integral_v = is_same_v<T, bool> || is_same_v<T, int32_t> || is_same_v<T, int64_t>;

template <bool kCondition, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool kCondition, class A, class B>
using conditional_t = typename conditional<kCondition, A, B>::type;

template <class T>
using make_unsigned_t = conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

template <class T, unsigned long kSize>
struct array {
  T items[kSize];
  constexpr const T& operator[](unsigned long i) const { return items[i]; }
  constexpr unsigned long size() const { return kSize; }
};
template <class T, unsigned long kSize>
constexpr array<T, kSize> to_array(T (&&items)[kSize]) {
  array<T, kSize> made{};
  for (unsigned long i = 0; i < kSize; ++i) made.items[i] = items[i];
  return made;
}

}  // namespace std

namespace rooflab {

inline constexpr int kMaxDims = 8;

}  // namespace rooflab
