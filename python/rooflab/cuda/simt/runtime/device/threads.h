// Barriers, what the threads of a warp do together, and loads and stores by name. There are no branches here, so none
// is counted that the kernel does not have.
#pragma once

#include "base.h"

RL_INLINE void __syncthreads(RL_LINE) { rl_barrier(0, line, 0, rl_vote_count); }
RL_INLINE int __syncthreads_count(int predicate, RL_LINE) { return rl_barrier(0, line, predicate, rl_vote_count); }
RL_INLINE int __syncthreads_and(int predicate, RL_LINE) { return rl_barrier(0, line, predicate, rl_vote_all); }
RL_INLINE int __syncthreads_or(int predicate, RL_LINE) { return rl_barrier(0, line, predicate, rl_vote_any); }
RL_INLINE void __threadfence() {}
RL_INLINE void __threadfence_block() {}
RL_INLINE void __threadfence_system() {}
RL_INLINE void __nanosleep(unsigned) {}
RL_INLINE void __trap(RL_LINE) { rl_trap(0, line); }

RL_INLINE void __syncwarp(unsigned mask = 0xffffffffu, RL_LINE) {
  rl_warp_operation(0, line, mask, 0, rl_warp_sync, 0);
}
RL_INLINE unsigned __activemask(RL_LINE) { return rl_active(0, line); }
RL_INLINE unsigned __ballot_sync(unsigned mask, int predicate, RL_LINE) {
  return (unsigned)rl_warp_operation(0, line, mask, predicate != 0, rl_warp_ballot, 0);
}
RL_INLINE int __all_sync(unsigned mask, int predicate, RL_LINE) {
  return (int)rl_warp_operation(0, line, mask, predicate != 0, rl_warp_all, 0);
}
RL_INLINE int __any_sync(unsigned mask, int predicate, RL_LINE) {
  return (int)rl_warp_operation(0, line, mask, predicate != 0, rl_warp_any, 0);
}

template <class T>
RL_INLINE unsigned long rl_to_bits(T value) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  unsigned long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
RL_INLINE T rl_from_bits(unsigned long bits) {
  T value;
  __builtin_memcpy((void*)&value, &bits, sizeof(T));
  return value;
}

#define RL_SHUFFLE(NAME, WHAT, OPERAND)                                                                                \
  template <class T>                                                                                                   \
  RL_INLINE T NAME(unsigned mask, T value, OPERAND operand, int width = 32, RL_LINE) {                                 \
    return rl_from_bits<T>(rl_warp_operation(0, line, mask, rl_to_bits(value), WHAT | width << 8, (unsigned)operand)); \
  }
RL_SHUFFLE(__shfl_sync, rl_warp_shuffle, int)
RL_SHUFFLE(__shfl_up_sync, rl_warp_shuffle_up, unsigned)
RL_SHUFFLE(__shfl_down_sync, rl_warp_shuffle_down, unsigned)
RL_SHUFFLE(__shfl_xor_sync, rl_warp_shuffle_xor, int)

template <class T>
RL_INLINE unsigned __match_any_sync(unsigned mask, T value, RL_LINE) {
  return (unsigned)rl_warp_operation(0, line, mask, rl_to_bits(value), rl_warp_match_any, 0);
}
template <class T>
RL_INLINE unsigned __match_all_sync(unsigned mask, T value, int* all, RL_LINE) {
  const unsigned same = (unsigned)rl_warp_operation(0, line, mask, rl_to_bits(value), rl_warp_match_all, 0);
  *all = same != 0;
  return same;
}
#define RL_WARP_REDUCE(NAME, WHAT)                                          \
  RL_INLINE unsigned NAME(unsigned mask, unsigned value, RL_LINE) {         \
    return (unsigned)rl_warp_operation(0, line, mask, value, WHAT, 0);      \
  }                                                                         \
  RL_INLINE int NAME(unsigned mask, int value, RL_LINE) {                   \
    return (int)rl_warp_operation(0, line, mask, (unsigned)value, WHAT, 1); \
  }
RL_WARP_REDUCE(__reduce_add_sync, rl_warp_add)
RL_WARP_REDUCE(__reduce_min_sync, rl_warp_min)
RL_WARP_REDUCE(__reduce_max_sync, rl_warp_max)
RL_WARP_REDUCE(__reduce_and_sync, rl_warp_and)
RL_WARP_REDUCE(__reduce_or_sync, rl_warp_or)
RL_WARP_REDUCE(__reduce_xor_sync, rl_warp_xor)

#define RL_LOAD(NAME)                                           \
  template <class T>                                            \
  inline __attribute__((always_inline)) T NAME(const T* from) { \
    return *from;                                               \
  }
RL_LOAD(__ldg)
RL_LOAD(__ldca)
RL_LOAD(__ldcg)
RL_LOAD(__ldcs)
RL_LOAD(__ldlu)
RL_LOAD(__ldcv)
template <class T>
struct rl_same {  // a parameter that does not decide T
  typedef T type;
};
#define RL_STORE(NAME)                                                                      \
  template <class T>                                                                        \
  inline __attribute__((always_inline)) void NAME(T* to, typename rl_same<T>::type value) { \
    *to = value;                                                                            \
  }
RL_STORE(__stwb)
RL_STORE(__stcg)
RL_STORE(__stcs)
RL_STORE(__stwt)

extern "C" void* memcpy(void* to, const void* from, size_t bytes) noexcept;
extern "C" void* memset(void* to, int value, size_t bytes) noexcept;
