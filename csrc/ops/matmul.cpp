// matmul: shapes and strides converted to (batch, M, K) x (batch, K, N), and cost.
#include "kernels/matmul/matmul.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::MatmulArgs;
using enum Device::Type;

void (*blas_loader)() = nullptr;
std::atomic<bool> blas_loaded{false};

constexpr std::array<std::string_view, 3> kPrecisions{"highest", "high", "medium"};
std::atomic<size_t> precision{0};  // one of these

Shape batch_of(const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); }

// x as (batch, rows, columns), its leading dimensions broadcast to `batch`: a view if their strides merge, otherwise a
// copy.
Tensor as_batch(const Tensor& x, const Shape& batch, int64_t count) {
  if (batch.empty()) return x.unsqueeze(0);
  Shape expanded = batch;
  expanded.push_back(x.size(-2));
  expanded.push_back(x.size(-1));
  return operand_as(x, reshape(x.expand(expanded), {count, x.size(-2), x.size(-1)}));
}

// da = dc b^T and db = a^T dc, summed over the batches that an operand was broadcast to.
Tensors gradients(const Gradients& d, const Tensor& a_in, const Tensor& b_in, const Shape& a_shape,
                  const Shape& b_shape) {
  const bool is_row = a_shape.size() == 1, is_column = b_shape.size() == 1;
  Tensor dc = is_row ? d[0].unsqueeze(is_column ? -1 : -2) : d[0];
  if (is_column) dc = dc.unsqueeze(-1);
  Tensor da, db;
  if (d.wanted(0)) {
    const Tensor b = is_column ? b_in.unsqueeze(1) : b_in;
    const Tensor da_batch = matmul(dc, b.transpose(-2, -1));
    da = is_row ? sum_to(da_batch, {1, a_shape[0]}).view(a_shape) : sum_to(da_batch, a_shape);
  }
  if (d.wanted(1)) {
    Tensor a = is_row ? a_in.unsqueeze(0) : a_in;
    if (b_shape.size() <= 2 && a.ndim() > 2) {  // one B for all of A: the batch becomes rows, and its sum is free
      const int64_t rows = numel(Shape(a.shape().begin(), a.shape().end() - 1));
      a = reshape(a, {rows, a.size(-1)});
      dc = reshape(dc, {rows, dc.size(-1)});
    }
    // The gradient of a transposed B gets B's layout, so that the weight's gradient needs no copy.
    const bool is_transposed = b_in.ndim() > 1 && b_in.stride(-2) == 1 && b_in.stride(-1) != 1;
    const Tensor db_batch =
        is_transposed ? matmul(dc.transpose(-2, -1), a).transpose(-2, -1) : matmul(a.transpose(-2, -1), dc);
    db = is_column ? sum_to(db_batch, {b_shape[0], 1}).view(b_shape) : sum_to(db_batch, b_shape);
  }
  return {da, db};
}

// A vector is one row on the left and one column on the right.
Tensor left_matrix(const Tensor& a) { return a.ndim() == 1 ? a.unsqueeze(0) : a; }
Tensor right_matrix(const Tensor& b) { return b.ndim() == 1 ? b.unsqueeze(1) : b; }

