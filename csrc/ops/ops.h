// Every public op. Each checks its arguments, allocates the result, runs its ladder and counts its cost.
// `variant` names a rung ("v0_reference"); empty picks the fastest that accepts the operands.
#pragma once

#include <optional>
#include <string_view>

#include "autograd/tape.h"
#include "core/tensor.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/call.h"

namespace rooflab {

using kernels::ElementwiseOp;

// Elementwise family: one launch each, operands broadcast, dtypes must agree.
Tensor elementwise(ElementwiseOp op, const Tensor& x, std::string_view variant = {});
Tensor elementwise(ElementwiseOp op, const Tensor& a, const Tensor& b, std::string_view variant = {});
Tensor elementwise(ElementwiseOp op, const Tensor& a, Scalar b, std::string_view variant = {});
Tensor elementwise(ElementwiseOp op, Scalar a, const Tensor& b, std::string_view variant = {});
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, std::string_view variant = {});
Tensor where(const Tensor& condition, const Tensor& a, Scalar b, std::string_view variant = {});
Tensor where(const Tensor& condition, Scalar a, const Tensor& b, std::string_view variant = {});
Tensor cast(const Tensor& x, DType dtype, std::string_view variant = {});  // itself when the dtype is the same
Tensor copy(const Tensor& x, std::string_view variant = {});               // contiguous
void copy_into(const Tensor& destination, const Tensor& source);           // broadcasts, casts, crosses devices
void fill(const Tensor& destination, Scalar value);
// x = op(x, y) in place: y broadcasts to x, overlapping memory is read before it is written. The tape refuses a leaf
// that requires grad, and memory that another tensor shows.
void write(ElementwiseOp op, Tensor& x, const Tensor& y);
void write(ElementwiseOp op, Tensor& x, Scalar y);

// Tensors one after another along `dim`; their other sizes agree.
Tensor cat(const Tensors& tensors, int64_t dim, std::string_view variant = {});

// Elements, slices and rows chosen by an index (int64 or int32), and the reverse: y = x, then y[index] += src.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, std::string_view variant = {});
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index, std::string_view variant = {});
Tensor embedding(const Tensor& index, const Tensor& weight, std::string_view variant = {});
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view variant = {});

// tanh-approximated GeLU, fused.
Tensor gelu(const Tensor& x, std::string_view variant = {});

// Random fill; the same values on every device for the same seed and sequence of calls.
void manual_seed(uint64_t seed);
Tensor randn(const Shape& shape, DType dtype, Device device);
Tensor rand(const Shape& shape, DType dtype, Device device);
Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype, Device device);  // [low, high)

// Reductions over `dims`; all dimensions when empty.
Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
Tensor mean(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
Tensor amax(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
Tensor amin(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});

// The place of the largest or smallest element along `dim`, or over all; the first of equals. max and min give the
// element too.
struct ValuesAndIndices {
  Tensor values, indices;
};
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim, std::string_view variant = {});
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim, std::string_view variant = {});
ValuesAndIndices max(const Tensor& x, int64_t dim, bool keepdim, std::string_view variant = {});
ValuesAndIndices min(const Tensor& x, int64_t dim, bool keepdim, std::string_view variant = {});

// Elements in order along `dim` with their places: all, or the k largest (or smallest) in order. Equals keep theirs.
ValuesAndIndices sort(const Tensor& x, int64_t dim, bool descending, std::string_view variant = {});
ValuesAndIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, std::string_view variant = {});

Tensor cumsum(const Tensor& x, int64_t dim, std::string_view variant = {});

// Matrices with zeros above, or below, a diagonal.
Tensor tril(const Tensor& x, int64_t diagonal, std::string_view variant = {});
Tensor triu(const Tensor& x, int64_t diagonal, std::string_view variant = {});

Tensor softmax(const Tensor& x, int64_t dim, std::string_view variant = {});
Tensor rms_norm(const Tensor& x, const std::optional<Tensor>& weight, double eps, std::string_view variant = {});
Tensor layer_norm(const Tensor& x, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, double eps,
                  std::string_view variant = {});

