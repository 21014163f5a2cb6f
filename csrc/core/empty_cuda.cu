#include "core/cuda_check.cuh"
#include "core/cuda_runtime.h"

namespace rooflab::cuda {

__global__ void empty_kernel() {}

void launch_empty(Stream stream) {
  empty_kernel<<<1, 32, 0, static_cast<cudaStream_t>(stream.handle)>>>();
  cuda_check_launch("empty");
}

}  // namespace rooflab::cuda
