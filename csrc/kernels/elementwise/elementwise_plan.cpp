// Which arguments the rungs of the elementwise family accept, on a target that need not be present.
#include <algorithm>

#include "kernels/common/alignment.h"
#include "kernels/elementwise/elementwise.h"

namespace rooflab::kernels {
namespace {

// Whether rows that start at `data` with these strides can be moved `width` elements of `size` bytes at a time.
bool has_vectors(const void* data, const int64_t* strides, int ndim, int64_t size, int64_t width) {
  const int64_t alignment = std::min<int64_t>(size * width, 16);
  bool aligned = is_aligned(data, alignment) && strides[ndim - 1] == 1;
  for (int d = 0; d < ndim - 1; ++d) aligned &= strides[d] * size % alignment == 0;
  return aligned;
}

}  // namespace

bool elementwise_cpu_v2_accepts(const ElementwiseArgs& args, const Target&) {
  const bool copies = args.op == ElementwiseOp::kCopy;
  if (!copies && (args.op >= ElementwiseOp::kEq || !is_floating(args.dtype))) return false;
  if (args.ndim != 1 || args.out_strides[0] != 1 || !is_aligned(args.out, 64)) return false;
  for (int k = 0; k < info(args.op).arity; ++k) {
    const ElementwiseOperand& input = args.inputs[k];
    if (input.data == nullptr ? copies : input.strides[0] != 1) return false;
  }
  return true;
}

bool elementwise_cuda_v2_accepts(const ElementwiseArgs& args, const Target&) {
  const int64_t width = 16 / std::max(size_of(args.dtype), size_of(args.out_dtype));
  const int inner = args.ndim - 1;
  if (args.ndim > 1 && args.sizes[inner] % width != 0) return false;
  if (!has_vectors(args.out, args.out_strides, args.ndim, size_of(args.out_dtype), width)) return false;
  for (int k = 0; k < info(args.op).arity; ++k) {
    const ElementwiseOperand& input = args.inputs[k];
    if (input.data == nullptr || input.strides[inner] == 0) continue;
    const int64_t size = args.op == ElementwiseOp::kWhere && k == 0 ? 1 : size_of(args.dtype);
    if (!has_vectors(input.data, input.strides, args.ndim, size, width)) return false;
  }
  return true;
}

}  // namespace rooflab::kernels
