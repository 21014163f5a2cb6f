// The ladder of matmul: see matmul.h for what it computes.
//
// [measured matmul] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                         1024      1024       gemv
//                      float32  bfloat16    float32
//                      GFLOP/s   GFLOP/s  % of copy
//   v0_reference          0.55       1.3         17
//   v1_loop_order           20        19          4
//   v2_blocked              33        22         11
//   v2a_register_tile        -         -          -
//   v2b_packed_b             -         -          -
//   v3_packed_simd         346       388         36
//   v4_bf16_dot              -       645          -
//   v5_amx_tile              -         -          -
//   v6_gemv                  -         -        174
//   v7_dots                  -         -          -
//   v8_small                 -         -          -
//   library                181         -         50
//   copy, GB/s               -         -         30
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                         4096      4096       gemv
//                      float32  bfloat16   bfloat16
//                      TFLOP/s   TFLOP/s  % of copy
//   v0_naive               0.5       0.5        4.1
//   v1_coalesced           1.6       1.9        5.4
//   v2_shared_tile         4.8       4.8        5.2
//   v2a_thread_column       11         -          -
//   v2b_thread_tile         12         -          -
//   v2c_vector_loads        24         -          -
//   v3_register_tile        47         -          -
//   v3a_mma                  -        72          -
//   v3b_ldmatrix             -        72          -
//   v3c_swizzle              -       109          -
//   v4_tensor_core           -       437         33
//   v5_hopper                -       784          -
//   v6_split_bf16          123         -          -
//   library                 52       791         99
//   torch                   52       793         97
//   copy, GB/s               -         -       2799
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include <algorithm>
#include <limits>

#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_operand.h"

namespace rooflab::kernels {

using enum Device::Type;

void matmul_cpu_v0_reference(const MatmulArgs&, Queue&);
void matmul_cpu_v1_loop_order(const MatmulArgs&, Queue&);
void matmul_cpu_v2_blocked(const MatmulArgs&, Queue&);
ROOFLAB_PER_ISA(matmul_cpu_v2a_register_tile, MatmulArgs)
ROOFLAB_PER_ISA(matmul_cpu_v2b_packed_b, MatmulArgs)
ROOFLAB_PER_ISA(matmul_cpu_v3_packed_simd, MatmulArgs)
void matmul_cpu_v4_bf16_dot(const MatmulArgs&, Queue&);
void matmul_cpu_v5_amx_tile(const MatmulArgs&, Queue&);
ROOFLAB_PER_ISA(matmul_cpu_v6_gemv, MatmulArgs)
ROOFLAB_PER_ISA(matmul_cpu_v7_dots, MatmulArgs)
ROOFLAB_PER_ISA(matmul_cpu_v8_small, MatmulArgs)
void matmul_cpu_library(const MatmulArgs&, Queue&);
Footprint matmul_cpu_v1_footprint(const MatmulArgs&, const Target&);
Footprint matmul_cpu_v2_footprint(const MatmulArgs&, const Target&);
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v2a_footprint, MatmulArgs)
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v2b_footprint, MatmulArgs)
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v3_footprint, MatmulArgs)
Footprint matmul_cpu_v4_footprint(const MatmulArgs&, const Target&);
Footprint matmul_cpu_v5_footprint(const MatmulArgs&, const Target&);
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v6_footprint, MatmulArgs)
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v8_footprint, MatmulArgs)
bool matmul_cpu_library_accepts(const MatmulArgs&, const Target&);
ROOFLAB_CUDA_RUNG(matmul_cuda_v0_naive, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v1_coalesced, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v2_shared_tile, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v2a_thread_column, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v2b_thread_tile, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v2c_vector_loads, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v3_register_tile, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v3a_mma, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v3b_ldmatrix, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v3c_swizzle, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v4_tensor_core, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v5_hopper, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_v6_split_bf16, MatmulArgs)
ROOFLAB_CUDA_RUNG(matmul_cuda_library, MatmulArgs)

namespace {

// The tiled rungs count rows and columns in 32 bits; offsets are 64-bit everywhere.
bool fits_int32(const MatmulArgs& args) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max() - 1024;
  return args.batch <= kMax && args.m <= kMax && args.n <= kMax && args.k <= kMax;
}

