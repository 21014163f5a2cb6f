// For kernels that are launched early (LaunchShape::early): they may come before the one ahead of them has ended, on
// sm_90 and newer.
#pragma once

#include "core/queue.h"
#include "core/target.h"

namespace rooflab::kernels {

// All but the set-up of a kernel that is launched early must wait.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// From here on, the kernel behind may come as soon as there is room for it.
__device__ __forceinline__ void let_next_kernel_come() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// From Hopper on, the launch itself overlaps the end of the kernel ahead.
inline bool can_launch_early(const Queue& queue) { return queue.target().compute_capability >= 90; }

}  // namespace rooflab::kernels
