// The ladder of matmul_bias: see matmul_bias.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/matmul_bias/matmul_bias.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_CUDA_RUNG(matmul_bias_cuda_library, MatmulBiasArgs)

namespace {

// cuBLASLt has no such epilogue for float64.
bool matmul_bias_cuda_library_accepts(const MatmulBiasArgs& args, const Target& target) {
  return args.product.dtype != DType::kFloat64 && args.bias && is_aligned(args.bias) &&
         matmul_cuda_library_accepts(args.product, target);
}

bool matmul_bias_cuda_library_by_default(const MatmulBiasArgs& args, const Target& target) {
  return !matmul_cuda_v6_by_default(args.product, target);  // which takes less time, even with a sum
}

}  // namespace

const Ladder<MatmulBiasArgs> matmul_bias_ladder(
    "matmul_bias",
    {
        {"library", kCuda, "cuBLASLt adds the bias before it stores a tile", matmul_bias_cuda_library_accepts,
         matmul_bias_cuda_library, nullptr, matmul_bias_cuda_library_by_default},
        {"v0_composed", kCuda, "a product, then a sum that reads and writes C once more", nullptr,
         composed<MatmulBiasArgs>},
        {"v0_composed", kCpu, "a product, then a sum that reads and writes C once more", nullptr,
         composed<MatmulBiasArgs>},
    });

}  // namespace rooflab::kernels
