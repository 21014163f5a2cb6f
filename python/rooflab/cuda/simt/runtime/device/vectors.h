// float4 and its like. Each is copied as one value of its whole size, as a GPU loads it.
#pragma once

#include "base.h"

template <int Bytes>
struct rl_carrier;
template <>
struct rl_carrier<2> {
  typedef unsigned short __attribute__((may_alias)) type;
};
template <>
struct rl_carrier<4> {
  typedef unsigned __attribute__((may_alias)) type;
};
template <>
struct rl_carrier<8> {
  typedef unsigned long __attribute__((may_alias)) type;
};
template <>
struct rl_carrier<16> {
  typedef unsigned long __attribute__((may_alias, vector_size(16))) type;
};

extern "C" [[noreturn]] void rl_misaligned(unsigned site, const void* place, unsigned size, int is_store);

// One access. Where the compiler sees that an address is no multiple of the size, it would go in pieces that are.
#define RL_IS_MISALIGNED(place, size) \
  (__builtin_constant_p((size_t)(place) & ((size)-1)) && ((size_t)(place) & ((size)-1)) != 0)
template <class Whole>
RL_INLINE void rl_copy_whole(void* to, const void* from) {
  if (RL_IS_MISALIGNED(from, sizeof(Whole))) rl_misaligned(0, from, sizeof(Whole), 0);
  if (RL_IS_MISALIGNED(to, sizeof(Whole))) rl_misaligned(0, to, sizeof(Whole), 1);
  *(Whole*)to = *(const Whole*)from;
}

// The one value of `float4 v = {1};`: what takes it converts no number on its own, so `float4 v = 1;` is an error.
// `float4(1)` is an error in CUDA only.
template <class T>
struct rl_only {
  T value;
  constexpr rl_only(T value) : value(value) {}
};

template <class T, int N>
struct rl_vector;
template <class T>
struct rl_vector<T, 1> {
  T x;
};
template <class T>
struct rl_vector<T, 3> {  // three values, in the language and on a GPU
  T x, y, z;
};
template <class T>
struct alignas(2 * sizeof(T)) rl_vector<T, 2> {
  typedef typename rl_carrier<2 * sizeof(T)>::type whole;
  T x, y;
  rl_vector() = default;
  constexpr rl_vector(rl_only<T> x) : x(x.value), y() {}
  constexpr rl_vector(T x, T y) : x(x), y(y) {}
  RL_INLINE rl_vector(const rl_vector& from) { rl_copy_whole<whole>(this, &from); }
  RL_INLINE rl_vector& operator=(const rl_vector& from) {
    rl_copy_whole<whole>(this, &from);
    return *this;
  }
};
template <class T>
struct alignas(sizeof(T) > 4 ? 16 : 4 * sizeof(T)) rl_vector<T, 4> {
  typedef typename rl_carrier<(sizeof(T) > 4 ? 16 : 4 * sizeof(T))>::type whole;
  T x, y, z, w;
  rl_vector() = default;
  constexpr rl_vector(rl_only<T> x) : x(x.value), y(), z(), w() {}
  constexpr rl_vector(T x, T y, T z = {}, T w = {}) : x(x), y(y), z(z), w(w) {}
  RL_INLINE rl_vector(const rl_vector& from) { copy(from); }
  RL_INLINE rl_vector& operator=(const rl_vector& from) {
    copy(from);
    return *this;
  }

 private:
  RL_INLINE void copy(const rl_vector& from) {
    rl_copy_whole<whole>(this, &from);
    if constexpr (sizeof(T) > 4)
      rl_copy_whole<whole>((whole*)this + 1, (const whole*)&from + 1);  // twice 16 bytes, as a GPU has it
  }
};

#define RL_VECTORS(NAME, TYPE)                                                   \
  typedef rl_vector<TYPE, 1> NAME##1;                                            \
  typedef rl_vector<TYPE, 2> NAME##2;                                            \
  typedef rl_vector<TYPE, 3> NAME##3;                                            \
  typedef rl_vector<TYPE, 4> NAME##4;                                            \
  RL_INLINE NAME##1 make_##NAME##1(TYPE x) { return {x}; }                       \
  RL_INLINE NAME##2 make_##NAME##2(TYPE x, TYPE y) { return NAME##2(x, y); }     \
  RL_INLINE NAME##3 make_##NAME##3(TYPE x, TYPE y, TYPE z) { return {x, y, z}; } \
  RL_INLINE NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) { return NAME##4(x, y, z, w); }

RL_VECTORS(char, signed char)
RL_VECTORS(uchar, unsigned char)
RL_VECTORS(short, short)
RL_VECTORS(ushort, unsigned short)
RL_VECTORS(int, int)
RL_VECTORS(uint, unsigned)
RL_VECTORS(long, long)
RL_VECTORS(ulong, unsigned long)
RL_VECTORS(longlong, long long)
RL_VECTORS(ulonglong, unsigned long long)
RL_VECTORS(float, float)
RL_VECTORS(double, double)

RL_INLINE rl_index::operator uint3() const { return {x, y, z}; }

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(rl_index from) : x(from.x), y(from.y), z(from.z) {}
};
