// The library rungs of matmul, matmul_float32 and matmul_bias: cuBLASLt, loaded at first use. float32 is computed in
// float32 (no TF32), float16 and bfloat16 with float32 sums. For each shape, cuBLASLt is asked once which of its
// kernels to run and how much workspace they need, and its call is observed once to learn what it submits.
#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>

#include "core/cuda_runtime.h"
#include "core/dynamic_library.h"
#include "core/error.h"
#include "core/mutex.h"
#include "kernels/matmul/matmul_operand.h"
#include "kernels/matmul_bias/matmul_bias.h"
#include "kernels/matmul_float32/matmul_float32.h"

namespace rooflab::kernels {
namespace {

constexpr size_t kMaxWorkspaceBytes = size_t{32} << 20;
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
    case DType::kBFloat16: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::kInt64:
    case DType::kInt32:
    case DType::kBool: break;
  }
  throw std::invalid_argument(message("[matmul] dtype: the library has no ", name(dtype)));
}

// The properties of an operand on which the choice of a kernel depends.
struct Operand {
  int64_t row_length, rows, leading, batch_stride;
  bool transposed;
  uint32_t alignment;  // in bytes, of the data
  auto operator<=>(const Operand&) const = default;
};

struct Problem {
  int device;
  DType dtype, c_dtype;
  int64_t batch;
  Operand a, b, c;
  bool has_bias;  // aligned to 16 bytes
  auto operator<=>(const Problem&) const = default;
};

uint32_t alignment_of(const void* data) {
  return 1u << std::min(std::countr_zero(reinterpret_cast<uintptr_t>(data)), 8);
}

// cuBLASLt's matrices are column-major, so it is asked for C^T = B^T A^T: a row here is a column there.
Problem problem_of(const MatmulArgs& args, const void* bias, DType c_dtype, int device) {
  const MatmulOperand a = matmul_a(args), b = matmul_b(args);
  Problem problem{};
  problem.device = device;
  problem.dtype = args.dtype;
  problem.c_dtype = c_dtype;
  problem.batch = args.batch;
  problem.a = {b.row_length, b.rows, b.leading, b.batch_stride, b.k_major, alignment_of(args.b)};
  problem.b = {a.row_length, a.rows, a.leading, a.batch_stride, !a.k_major, alignment_of(args.a)};
  problem.c = {args.n, args.m, args.n, args.m * args.n, false, alignment_of(args.c)};
  problem.has_bias = bias != nullptr;
  return problem;
}

struct Plan {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
  cublasLtMatmulAlgo_t algorithm{};
  int64_t workspace_bytes = 0;
  Submissions started;  // by the call; counts no kernels until the call has been observed

  Plan(cublasLtHandle_t handle, const Problem& problem, const void* bias) {
    const Types types = types_of(problem.dtype);
    static const auto init = function<decltype(cublasLtMatmulDescInit_internal)>("cublasLtMatmulDescInit_internal");
    check(init(&operation, sizeof operation, types.compute, types.scale), "cublasLtMatmulDescInit");
    set(CUBLASLT_MATMUL_DESC_TRANSA, problem.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, problem.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (problem.has_bias) {  // one for each row of C^T
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set_bias(bias);
    }
    layout(a, types.data, problem.a, problem.batch);
    layout(b, types.data, problem.b, problem.batch);
    layout(c, types_of(problem.c_dtype).data, problem.c, problem.batch);
    choose(handle, problem);
  }

  void set_bias(const void* bias) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
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
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspaceBytes);
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
    workspace_bytes = static_cast<int64_t>(result.workspaceSize);
  }
};

// What is kept between calls. Threads may share cuBLASLt's handle; a mutex guards the maps.
class Library {
 public:
  struct Prepared {
    cublasLtHandle_t handle;
    Plan plan;
  };

  Prepared prepare(const Problem& problem, const void* bias) {
    std::lock_guard lock(mutex_);
    cublasLtHandle_t& handle = handles_[problem.device];
    if (!handle) check(function<decltype(cublasLtCreate)>("cublasLtCreate")(&handle), "cublasLtCreate");
    auto plan = plans_.find(problem);
    if (plan == plans_.end()) {
      if (plans_.size() >= kMaxPlans) plans_.clear();
      plan = plans_.emplace(problem, Plan(handle, problem, bias)).first;
    }
    return {handle, plan->second};
  }

  void remember(const Problem& problem, const Submissions& started) {
    std::lock_guard lock(mutex_);
    if (const auto plan = plans_.find(problem); plan != plans_.end()) plan->second.started = started;
  }

 private:
  Mutex mutex_{LockOrder::kKernels};
  std::map<int, cublasLtHandle_t> handles_;
  std::map<Problem, Plan> plans_;
};

Library& library() {
  static Library& instance = *new Library;  // never destroyed: the driver may be gone before static objects are
  return instance;
}

void run_library(const MatmulArgs& args, const void* bias, DType c_dtype, Queue& queue) {
  const Problem problem = problem_of(args, bias, c_dtype, queue.device().index);
  Library::Prepared prepared = library().prepare(problem, bias);
  Plan& plan = prepared.plan;
  if (bias) plan.set_bias(bias);
  void* workspace = queue.scratch_bytes(plan.workspace_bytes);
  const float one = 1, zero = 0;
  const double one_double = 1, zero_double = 0;
  const bool is_double = args.dtype == DType::kFloat64;
  const void* alpha = is_double ? static_cast<const void*>(&one_double) : &one;
  const void* beta = is_double ? static_cast<const void*>(&zero_double) : &zero;
  static const auto run = function<decltype(cublasLtMatmul)>("cublasLtMatmul");
  const auto multiply = [&](Stream stream) {
    check(run(prepared.handle, &plan.operation, alpha, args.b, &plan.a, args.a, &plan.b, beta, args.c, &plan.c, args.c,
              &plan.c, &plan.algorithm, workspace, plan.workspace_bytes, static_cast<cudaStream_t>(stream.handle)),
          "cublasLtMatmul");
  };
  if (plan.started.kernels == 0) {
    plan.started = cuda::count_submissions(problem.device, multiply);
    library().remember(problem, plan.started);
  }
  queue.library(plan.started, [&] { multiply(queue.stream()); });
}

}  // namespace

void matmul_cuda_library(const MatmulArgs& args, Queue& queue) { run_library(args, nullptr, args.dtype, queue); }

void matmul_float32_cuda_library(const MatmulArgs& args, Queue& queue) {
  run_library(args, nullptr, DType::kFloat32, queue);
}

void matmul_bias_cuda_library(const MatmulBiasArgs& args, Queue& queue) {
  run_library(args.product, args.bias, args.product.dtype, queue);
}

}  // namespace rooflab::kernels
