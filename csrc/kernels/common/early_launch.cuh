// For kernels that are launched early (LaunchShape::early), that is, with programmatic dependent launch: on sm_90 and
// newer they may start before the previous kernel has ended.
#pragma once

#include "core/architecture.cuh"
#include "core/launch_shape.h"
#include "core/queue.h"
#include "core/target.h"

namespace rooflab::kernels {

// A kernel that is launched early must wait here before anything but its set-up.
__device__ __forceinline__ void wait_for_previous_kernel() {
#ifdef ROOFLAB_SM90
  cudaGridDependencySynchronize();
#else
  // such code is never launched early
#endif
}

// From here on, the next kernel may start as soon as there is room for it.
__device__ __forceinline__ void let_next_kernel_come() {
#ifdef ROOFLAB_SM90
  cudaTriggerProgrammaticLaunchCompletion();
#else
  // nor does it let others come early
#endif
}

// For kernels that read nothing before: of a chain of them, each launch overlaps with the kernel before it.
__device__ __forceinline__ void overlap_launches() {
  let_next_kernel_come();
  wait_for_previous_kernel();
}

// From Hopper on, the launch itself overlaps with the end of the previous kernel. Code that was compiled for an older
// GPU would not wait, whatever GPU runs it.
inline bool can_launch_early(const Queue& queue) { return queue.target().code.number >= 90; }
inline LaunchShape early(LaunchShape shape, const Queue& queue) {
  shape.early = can_launch_early(queue);
  return shape;
}

}  // namespace rooflab::kernels