bool has_rows(const MatmulArgs& args) { return matmul_a(args).has_rows && matmul_b(args).has_rows; }
bool is_16_bit(const MatmulArgs& args) { return args.dtype == DType::kFloat16 || args.dtype == DType::kBFloat16; }

bool matmul_cpu_v2a_accepts(const MatmulArgs& args, const Target&) {
  return args.dtype == DType::kFloat32 || args.dtype == DType::kFloat64;
}

// Sums of bfloat16 products in one instruction.
bool has_bfloat16_dots(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kBaseline:
    case CpuIsa::kAvx2:
    case CpuIsa::kAvx512:
    case CpuIsa::kNeon: return false;
    case CpuIsa::kAvx512Bf16:
    case CpuIsa::kNeonBf16: return true;
  }
  return false;
}

bool matmul_cpu_v4_accepts(const MatmulArgs& args, const Target& target) {
  return args.dtype == DType::kBFloat16 && has_bfloat16_dots(target.isa);
}

bool matmul_cpu_v4_by_default(const MatmulArgs&, const Target& target) { return target.has_fast_bfloat16_dots; }

bool matmul_cpu_v5_accepts(const MatmulArgs& args, const Target& target) {
  return args.dtype == DType::kBFloat16 && target.has_amx_bf16;
}

bool matmul_cpu_v6_accepts(const MatmulArgs& args, const Target&) {
  if (args.n == 1) return args.a_col_stride == 1 || args.a_row_stride == 1 || args.k <= 1;
  return args.m == 1 && (args.b_col_stride == 1 || args.b_row_stride == 1 || args.k <= 1);
}

bool matmul_cpu_v7_accepts(const MatmulArgs& args, const Target&) {
  constexpr int64_t kMost = 8;  // rows: with more of them packing pays
  const bool contiguous =
      (matmul_dots_few_columns(args) ? args.a_col_stride : args.b_row_stride) == 1;  // the larger operand
  return contiguous && args.m > 1 && args.n > 1 && std::min(args.m, args.n) <= kMost;
}

bool matmul_cpu_v8_accepts(const MatmulArgs& args, const Target&) {
  constexpr int64_t kMostDepth = 512, kMostElements = 8192;  // of B: one run of sums, and what stays in L1
  return (args.dtype == DType::kFloat32 || args.dtype == DType::kFloat64) && args.m > 1 && args.n > 1 &&
         args.k <= kMostDepth && args.k * args.n <= kMostElements;
}

// With few steps of k a dot product ends before it pays, and what is left of a vector is most of it.
bool matmul_cpu_v7_by_default(const MatmulArgs& args, const Target&) { return args.k >= 48; }

// Where B is larger, packing pays.
bool matmul_cpu_v8_by_default(const MatmulArgs& args, const Target&) { return args.k <= 32 && args.k * args.n <= 1024; }

Footprint matmul_cpu_v7_footprint(const MatmulArgs& args, const Target&) {
  return {.scratch_bytes = matmul_dots_turned_lines(args) * args.k * size_of(args.dtype)};
}

bool matmul_cuda_v3_accepts(const MatmulArgs& args, const Target&) {
  return args.dtype == DType::kFloat32 && has_rows(args) && fits_int32(args);
}

// Row-major operands, all of whose 16-byte vectors are aligned and lie wholly inside or wholly outside.
bool has_row_vectors(const MatmulArgs& args) {
  const MatmulOperand a = matmul_a(args), b = matmul_b(args);
  const int64_t width = 16 / size_of(args.dtype);
  return a.k_major && !b.k_major && args.k % width == 0 && args.n % width == 0 && a.aligned_to_16_bytes(args.dtype) &&
         b.aligned_to_16_bytes(args.dtype) && is_aligned(args.c);
}

bool matmul_cuda_v2c_accepts(const MatmulArgs& args, const Target& target) {
  return matmul_cuda_v3_accepts(args, target) && has_row_vectors(args);
}

bool matmul_cuda_v4_accepts(const MatmulArgs& args, const Target& target) {
  return target.code.number >= 80 && is_16_bit(args) && has_rows(args) && fits_int32(args);
}

Footprint matmul_cuda_v4_footprint(const MatmulArgs&, const Target&) { return {.shared_bytes = kMatmulV4Bytes}; }

