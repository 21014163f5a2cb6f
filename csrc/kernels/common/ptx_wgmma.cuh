// wgmma of Hopper (sm_90a), for every width that the kernels here use, with a in shared memory or in registers.
#pragma once

#include "kernels/common/ptx_hopper.cuh"

namespace rooflab::kernels::ptx {

// Waits as wgmma_wait<kPending>() does; the compiler may not read d earlier.
template <int kPending, int kCount>
__device__ __forceinline__ void wgmma_wait(float (&d)[kCount]) {
  wgmma_wait<kPending>();
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// The names of a thread's 32 to 128 sums in the asm text, and the operands themselves.
#define ROOFLAB_NAMES_32                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ROOFLAB_NAMES_40 \
  ROOFLAB_NAMES_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39"
#define ROOFLAB_NAMES_64                                                               \
  ROOFLAB_NAMES_40                                                                     \
  ", %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63"
#define ROOFLAB_NAMES_128                                                                        \
  ROOFLAB_NAMES_64                                                                               \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define ROOFLAB_SUMS_8(i)                                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define ROOFLAB_SUMS_32 ROOFLAB_SUMS_8(0), ROOFLAB_SUMS_8(8), ROOFLAB_SUMS_8(16), ROOFLAB_SUMS_8(24)
#define ROOFLAB_SUMS_40 ROOFLAB_SUMS_32, ROOFLAB_SUMS_8(32)
#define ROOFLAB_SUMS_64 ROOFLAB_SUMS_40, ROOFLAB_SUMS_8(40), ROOFLAB_SUMS_8(48), ROOFLAB_SUMS_8(56)
#define ROOFLAB_SUMS_128                                                                                               \
  ROOFLAB_SUMS_64, ROOFLAB_SUMS_8(64), ROOFLAB_SUMS_8(72), ROOFLAB_SUMS_8(80), ROOFLAB_SUMS_8(88), ROOFLAB_SUMS_8(96), \
      ROOFLAB_SUMS_8(104), ROOFLAB_SUMS_8(112), ROOFLAB_SUMS_8(120)

// Operands after the sums are given by their numbers, i0 for the first.
#define ROOFLAB_WGMMA_SHARED(columns, sums, i0, i1, i2, i3, i4, i5)                                            \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #i2                                      \
               ", 0;\n"                                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.%" #i5 ".%" #i5 " {" ROOFLAB_NAMES_##sums \
               "}, "                                                                                           \
               "%" #i0 ", %" #i1 ", accumulate, 1, 1, %" #i3 ", %" #i4 ";\n}"                                  \
               : ROOFLAB_SUMS_##sums                                                                           \
               : "l"(a), "l"(b), "r"(int{accumulate}), "n"(int{!kAKMajor}), "n"(int{!kBKMajor}),               \
                 "C"(TypeName<T>::value))
#define ROOFLAB_WGMMA_REGISTERS(columns, sums, i0, i1, i2, i3, i4, i5, i6, i7)                                  \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #i5                                       \
               ", 0;\n"                                                                                         \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.%" #i7 ".%" #i7 " {" ROOFLAB_NAMES_##sums  \
               "}, "                                                                                            \
               "{%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", accumulate, 1, 1, %" #i6 ";\n}"             \
               : ROOFLAB_SUMS_##sums                                                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int{accumulate}), "n"(int{!kBKMajor}), \
                 "C"(TypeName<T>::value))

// d = a b, or d += a b with `accumulate`, for a 64 x 16 and b 16 x kColumns in shared memory, in the background. Warp w
// of the four holds rows 16 w to 16 w + 15 of d. A lane has columns 8 j + lane % 4 * 2 and the next: those of row lane
// / 4 in d[4 j] and d[4 j + 1], and those of the row eight below in d[4 j + 2] and d[4 j + 3].
template <class T, int kColumns, bool kAKMajor, bool kBKMajor>
__device__ __forceinline__ void wgmma(float (&d)[kColumns / 2], uint64_t a, uint64_t b, bool accumulate) {
  if constexpr (kColumns == 64) {
    ROOFLAB_WGMMA_SHARED(64, 32, 32, 33, 34, 35, 36, 37);
  } else if constexpr (kColumns == 80) {
    ROOFLAB_WGMMA_SHARED(80, 40, 40, 41, 42, 43, 44, 45);
  } else if constexpr (kColumns == 128) {
    ROOFLAB_WGMMA_SHARED(128, 64, 64, 65, 66, 67, 68, 69);
  } else if constexpr (kColumns == 256) {
    ROOFLAB_WGMMA_SHARED(256, 128, 128, 129, 130, 131, 132, 133);
  } else {
    static_assert(kColumns == 0, "no product of this width");
  }
}

// The same with a in registers, laid out as two neighbouring 64 x 8 tiles of d: a[0] has the row of d[0] and d[1] in
// the first tile, a[1] that of d[2] and d[3]; a[2] and a[3] have these rows in the second tile.
template <class T, int kColumns, bool kBKMajor>
__device__ __forceinline__ void wgmma(float (&d)[kColumns / 2], const uint32_t (&a)[4], uint64_t b, bool accumulate) {
  if constexpr (kColumns == 64) {
    ROOFLAB_WGMMA_REGISTERS(64, 32, 32, 33, 34, 35, 36, 37, 38, 39);
  } else if constexpr (kColumns == 128) {
    ROOFLAB_WGMMA_REGISTERS(128, 64, 64, 65, 66, 67, 68, 69, 70, 71);
  } else if constexpr (kColumns == 256) {
    ROOFLAB_WGMMA_REGISTERS(256, 128, 128, 129, 130, 131, 132, 133, 134, 135);
  } else {
    static_assert(kColumns == 0, "no product of this width");
  }
}

#undef ROOFLAB_WGMMA_REGISTERS
#undef ROOFLAB_WGMMA_SHARED
#undef ROOFLAB_SUMS_32
#undef ROOFLAB_NAMES_32
#undef ROOFLAB_SUMS_40
#undef ROOFLAB_NAMES_40
#undef ROOFLAB_SUMS_64
#undef ROOFLAB_NAMES_64
#undef ROOFLAB_SUMS_128
#undef ROOFLAB_NAMES_128
#undef ROOFLAB_SUMS_8

}  // namespace rooflab::kernels::ptx
