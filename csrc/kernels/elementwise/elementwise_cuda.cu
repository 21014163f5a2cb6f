// The CUDA rungs of the elementwise family: the reference, and the choice of the file that holds an op's kernel.
#include "kernels/elementwise/elementwise_cuda.cuh"
#include "kernels/elementwise/reference.h"

namespace rooflab::kernels {
namespace {

__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise_cuda_v0_reference_kernel(const __grid_constant__ ElementwiseArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kElementwiseThreads + threadIdx.x;
  if (i < args.count) reference_element(args, i);
}

void launch_compiled(const ElementwiseArgs& args, Stream stream, bool vectorised) {
  if (args.count == 0) return;
  if (args.op >= ElementwiseOp::kWhere) return launch_movement(args, stream, vectorised);
  if (info(args.op).arity == 1) return launch_unary(args, stream, vectorised);
  return launch_binary(args, stream, vectorised);
}

// Whether rows that start at `data` and lie strides apart can be moved `width` elements of `size` bytes at a time.
bool is_vector_aligned(const void* data, const int64_t* strides, int ndim, int64_t size, int64_t width) {
  const int64_t alignment = std::min<int64_t>(size * width, 16);
  bool aligned = reinterpret_cast<uintptr_t>(data) % alignment == 0 && strides[ndim - 1] == 1;
  for (int d = 0; d < ndim - 1; ++d) aligned &= strides[d] * size % alignment == 0;
  return aligned;
}

}  // namespace

bool elementwise_cuda_v2_accepts(const ElementwiseArgs& args) {
  const int64_t width = 16 / std::max(size_of(args.dtype), size_of(args.out_dtype));
  const int inner = args.ndim - 1;
  if (args.ndim > 1 && args.sizes[inner] % width != 0) return false;
  if (!is_vector_aligned(args.out, args.out_strides, args.ndim, size_of(args.out_dtype), width)) return false;
  for (int k = 0; k < info(args.op).arity; ++k) {
    const ElementwiseOperand& input = args.inputs[k];
    if (input.data == nullptr || input.strides[inner] == 0) continue;
    const int64_t size = args.op == ElementwiseOp::kWhere && k == 0 ? 1 : size_of(args.dtype);
    if (!is_vector_aligned(input.data, input.strides, args.ndim, size, width)) return false;
  }
  return true;
}

void elementwise_cuda_v0_reference(const ElementwiseArgs& args, Stream stream) {
  if (args.count == 0) return;
  const unsigned blocks = static_cast<unsigned>((args.count + kElementwiseThreads - 1) / kElementwiseThreads);
  elementwise_cuda_v0_reference_kernel<<<blocks, kElementwiseThreads, 0, static_cast<cudaStream_t>(stream.handle)>>>(
      args);
  cuda_check_launch(info(args.op).name);
}

void elementwise_cuda_v1_strided(const ElementwiseArgs& args, Stream stream) { launch_compiled(args, stream, false); }

void elementwise_cuda_v2_vectorised(const ElementwiseArgs& args, Stream stream) { launch_compiled(args, stream, true); }

}  // namespace rooflab::kernels
