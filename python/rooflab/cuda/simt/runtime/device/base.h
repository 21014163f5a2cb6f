// What the other headers of this folder need: types, the runner's functions, CUDA's keywords.
#pragma once

#include "codes.h"

// Whether an address is a multiple of what its type asks for is checked where the kernel makes a reference of it.
#define RL_INLINE inline __attribute__((always_inline, no_sanitize("alignment")))
#define RL_LINE unsigned line = __builtin_LINE()  // as the last parameter: the line of the call

typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
#ifndef RL_OWN_uint64_t  // a source without headers may define these two, as another type of 64 bits
typedef unsigned long uint64_t;
#endif
#ifndef RL_OWN_int64_t
typedef long int64_t;
#endif
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;

template <class T, int N>
struct rl_vector;
struct rl_index {
  unsigned x, y, z;
  operator rl_vector<unsigned, 3>() const;
};

// The runner's functions. Those that are const are called once where their value is used several times. `site` is set
// in the assembly.
extern "C" {
unsigned rl_thread_x() __attribute__((const));
unsigned rl_thread_y() __attribute__((const));
unsigned rl_thread_z() __attribute__((const));
unsigned rl_block_x() __attribute__((const));
unsigned rl_block_y() __attribute__((const));
unsigned rl_block_z() __attribute__((const));
unsigned rl_block_size(int axis) __attribute__((const));
unsigned rl_grid_size(int axis) __attribute__((const));
float rl_from_half(unsigned short bits) __attribute__((const));
unsigned short rl_to_half(float value) __attribute__((const));
float rl_from_bfloat16(unsigned short bits) __attribute__((const));
unsigned short rl_to_bfloat16(float value) __attribute__((const));
float rl_to_odd(double value) __attribute__((const));
float rl_fused(float x, float y, float z) __attribute__((const));
float rl_normcdf(float value) __attribute__((const));
float rl_fraction(float value) __attribute__((const));
double rl_special(int what, double x, double y, double z, double w) __attribute__((const));
unsigned long rl_to_integer(double value, int bits, int is_signed, unsigned long of_nan) __attribute__((const));
[[noreturn]] void rl_exit();
int rl_barrier(unsigned site, unsigned line, int predicate, rl_vote what);
unsigned long rl_warp_operation(unsigned site, unsigned line, unsigned mask, unsigned long value, int what,
                                unsigned operand);
unsigned rl_lane() __attribute__((const));
unsigned rl_active(unsigned site, unsigned line);
int rl_lane_of_rank(unsigned lanes, unsigned rank) __attribute__((const));
unsigned rl_by_rank(unsigned lanes, unsigned bits) __attribute__((const));
unsigned long rl_at_atomic(unsigned site, unsigned line, void* pointer, int what_type, unsigned long value,
                           unsigned long compare);
[[noreturn]] void rl_assertion_failed(unsigned site, unsigned line);
[[noreturn]] void rl_trap(unsigned site, unsigned line);
void rl_printf(const char* format, const rl_value* values, int count);
}

// All arrays of dynamic shared memory begin here; the front end gives them this symbol.
extern "C" {
__attribute__((visibility("default"), aligned(256))) char rl_dynamic_shared[256 << 10];
}

RL_INLINE rl_index rl_thread() { return {rl_thread_x(), rl_thread_y(), rl_thread_z()}; }
RL_INLINE rl_index rl_block() { return {rl_block_x(), rl_block_y(), rl_block_z()}; }
RL_INLINE rl_index rl_block_size() { return {rl_block_size(0), rl_block_size(1), rl_block_size(2)}; }
RL_INLINE rl_index rl_grid_size() { return {rl_grid_size(0), rl_grid_size(1), rl_grid_size(2)}; }
#define threadIdx (rl_thread())
#define blockIdx (rl_block())
#define blockDim (rl_block_size())
#define gridDim (rl_grid_size())
constexpr int warpSize = 32;

// The front end replaces __device__ and __constant__ by what is meant; the words themselves are left in lambdas.
#define __device__
#define __host__
#define __global__ __attribute__((noinline))
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __inline__ inline
#define __builtin_assume(...) ((void)0)
#define __builtin_assume_aligned(pointer, ...) (pointer)
#define __builtin_unreachable() __trap()
#define __CUDACC__ 1
#define __CUDA_ARCH__ 800
// Its code is in the kernel's, so that threads which call it and threads which do not meet again behind it.
#ifdef RL_RECURSION
#define rl_device_function
#else
#define rl_device_function __attribute__((always_inline))
#endif
#define rl_device_variable __attribute__((section("rl_device"), used))
#define rl_constant_variable __attribute__((section("rl_constant"), used))