bool matmul_cuda_v3a_accepts(const MatmulArgs& args, const Target& target) {
  return matmul_cuda_v4_accepts(args, target) && has_row_vectors(args);
}

bool matmul_cuda_v5_accepts(const MatmulArgs& args, const Target& target) {
  const auto accepts = [&](const MatmulOperand& operand) {
    constexpr int64_t kMaxStride = int64_t{1} << 38;
    return operand.has_rows && operand.aligned_to_16_bytes(args.dtype) && operand.leading >= operand.row_length &&
           operand.leading < kMaxStride && operand.batch_stride >= 0 && operand.batch_stride < kMaxStride;
  };
  return target.code.is_sm90a && is_16_bit(args) && args.k > 0 && fits_int32(args) && accepts(matmul_a(args)) &&
         accepts(matmul_b(args)) && accepts(matmul_c(args));
}

Footprint matmul_cuda_v5_footprint(const MatmulArgs&, const Target&) { return {.shared_bytes = kSharedBytesOfSm90a}; }

bool matmul_cuda_v6_accepts(const MatmulArgs& args, const Target& target) {
  return target.code.is_sm90a && args.dtype == DType::kFloat32 && args.k > 0 && has_rows(args) && fits_int32(args);
}

Footprint matmul_cuda_v6_footprint(const MatmulArgs& args, const Target&) {
  return {.launches = 3, .scratch_bytes = matmul_split_elements(args) * 2, .shared_bytes = kSharedBytesOfSm90a};
}

bool matmul_cuda_library_by_default(const MatmulArgs& args, const Target& target) {
  return !matmul_cuda_v6_by_default(args, target);
}

}  // namespace