void run(const Call<NoOptions>& call) {
  const Tensor a = left_matrix(call.inputs[0]), b = right_matrix(call.inputs[1]);
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const Shape batch = broadcast_shapes("matmul", batch_of(a), batch_of(b));
  const int64_t count = numel(batch);
  Tensor a3 = as_batch(a, batch, count), b3 = as_batch(b, batch, count);
  // On the CPU packing handles any strides. CUDA rungs beyond v2 need rows or columns without gaps.
  const std::string& variant = call.variant;
  if (target_of(call.device()).kind == kCuda && !variant.starts_with("v0") && !variant.starts_with("v1"))
    for (Tensor* x : {&a3, &b3})
      if (x->stride(1) != 1 && x->stride(2) != 1) *x = operand_as(*x, contiguous(*x));
  MatmulArgs args{.a = a3.data(),
                  .b = b3.data(),
                  .c = call.outputs[0].data(),
                  .batch = count,
                  .m = m,
                  .n = n,
                  .k = k,
                  .a_batch_stride = count > 1 ? a3.stride(0) : 0,
                  .a_row_stride = a3.stride(1),
                  .a_col_stride = a3.stride(2),
                  .b_batch_stride = count > 1 ? b3.stride(0) : 0,
                  .b_row_stride = b3.stride(1),
                  .b_col_stride = b3.stride(2),
                  .dtype = a.dtype(),
                  .splits_float32 = precision > 0};
  if (count > 1 && m == 1) args.a_row_stride = args.a_batch_stride;  // a single row: its stride may step over the batch
  // One B for all of A: the batch becomes more rows of A, and B is read once.
  if (count > 1 && args.b_batch_stride == 0 && args.a_batch_stride == m * args.a_row_stride) {
    args.m *= count;
    args.batch = 1;
    args.a_batch_stride = 0;
  }
  run_rung(kernels::matmul_ladder, call, args);
}

const Op<NoOptions> kOp("matmul", run);

}  // namespace

void set_cpu_blas_loader(void (*loader)()) { blas_loader = loader; }

void set_float32_matmul_precision(std::string_view name) {
  const auto found = std::find(kPrecisions.begin(), kPrecisions.end(), name);
  RL_CHECK(found != kPrecisions.end(), "set_float32_matmul_precision",
           "precision: expected highest, high or medium, got \"", name, "\"");
  precision = found - kPrecisions.begin();
}

std::string_view float32_matmul_precision() { return kPrecisions[precision]; }

Tensor matmul(const Tensor& a_in, const Tensor& b_in, std::string_view variant) {
  if (const auto dtype = autocast::wanted("matmul", {&a_in, &b_in}))
    return matmul(autocast::in(*dtype, a_in), autocast::in(*dtype, b_in), variant);
  const OpScope scope("matmul");
  check_same_device("matmul", a_in, b_in);
  check_same_dtype("matmul", a_in, b_in);
  check_floating("matmul", "a", a_in);
  RL_CHECK(a_in.ndim() && b_in.ndim(), "matmul", "expected at least one dimension, got ", a_in.shape(), " and ",
           b_in.shape());
  const Tensor a = left_matrix(a_in), b = right_matrix(b_in);
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  RL_CHECK(b.size(-2) == k, "matmul", "b: expected (K=", k, ", N), got ", b_in.shape(), " against a of shape ",
           a_in.shape());
  const Shape batch = broadcast_shapes("matmul", batch_of(a), batch_of(b));
  Shape result = batch;
  if (a_in.ndim() > 1) result.push_back(m);
  if (b_in.ndim() > 1) result.push_back(n);
  if (variant == "library" && a.device().is_cpu() && blas_loader && !blas_loaded) {
    blas_loader();  // imports SciPy, so only those who ask for its BLAS wait for that
    blas_loaded = true;
  }

  Tensor c = Tensor::empty(result, a.dtype(), a.device());
  const int64_t macs = flops_of("matmul", {2, numel(batch), m, n, k}, a_in.shape(), b_in.shape()) / 2;
  const Cost cost{macs, 2 * macs, compulsory_bytes({a_in, b_in}), c.nbytes()};
  return submit(Call(kOp, {a_in, b_in}, {c}, {}, cost, variant),
                autograd::saving(autograd::only_if(autograd::requires_grad(b_in), a_in),
                                 autograd::only_if(autograd::requires_grad(a_in), b_in)),
                [a_shape = a_in.shape(), b_shape = b_in.shape()](const Gradients& d, const Tensor& a, const Tensor& b) {
                  return gradients(d, a, b, a_shape, b_shape);
                });
}

}  // namespace rooflab
