// For kernels that are launched early (LaunchShape::early), that is, with programmatic dependent launch: on sm_90 and
// newer they may start before the previous kernel has ended.
#pragma once

#include "core/queue.h"
#include "core/target.h"

namespace rooflab::kernels {

// A kernel that is launched early must wait here before anything but its set-up.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// From here on, the next kernel may start as soon as there is room for it.
__device__ __forceinline__ void let_next_kernel_come() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// From Hopper on, the launch itself overlaps with the end of the previous kernel.
inline bool can_launch_early(const Queue& queue) { return queue.target().compute_capability >= 90; }

}  // namespace rooflab::kernels
