#include "core/cuda_runtime.h"

namespace rooflab::cuda {

__global__ void empty_kernel() {}

void launch_empty(Stream stream) {
  launch(reinterpret_cast<const void*>(empty_kernel), "empty", {1, 32}, nullptr, stream);
}

}  // namespace rooflab::cuda
