// Which instructions the code that is being compiled may use. A kernel that needs more than Turing has guards its body:
//
//   #ifdef ROOFLAB_SM80
//     ...
//   #else
//     unsupported_architecture();
//   #endif
//
// What is compiled for an architecture that lacks them then stops the kernel, instead of leaving its results unwritten.
// Such code is never asked to run: Target says whose code runs on a device, and the ladders go by that.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define ROOFLAB_SM80 1
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define ROOFLAB_SM90 1
#endif
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define ROOFLAB_SM90A 1  // compiled for sm_90a: sm_90 lacks wgmma, and so does everything newer
#endif

namespace rooflab {

__device__ __forceinline__ void unsupported_architecture() { __trap(); }

}  // namespace rooflab
