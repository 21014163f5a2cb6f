// The library rung: cuBLASLt, loaded at first use. float32 is computed in float32 (no TF32), float16 and bfloat16 with
// float32 sums. cuBLASLt is asked once for each shape which of its kernels to run.
#include <cublasLt.h>

#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "core/dynamic_library.h"
#include "kernels/matmul/matmul_cuda.cuh"

namespace rooflab::kernels {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;
constexpr size_t kMaxPlans = 4096;

template <class F>
F* function(const char* name) {
  return cublaslt().symbol<F>(name);
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  static const auto text = function<decltype(cublasLtGetStatusName)>("cublasLtGetStatusName");
  throw CudaError(message("[matmul] ", call, " failed: ", text(status)));
}

struct Types {
  cudaDataType_t data, scale;
  cublasComputeType_t compute;
};

Types types_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::kFloat32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::kFloat16: return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    default: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  }
}

// One operand as far as the choice of a kernel depends on it.
struct Operand {
  int64_t row_length, rows, leading, batch_stride;
  bool transposed;
  uint32_t alignment;  // in bytes, of the data
  auto operator<=>(const Operand&) const = default;
};

struct Problem {
  int device;
  DType dtype;
  int64_t batch;
  Operand a, b, c;
  auto operator<=>(const Problem&) const = default;
};

uint32_t alignment_of(const void* data) {
  return 1u << std::min(std::countr_zero(reinterpret_cast<uintptr_t>(data)), 8);
}

// cuBLASLt's matrices are column-major, so it is asked for C^T = B^T A^T, and a row of ours is a column of its.
Problem problem_of(const MatmulArgs& args) {
  const MatmulOperand a = matmul_a(args), b = matmul_b(args);
  Problem problem{};
  RL_CUDA_CHECK(cudaGetDevice(&problem.device));
  problem.dtype = args.dtype;
  problem.batch = args.batch;
  problem.a = {b.row_length, b.rows, b.leading, b.batch_stride, b.k_major, alignment_of(args.b)};
  problem.b = {a.row_length, a.rows, a.leading, a.batch_stride, !a.k_major, alignment_of(args.a)};
  problem.c = {args.n, args.m, args.n, args.m * args.n, false, alignment_of(args.c)};
  return problem;
}

struct Plan {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
  cublasLtMatmulAlgo_t algorithm{};

