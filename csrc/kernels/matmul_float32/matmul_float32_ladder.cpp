// The ladder of matmul_float32: see matmul_float32.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/matmul_float32/matmul_float32.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_CUDA_RUNG(matmul_float32_cuda_library, MatmulArgs)

const Ladder<MatmulArgs> matmul_float32_ladder(
    "matmul_float32", {
                          {"library", kCuda, "cuBLASLt writes float32, with its first heuristic",
                           matmul_cuda_library_accepts, matmul_float32_cuda_library},
                          {"v0_composed", kCuda, "a product in 16 bits and a cast: digits lost in rounding stay lost",
                           nullptr, composed<MatmulArgs>},
                          {"v0_composed", kCpu, "a product in 16 bits and a cast: digits lost in rounding stay lost",
                           nullptr, composed<MatmulArgs>},
                      });

}  // namespace rooflab::kernels