// Its scratch, of the operands' size, is the user's to weigh (set_float32_matmul_precision). It pays where A and B are
// read often enough that their split takes less time than it saves, and where there are some 50 tiles of 128 x 128.
// Measured on an H200: 256 x 4096 x 4096 takes 0.94 of cuBLAS's time, 2048 x 512 x 512 0.87, 2048^3 0.47; but 128 x
// 4096 x 4096 takes 1.7, 768^3 1.06 and 512^3 1.7.
bool matmul_cuda_v6_by_default(const MatmulArgs& args, const Target& target) {
  constexpr int64_t kFewestLines = 256, kFewestElements = 3 << 18;
  constexpr double kFewestMacs = 1 << 29;
  const int64_t elements = args.batch * args.m * args.n;
  return args.splits_float32 && matmul_cuda_v6_accepts(args, target) && std::min(args.m, args.n) >= kFewestLines &&
         elements >= kFewestElements && 1.0 * elements * args.k >= kFewestMacs;
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

// On the CPU operands may have any strides: packing deals with them. On a GPU v0 to v2 take any strides; the rest need
// unit stride along one side.
const Ladder<MatmulArgs> matmul_ladder(
    "matmul",
    {
        {"library", kCuda, "cuBLASLt, with its first heuristic", matmul_cuda_library_accepts, matmul_cuda_library,
         nullptr, matmul_cuda_library_by_default},
        {"v6_split_bf16", kCuda,
         "float32 in three bfloat16 parts, six products of parts on tensor cores; sm_90a, by name or "
         "set_float32_matmul_precision",
         matmul_cuda_v6_accepts, matmul_cuda_v6_split_bf16, matmul_cuda_v6_footprint, matmul_cuda_v6_by_default},
        {"v5_hopper", kCuda,
         "TMA feeds wgmma, specialised warps, blocks in pairs; aligned float16 and bfloat16, sm_90a",
         matmul_cuda_v5_accepts, matmul_cuda_v5_hopper, matmul_cuda_v5_footprint},
        {"v4_tensor_core", kCuda,
         "a cp.async pipeline loads the next tiles meanwhile; float16 and bfloat16, sm_80 and newer",
         matmul_cuda_v4_accepts, matmul_cuda_v4_tensor_core, matmul_cuda_v4_footprint},
        {"v3c_swizzle", kCuda, "vectors of shared memory permuted, so that no read of ldmatrix waits for a bank",
         matmul_cuda_v3a_accepts, matmul_cuda_v3c_swizzle},
        {"v3b_ldmatrix", kCuda, "ldmatrix brings four 8 x 8 matrices to the lanes, and transposes those of B",
         matmul_cuda_v3a_accepts, matmul_cuda_v3b_ldmatrix},
        {"v3a_mma", kCuda, "tensor cores: mma.sync, one warp at a time; aligned row-major 16 bits, sm_80 and newer",
         matmul_cuda_v3a_accepts, matmul_cuda_v3a_mma},
        {"v3_register_tile", kCuda,
         "8 x 16 sums per thread, warps laid out for shared memory, the next tile is loaded meanwhile; float32",
         matmul_cuda_v3_accepts, matmul_cuda_v3_register_tile},
        {"v2c_vector_loads", kCuda, "8 x 8 sums per thread, 16-byte loads; aligned row-major float32",
         matmul_cuda_v2c_accepts, matmul_cuda_v2c_vector_loads},
        {"v2b_thread_tile", kCuda, "8 x 8 sums per thread, which share each element read from A too; float32",
         matmul_cuda_v3_accepts, matmul_cuda_v2b_thread_tile},
        {"v2a_thread_column", kCuda, "a column of 8 sums per thread, which share each element read from B; float32",
         matmul_cuda_v3_accepts, matmul_cuda_v2a_thread_column},
        {"v2_shared_tile", kCuda, "32 x 32 tiles of A and B in shared memory, one sum per thread", nullptr,
         matmul_cuda_v2_shared_tile},
        {"v1_coalesced", kCuda, "a warp along the columns: neighbouring threads read neighbouring elements of B",
         nullptr, matmul_cuda_v1_coalesced},
        {"v0_naive", kCuda, "one thread per element, a warp along the rows, summed in double", nullptr,
         matmul_cuda_v0_naive},
        {"v8_small", kCpu, "small matrices: B stays in L1 and A is read in place; float32 and float64",
         matmul_cpu_v8_accepts, matmul_cpu_v8_small, matmul_cpu_v8_footprint, matmul_cpu_v8_by_default},
        {"v7_dots", kCpu, "few rows or columns: dot products, with the other operand read in place, contiguous along k",
         matmul_cpu_v7_accepts, matmul_cpu_v7_dots, matmul_cpu_v7_footprint, matmul_cpu_v7_by_default},
        {"v6_gemv", kCpu, "one row or one column: the matrix is read once", matmul_cpu_v6_accepts, matmul_cpu_v6_gemv,
         matmul_cpu_v6_footprint},
        {"v5_amx_tile", kCpu, "AMX tiles, 16 x 32 x 16 products per instruction; bfloat16", matmul_cpu_v5_accepts,
         matmul_cpu_v5_amx_tile, matmul_cpu_v5_footprint},
        {"v4_bf16_dot", kCpu, "dot products of AVX512_BF16 or NEON, two or four steps of k at once; bfloat16",
         matmul_cpu_v4_accepts, matmul_cpu_v4_bf16_dot, matmul_cpu_v4_footprint, matmul_cpu_v4_by_default},
        {"v3_packed_simd", kCpu, "panels of A packed too, blocks for L2, a taller tile of SIMD sums, all threads",
         nullptr, matmul_cpu_v3_packed_simd, matmul_cpu_v3_footprint},
        {"library", kCpu, "the BLAS that SciPy ships; float32 and float64", matmul_cpu_library_accepts,
         matmul_cpu_library},
        {"v2b_packed_b", kCpu, "the same tile, from panels of B copied into one piece; float32 and float64",
         matmul_cpu_v2a_accepts, matmul_cpu_v2b_packed_b, matmul_cpu_v2b_footprint},
        {"v2a_register_tile", kCpu, "6 rows by 2 vectors of sums stay in registers, one thread; float32 and float64",
         matmul_cpu_v2a_accepts, matmul_cpu_v2a_register_tile, matmul_cpu_v2a_footprint},
        {"v2_blocked", kCpu, "tiles in cache, four rows of B for each pass over C: pays where B does not fit in cache",
         nullptr, matmul_cpu_v2_blocked, matmul_cpu_v2_footprint},
        {"v1_loop_order", kCpu, "i-k-j: the inner loop runs along rows of B", nullptr, matmul_cpu_v1_loop_order,
         matmul_cpu_v1_footprint},
        {"v0_reference", kCpu, "three loops, summed in double", nullptr, matmul_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