// The keys that each query may see (L_q, L_kv), bool; the last query stands beside the last key.
Tensor attention_mask(int64_t q_length, int64_t kv_length, bool is_causal, std::optional<int64_t> window,
                      Device device);

// softmax(scale q k^T + mask) v for each head; q (B, H, L_q, D_h), k and v (B, H_kv, L_kv, D_h), or without B.
// The mask broadcasts to (B, H, L_q, L_kv): bool, true may be seen; or added to the scores.
struct AttentionOptions {
  bool is_causal = false;
  std::optional<int64_t> window;  // keys nearer than this are seen
  std::optional<double> scale;    // 1 / sqrt(D_h) when empty
  bool deterministic = false;     // the gradients are the same bits on every run
};
struct AttentionResult {
  Tensor out;                 // q's shape and layout
  std::optional<Tensor> lse;  // (B, H, L_q): log of the sum of exponentials of the scores; when asked for
};
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
                          const AttentionOptions& options, bool return_lse, std::string_view variant = {});
struct AttentionGradients {
  Tensor dq, dk, dv;
};
AttentionGradients attention_backward(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                                      const Tensor& out, const Tensor& lse, const std::optional<Tensor>& mask,
                                      const AttentionOptions& options, std::string_view variant = {});

// As torch.matmul: 1-D operands, 2-D, and batches that broadcast; transposed operands without a copy.
Tensor matmul(const Tensor& a, const Tensor& b, std::string_view variant = {});
void set_cpu_blas_loader(void (*loader)());  // calls kernels::set_cpu_blas when `library` is first asked for

// Takes `gradients` of `outputs` (1 where not defined) back to the leaves, or to `inputs` alone (autograd/engine.h).
void backward(const Tensors& outputs, Tensors gradients, bool retain_graph);
Tensors grad(const Tensors& outputs, Tensors gradients, const Tensors& inputs, bool retain_graph);

// Views that gradients go through; the members of Tensor of the same names record nothing.
Tensor view(const Tensor& x, const Shape& shape);
Tensor reshape(const Tensor& x, const Shape& shape);  // a copy where a view cannot be
Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor permute(const Tensor& x, const Shape& dims);
Tensor expand(const Tensor& x, const Shape& shape);
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor squeeze(const Tensor& x, std::optional<int64_t> dim);

// One step of t[i, 2:5, None]: element `start` of a dimension, elements start, start + step ... of it, or a new
// dimension of size 1.
struct IndexStep {
  enum Kind { kSelect, kSlice, kInsert } kind;
  int dim;  // of the tensor that the steps before it have made
  int64_t start = 0, count = 0, step = 1;
};
Tensor index(const Tensor& x, std::vector<IndexStep> steps);  // a view; a copy where a step is negative

// An array among them: integers of any shape along dimension `dim` of what the steps make, or a mask of it and of as
// many dimensions as it has. Several broadcast; where they lie apart, what they choose comes first, as in NumPy.
struct IndexArray {
  int dim;
  Tensor index;
};
Tensor index(const Tensor& x, std::vector<IndexStep> steps, const std::vector<IndexArray>& arrays);  // index_select
// Writes, of several values for one place the last. With arrays, x is put together anew and copied: three launches.
void set_index(const Tensor& x, const std::vector<IndexStep>& steps, const std::vector<IndexArray>& arrays,
               const Tensor& value);
void set_index(const Tensor& x, const std::vector<IndexStep>& steps, const std::vector<IndexArray>& arrays,
               Scalar value);

// A tensor of what lies in the host's memory, row-major; ValueError for a number that an integer dtype cannot hold.
Tensor from_host(const void* data, DType from, const Shape& shape, DType dtype, Device device);
bool are_bools(const Tensor& x);  // on the CPU: whether its bytes are 0 and 1, all that C++ knows of a bool

// Copies only if needed (transfer.cpp).
Tensor contiguous(const Tensor& x);
Tensor to_device(const Tensor& x, Device device);

}  // namespace rooflab
