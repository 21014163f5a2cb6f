// gelu (tanh form): y = x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) * (x + 0.044715 x^3), in one pass over x of any shape.
// All rungs but the reference compute the equal y = x / (1 + exp(-2u)): one exponential and one division, and no 1 +
// tanh that cancels for negative x. NaN gives NaN, +inf gives +inf, and -inf gives NaN, as 0 * -inf does in the
// definition.
//
// Ladder (CUDA; share of the copy bandwidth of the same run, H200, 16384x4096 in bfloat16 and float32)
//   v0_reference   one element a thread, in double; any strides
//   v1_fused       one element a thread, in float; any strides                                      29 %, 53 %
//   v2_vectorised  16-byte accesses; x and y contiguous and aligned                                100 %, 100 %
// Ladder (CPU; two cores of a Xeon with AVX-512, float32, 512 MiB, where memcpy moves 49 GB/s)
//   v0_reference   one thread, in double
//   v1_simd        all threads, 16 elements at a time; any strides                                  25 GB/s
//   v2_streaming   whole cache lines stored past the caches, four walks a thread with prefetch; x contiguous and more
//                  than the caches hold                                                             50 GB/s
//
// FLOPs: 8 an element (3 for x^3 scaled and added, 2 to scale, tanh, 2 for the rest). Compulsory bytes: x once, y once.
// Memory bandwidth binds.
#pragma once

#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "kernels/common/cpu_isa.h"

namespace rooflab::kernels {

struct GeluArgs {
  const void* x;  // of sizes[ndim] and strides[ndim], in elements
  void* y;        // as many elements, contiguous
  DType dtype;    // floating
  int ndim;       // 1 at least; contiguous x has one dimension
  int64_t count;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];
};

void gelu_cpu_v0_reference(const GeluArgs& args, Stream stream);
ROOFLAB_PER_ISA(gelu_cpu_v1_simd, GeluArgs)
ROOFLAB_PER_ISA(gelu_cpu_v2_streaming, GeluArgs)
bool gelu_cpu_v2_accepts(const GeluArgs& args);

[[gnu::weak]] void gelu_cuda_v0_reference(const GeluArgs& args, Stream stream);
[[gnu::weak]] void gelu_cuda_v1_fused(const GeluArgs& args, Stream stream);
[[gnu::weak]] void gelu_cuda_v2_vectorised(const GeluArgs& args, Stream stream);
[[gnu::weak]] bool gelu_cuda_v2_accepts(const GeluArgs& args);

}  // namespace rooflab::kernels
