// CUDA's device side for a C++ compiler: what a kernel finds without any include. Compiled before the kernel's source.
#pragma once

#include "atomics.h"
#include "base.h"
#include "cooperative_groups.h"
#include "half.h"
#include "integers.h"
#include "math_functions.h"
#include "standard.h"
#include "threads.h"
#include "vectors.h"
#include "wmma.h"

template <class T>
constexpr bool rl_is_pointer = false;
template <class T>
constexpr bool rl_is_pointer<T*> = true;
template <class T>
RL_INLINE rl_value rl_boxed(T value) {
  static_assert(!__is_class(T), "printf takes numbers, pointers and strings: convert a half with __half2float");
  if constexpr (__is_same(T, float) || __is_same(T, double)) {
    const double wide = value;
    rl_value boxed = {0, rl_real};
    __builtin_memcpy(&boxed.bits, &wide, 8);
    return boxed;
  } else if constexpr (!__is_class(T)) {
    return {(unsigned long long)value, rl_is_pointer<T> ? rl_pointer : rl_integer};
  }
}
template <class... Values>
RL_INLINE int printf(const char* format, Values... values) {
  const rl_value boxed[] = {rl_boxed(values)..., {0, rl_integer}};
  rl_printf(format, boxed, sizeof...(values));
  return sizeof...(values);
}

extern char __start_rl_device[] __attribute__((weak)), __stop_rl_device[] __attribute__((weak));
extern char __start_rl_constant[] __attribute__((weak)), __stop_rl_constant[] __attribute__((weak));
extern "C" {
extern __attribute__((visibility("default"))) char* const rl_sections[];
char* const rl_sections[] = {__start_rl_device, __stop_rl_device, __start_rl_constant, __stop_rl_constant};
}

// A kernel's entry: its arguments by their addresses. And what Python asks of it and of each parameter.
template <class T>
struct rl_pointee {
  static constexpr char code = '?';
};
#define RL_POINTEE(TYPE, CODE)         \
  template <>                          \
  struct rl_pointee<TYPE> {            \
    static constexpr char code = CODE; \
  };
RL_POINTEE(float, 'f')
RL_POINTEE(double, 'd')
RL_POINTEE(half, 'h')
RL_POINTEE(__nv_bfloat16, 'b')
RL_POINTEE(int, 'i')
RL_POINTEE(long, 'l')
RL_POINTEE(long long, 'l')
RL_POINTEE(bool, '1')
// Other integers, by their bytes.
RL_POINTEE(char, 'B')
RL_POINTEE(signed char, 'B')
RL_POINTEE(unsigned char, 'B')
RL_POINTEE(short, 'S')
RL_POINTEE(unsigned short, 'S')
RL_POINTEE(unsigned, 'U')
RL_POINTEE(unsigned long, 'L')
RL_POINTEE(unsigned long long, 'L')
template <class T, int N>
struct rl_pointee<rl_vector<T, N>> : rl_pointee<T> {};
template <class T>
struct rl_pointee<volatile T> : rl_pointee<T> {};
template <class T, size_t N>
struct rl_pointee<T[N]> : rl_pointee<T> {};
template <class T, size_t N>
struct rl_pointee<const T[N]> : rl_pointee<T> {};
template <class T>
struct rl_parameter {  // neither a pointer nor a number: a structure
  static constexpr char kind = __is_enum(T) ? 'i' : 's', is_signed = 0, pointee = '?';
};
#define RL_NUMBER(TYPE, KIND)                                                         \
  template <>                                                                         \
  struct rl_parameter<TYPE> {                                                         \
    static constexpr char kind = KIND, is_signed = (TYPE)-1 < (TYPE)0, pointee = '?'; \
  };
RL_NUMBER(float, 'r')
RL_NUMBER(double, 'r')
template <>
struct rl_parameter<bool> {
  static constexpr char kind = 'i', is_signed = 0, pointee = rl_pointee<bool>::code;
};
RL_NUMBER(char, 'i')
RL_NUMBER(signed char, 'i')
RL_NUMBER(unsigned char, 'i')
RL_NUMBER(short, 'i')
RL_NUMBER(unsigned short, 'i')
RL_NUMBER(int, 'i')
RL_NUMBER(unsigned, 'i')
RL_NUMBER(long, 'i')
RL_NUMBER(unsigned long, 'i')
RL_NUMBER(long long, 'i')
RL_NUMBER(unsigned long long, 'i')
template <class T>
struct rl_parameter<T*> {
  static constexpr char kind = 'p', is_signed = 1, pointee = rl_pointee<T>::code;
};
template <class T>
struct rl_parameter<const T*> {
  static constexpr char kind = 'c', is_signed = 1, pointee = rl_pointee<T>::code;
};
template <unsigned... I>
struct rl_places {};
template <unsigned N, unsigned... I>
struct rl_counted : rl_counted<N - 1, N - 1, I...> {};
template <unsigned... I>
struct rl_counted<0, I...> {
  using places = rl_places<I...>;
};
template <class... More>
constexpr int rl_first(long first, More...) {  // of __launch_bounds__: the most threads a block
  return first < 1 || first > 1024 ? 1024 : (int)first;
}
template <class... A>
struct rl_signature {
  char text[4 + 4 * sizeof...(A) + 1];
};
template <class... A>
constexpr rl_signature<A...> rl_describe(int bound, void (*)(A...)) {
  rl_signature<A...> made = {};
  unsigned at = 0;
  for (int unit = 1000; unit > 0; unit /= 10) made.text[at++] = char('0' + bound / unit % 10);
  ((made.text[at++] = rl_parameter<A>::kind, made.text[at++] = rl_parameter<A>::pointee,
    made.text[at++] = char('0' + rl_parameter<A>::is_signed),
    made.text[at++] = char('a' + (sizeof(A) > 16 ? 17 : sizeof(A)))),
   ...);
  made.text[at] = 0;
  return made;
}
template <auto F, class... A, unsigned... I>
__attribute__((always_inline)) inline void rl_call(void (*)(A...), rl_places<I...>, void** arguments) {
  F(*static_cast<A*>(arguments[I])...);
}
template <class... A>
constexpr unsigned rl_count(void (*)(A...)) {
  return sizeof...(A);
}
#define RL_NO_KERNEL(NUMBER) \
  extern "C" __attribute__((visibility("default"), used)) const char rl_parameters_##NUMBER[] = "-";
#define RL_KERNEL(NUMBER, BOUND, TYPE, ...)                                                                            \
  extern "C" __attribute__((visibility("default"), used)) const auto rl_parameters_##NUMBER =                          \
      rl_describe(BOUND, static_cast<TYPE*>(&__VA_ARGS__));                                                            \
  extern "C"                                                                                                           \
      __attribute__((visibility("default"), no_sanitize("thread", "bounds", "object-size"))) void rl_kernel_##NUMBER(  \
          void** arguments) {                                                                                          \
    rl_call<static_cast<TYPE*>(&__VA_ARGS__)>(                                                                         \
        static_cast<TYPE*>(nullptr), typename rl_counted<rl_count(static_cast<TYPE*>(nullptr))>::places(), arguments); \
    rl_exit();                                                                                                         \
  }
