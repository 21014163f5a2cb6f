// Atomic operations, each one call of the runner: a compare-and-swap loop would be counted as what it is made of.
#pragma once

#include "half.h"
#include "threads.h"

template <class T>
struct rl_atomic_type {
  static constexpr int value = 0;
};
#define RL_ATOMIC_TYPE(T, TYPE)        \
  template <>                          \
  struct rl_atomic_type<T> {           \
    static constexpr int value = TYPE; \
  };
RL_ATOMIC_TYPE(int, rl_type_int)
RL_ATOMIC_TYPE(unsigned, rl_type_unsigned)
RL_ATOMIC_TYPE(long long, rl_type_long)
RL_ATOMIC_TYPE(unsigned long long, rl_type_unsigned_long)
RL_ATOMIC_TYPE(float, rl_type_float)
RL_ATOMIC_TYPE(double, rl_type_double)
RL_ATOMIC_TYPE(half, rl_type_half)
RL_ATOMIC_TYPE(__nv_bfloat16, rl_type_bfloat16)
RL_ATOMIC_TYPE(half2, rl_type_half2)
RL_ATOMIC_TYPE(__nv_bfloat162, rl_type_bfloat162)
RL_ATOMIC_TYPE(unsigned short, rl_type_bits16)

// For floats these compare and move bits, which is what CUDA does.
template <class T>
constexpr int rl_bits_type = sizeof(T) == 8   ? rl_type_unsigned_long
                             : sizeof(T) == 2 ? rl_type_bits16
                                              : rl_type_unsigned;

template <class T, class... Types>
constexpr bool rl_is_any = (__is_same(T, Types) || ...);
// A type that CUDA has no such operation for is an error, as it is there.
#define RL_ATOMIC_TYPES(NAME, ...) \
  static_assert(rl_is_any<T, __VA_ARGS__>, "CUDA's " #NAME " takes a pointer to one of: " #__VA_ARGS__)
#define RL_ATOMIC(NAME, WHAT, TYPE, ...)                                                             \
  template <class T>                                                                                 \
  RL_INLINE T NAME(T* place, typename rl_same<T>::type value, RL_LINE) {                             \
    RL_ATOMIC_TYPES(NAME, __VA_ARGS__);                                                              \
    return rl_from_bits<T>(rl_at_atomic(0, line, place, WHAT | TYPE << 8, rl_to_bits<T>(value), 0)); \
  }                                                                                                  \
  template <class T>                                                                                 \
  RL_INLINE T NAME##_block(T* place, typename rl_same<T>::type value, RL_LINE) {                     \
    return NAME(place, value, line);                                                                 \
  }                                                                                                  \
  template <class T>                                                                                 \
  RL_INLINE T NAME##_system(T* place, typename rl_same<T>::type value, RL_LINE) {                    \
    return NAME(place, value, line);                                                                 \
  }
RL_ATOMIC(atomicAdd, rl_atomic_add, rl_atomic_type<T>::value, int, unsigned, unsigned long long, float, double, half,
          half2, __nv_bfloat16, __nv_bfloat162)
RL_ATOMIC(atomicSub, rl_atomic_subtract, rl_atomic_type<T>::value, int, unsigned)
RL_ATOMIC(atomicMin, rl_atomic_min, rl_atomic_type<T>::value, int, unsigned, long long, unsigned long long)
RL_ATOMIC(atomicMax, rl_atomic_max, rl_atomic_type<T>::value, int, unsigned, long long, unsigned long long)
RL_ATOMIC(atomicAnd, rl_atomic_and, rl_atomic_type<T>::value, int, unsigned, unsigned long long)
RL_ATOMIC(atomicOr, rl_atomic_or, rl_atomic_type<T>::value, int, unsigned, unsigned long long)
RL_ATOMIC(atomicXor, rl_atomic_xor, rl_atomic_type<T>::value, int, unsigned, unsigned long long)
RL_ATOMIC(atomicInc, rl_atomic_increment, rl_type_unsigned, unsigned)
RL_ATOMIC(atomicDec, rl_atomic_decrement, rl_type_unsigned, unsigned)
RL_ATOMIC(atomicExch, rl_atomic_exchange, rl_bits_type<T>, int, unsigned, unsigned long long, float)

template <class T>
RL_INLINE T atomicCAS(T* place, typename rl_same<T>::type compare, typename rl_same<T>::type value, RL_LINE) {
  RL_ATOMIC_TYPES(atomicCAS, int, unsigned, unsigned long long, unsigned short);
  return rl_from_bits<T>(rl_at_atomic(0, line, place, rl_atomic_compare | rl_bits_type<T> << 8, rl_to_bits<T>(value),
                                      rl_to_bits<T>(compare)));
}
template <class T>
RL_INLINE T atomicCAS_block(T* place, typename rl_same<T>::type compare, typename rl_same<T>::type value, RL_LINE) {
  return atomicCAS(place, compare, value, line);
}
template <class T>
RL_INLINE T atomicCAS_system(T* place, typename rl_same<T>::type compare, typename rl_same<T>::type value, RL_LINE) {
  return atomicCAS(place, compare, value, line);
}