  explicit Plan(cublasLtHandle_t handle, const Problem& problem) {
    const Types types = types_of(problem.dtype);
    static const auto init = function<decltype(cublasLtMatmulDescInit_internal)>("cublasLtMatmulDescInit_internal");
    check(init(&operation, sizeof operation, types.compute, types.scale), "cublasLtMatmulDescInit");
    set(CUBLASLT_MATMUL_DESC_TRANSA, problem.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, problem.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    layout(a, types.data, problem.a, problem.batch);
    layout(b, types.data, problem.b, problem.batch);
    layout(c, types.data, problem.c, problem.batch);
    choose(handle, problem);
  }

 private:
  void set(cublasLtMatmulDescAttributes_t attribute, cublasOperation_t value) {
    static const auto f = function<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
    check(f(&operation, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }

  static void layout(cublasLtMatrixLayoutOpaque_t& matrix, cudaDataType_t type, const Operand& operand, int64_t batch) {
    static const auto init = function<decltype(cublasLtMatrixLayoutInit_internal)>("cublasLtMatrixLayoutInit_internal");
    static const auto f = function<decltype(cublasLtMatrixLayoutSetAttribute)>("cublasLtMatrixLayoutSetAttribute");
    check(init(&matrix, sizeof matrix, type, operand.row_length, operand.rows, operand.leading),
          "cublasLtMatrixLayoutInit");
    const int32_t count = static_cast<int32_t>(batch);
    check(f(&matrix, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "cublasLtMatrixLayoutSetAttribute");
    check(f(&matrix, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &operand.batch_stride, sizeof(int64_t)),
          "cublasLtMatrixLayoutSetAttribute");
  }

  void choose(cublasLtHandle_t handle, const Problem& problem) {
    static const auto init =
        function<decltype(cublasLtMatmulPreferenceInit_internal)>("cublasLtMatmulPreferenceInit_internal");
    static const auto f =
        function<decltype(cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute");
    static const auto heuristic = function<decltype(cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");

    cublasLtMatmulPreferenceOpaque_t preference{};
    check(init(&preference, sizeof preference), "cublasLtMatmulPreferenceInit");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(f(&preference, attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
    // Partial sums are added in float32, never in the narrower type of C.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.a.alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.b.alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.c.alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.c.alignment);
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    check(heuristic(handle, &operation, &a, &b, &c, &c, &preference, 1, &result, &found),
          "cublasLtMatmulAlgoGetHeuristic");
    if (found == 0) throw CudaError("[matmul] cuBLASLt has no kernel for this shape");
    algorithm = result.algo;
  }
};

// What is kept between calls. cuBLASLt's handle may be shared by threads; the maps are guarded.
class Library {
 public:
  struct Call {
    cublasLtHandle_t handle;
    Plan plan;
    void* workspace;
  };

  Call prepare(const Problem& problem, cudaStream_t stream) {
    std::lock_guard lock(mutex_);
    cublasLtHandle_t& handle = handles_[problem.device];
    if (!handle) check(function<decltype(cublasLtCreate)>("cublasLtCreate")(&handle), "cublasLtCreate");
    auto plan = plans_.find(problem);
    if (plan == plans_.end()) {
      if (plans_.size() >= kMaxPlans) plans_.clear();
      plan = plans_.emplace(problem, Plan(handle, problem)).first;
    }
    // Kernels of one stream follow each other and may share a workspace; those of different streams may not.
    void*& workspace = workspaces_[{problem.device, stream}];
    if (!workspace) workspace = allocate_workspace();
    return {handle, plan->second, workspace};
  }

 private:
  // Permitted while the stream is being captured, too.
  static void* allocate_workspace() {
    void* workspace = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    RL_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    const cudaError_t status = cudaMalloc(&workspace, kWorkspaceBytes);
    RL_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    RL_CUDA_CHECK(status);
    return workspace;
  }

  std::mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_;
  std::map<Problem, Plan> plans_;
  std::map<std::pair<int, cudaStream_t>, void*> workspaces_;
};

Library& library() {
  static Library& instance = *new Library;  // never destroyed: the driver may be gone before static objects are
  return instance;
}

}  // namespace

bool matmul_cuda_library_accepts(const MatmulArgs& args) {
  constexpr int64_t kMaxLeading = std::numeric_limits<int32_t>::max();
  const auto accepts = [](const MatmulOperand& operand) {
    return operand.has_rows && operand.leading >= operand.row_length && operand.leading <= kMaxLeading;
  };
  return is_floating(args.dtype) && args.k > 0 && matmul_fits_int32(args) && accepts(matmul_a(args)) &&
         accepts(matmul_b(args)) && cublaslt().is_available();
}

void matmul_cuda_library(const MatmulArgs& args, Stream stream) {
  if (matmul_is_empty(args)) return;
  auto [handle, plan, workspace] = library().prepare(problem_of(args), cuda_stream(stream));
  static const auto run = function<decltype(cublasLtMatmul)>("cublasLtMatmul");
  const float one = 1, zero = 0;
  const double one_double = 1, zero_double = 0;
  const bool is_double = args.dtype == DType::kFloat64;
  const void* alpha = is_double ? static_cast<const void*>(&one_double) : &one;
  const void* beta = is_double ? static_cast<const void*>(&zero_double) : &zero;
  check(run(handle, &plan.operation, alpha, args.b, &plan.a, args.a, &plan.b, beta, args.c, &plan.c, args.c, &plan.c,
            &plan.algorithm, workspace, kWorkspaceBytes, cuda_stream(stream)),
        "cublasLtMatmul");
}

}  // namespace rooflab::kernels
