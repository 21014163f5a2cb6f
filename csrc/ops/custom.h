// Kernels of users, compiled at run time, as calls of the op "custom". They have a shared path of their own, because
// what they compute is not known: none can be traced, and gradients do not go through one.
#pragma once

#include "autograd/tape.h"
#include "core/cost.h"
#include "core/cuda_module.h"

namespace rooflab {

// Launches on the current stream of the GPU that the tensors are on; without tensors, of the GPU that is captured, or
// GPU 0. `written` are those that the kernel may write.
void launch_custom(cuda::Kernel& kernel, const LaunchShape& shape, void** arguments, const Tensors& read,
                   const Tensors& written, const Cost& cost);

}  // namespace rooflab
