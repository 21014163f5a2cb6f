// Kernels of users, compiled at run time, as calls of the op "custom". They have a shared path of their own, because
// what they compute is not known: none can be traced, and gradients do not go through one.
#pragma once

#include <functional>
#include <string>

#include "autograd/tape.h"
#include "core/cost.h"
#include "core/cuda_module.h"

namespace rooflab {

// Launches on the current stream of the GPU that the tensors are on; without tensors, of the GPU that is captured, or
// GPU 0. `written` are those that the kernel may write.
void launch_custom(cuda::Kernel& kernel, const LaunchShape& shape, void** arguments, const Tensors& read,
                   const Tensors& written, const Cost& cost);

// One that runs on the CPU outside of the runtime, by `run`: checked, counted and timed like any other, and not counted
// if `run` throws. How long `run` takes says nothing about the kernel on a GPU.
void launch_custom_on_cpu(const std::string& kernel, const std::function<void()>& run, const Tensors& written,
                          const Cost& cost);

}  // namespace rooflab
