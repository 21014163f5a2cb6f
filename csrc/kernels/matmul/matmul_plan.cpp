// Which arguments the CUDA rungs of matmul accept, on a target that need not be present.
#include <limits>

#include "core/target.h"
#include "kernels/matmul/matmul_operand.h"

namespace rooflab::kernels {
namespace {

// The tiled rungs count rows and columns in 32 bits; offsets are 64-bit everywhere.
bool fits_int32(const MatmulArgs& args) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max() - 1024;
  return args.batch <= kMax && args.m <= kMax && args.n <= kMax && args.k <= kMax;
}

bool has_rows(const MatmulArgs& args) { return matmul_a(args).has_rows && matmul_b(args).has_rows; }
bool is_16_bit(const MatmulArgs& args) { return args.dtype == DType::kFloat16 || args.dtype == DType::kBFloat16; }

}  // namespace

bool matmul_cuda_v2c_accepts(const MatmulArgs& args, const Target& target) {
  const MatmulOperand a = matmul_a(args), b = matmul_b(args);
  return matmul_cuda_v3_accepts(args, target) && a.k_major && !b.k_major && args.k % 4 == 0 && args.n % 4 == 0 &&
         a.aligned_to_16_bytes(args.dtype) && b.aligned_to_16_bytes(args.dtype) && is_aligned(args.c);
}

bool matmul_cuda_v3_accepts(const MatmulArgs& args, const Target&) {
  return args.dtype == DType::kFloat32 && has_rows(args) && fits_int32(args);
}

bool matmul_cuda_v4_accepts(const MatmulArgs& args, const Target& target) {
  return target.compute_capability >= 80 && is_16_bit(args) && has_rows(args) && fits_int32(args);
}

bool matmul_cuda_v5_accepts(const MatmulArgs& args, const Target& target) {
  const auto accepts = [&](const MatmulOperand& operand) {
    constexpr int64_t kMaxStride = int64_t{1} << 38;
    return operand.has_rows && operand.aligned_to_16_bytes(args.dtype) && operand.leading >= operand.row_length &&
           operand.leading < kMaxStride && operand.batch_stride >= 0 && operand.batch_stride < kMaxStride;
  };
  return target.compute_capability == 90 && is_16_bit(args) && args.k > 0 && fits_int32(args) &&
         accepts(matmul_a(args)) && accepts(matmul_b(args)) && accepts(matmul_c(args));
}

bool matmul_cuda_v6_accepts(const MatmulArgs& args, const Target& target) {
  return target.compute_capability == 90 && args.dtype == DType::kFloat32 && args.k > 0 && has_rows(args) &&
         fits_int32(args);
}

Footprint matmul_cuda_v6_footprint(const MatmulArgs& args, const Target&) {
  return {.launches = 3, .scratch_bytes = matmul_split_elements(args) * 2};
}

// Only cuBLASLt, on a GPU, can tell what it starts. So the rung has no footprint of its own, and counts as one kernel
// without a workspace, which is right for most shapes.
bool matmul_cuda_library_accepts(const MatmulArgs& args, const Target& target) {
  constexpr int64_t kMaxLeading = std::numeric_limits<int32_t>::max();
  const auto accepts = [](const MatmulOperand& operand) {
    return operand.has_rows && operand.leading >= operand.row_length && operand.leading <= kMaxLeading;
  };
  return target.has_cublaslt && is_floating(args.dtype) && args.k > 0 && fits_int32(args) && accepts(matmul_a(args)) &&
         accepts(matmul_b(args));
}

}  // namespace rooflab::kernels
