// Every public op. Each checks its arguments, allocates the result, runs a rung of its ladder and counts its cost.
// `variant` names the rung ("v0_reference"); if it is empty, the fastest rung that accepts the operands runs.
#pragma once

#include <optional>
#include <string_view>

#include "autograd/tape.h"
#include "core/tensor.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/call.h"

namespace rooflab {

using kernels::ElementwiseOp;
// A number in place of a tensor. Its kind counts where it meets a tensor of a lower one (ops/promotion.h); numbers that
// ops make themselves are of the lowest, so they take the dtype of the tensor.
enum class NumberKind : uint8_t { kBool, kInteger, kFloating };
struct Scalar : kernels::ElementwiseScalar {
  NumberKind kind = NumberKind::kBool;
};

// The elementwise family. Each op is one launch; the operands broadcast, and meet in a common dtype (ops/promotion.h).
Tensor elementwise(ElementwiseOp op, const Tensor& x, std::string_view variant = {});
Tensor elementwise(ElementwiseOp op, const Tensor& a, const Tensor& b, std::string_view variant = {});
Tensor elementwise(ElementwiseOp op, const Tensor& a, Scalar b, std::string_view variant = {});
Tensor elementwise(ElementwiseOp op, Scalar a, const Tensor& b, std::string_view variant = {});
// ValueError for a number that the dtype cannot hold.
void check_number(const char* op, Scalar number, DType dtype);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, std::string_view variant = {});
Tensor where(const Tensor& condition, const Tensor& a, Scalar b, std::string_view variant = {});
Tensor where(const Tensor& condition, Scalar a, const Tensor& b, std::string_view variant = {});
Tensor where(const Tensor& condition, Scalar a, Scalar b, std::string_view variant = {});
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight, std::string_view variant = {});
Tensor lerp(const Tensor& start, const Tensor& end, Scalar weight, std::string_view variant = {});
// With one bound it is maximum or minimum. Only elements between the bounds have a gradient.
// `posinf` and `neginf` are by default the largest and the smallest number of the dtype.
Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf,
                  std::string_view variant = {});
Tensor clamp(const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high, std::string_view variant = {});
Tensor cast(const Tensor& x, DType dtype, std::string_view variant = {});  // x itself if it has the dtype already
Tensor copy(const Tensor& x, std::string_view variant = {});               // the copy is contiguous
// ValueError for a tensor that no op may write: it requires grad, or several of its elements share memory.
void check_writable(const char* op, const Tensor& destination);
// x, or a copy of it where writing `destination` may change what is still to be read of it.
Tensor apart(const Tensor& x, const Tensor& destination);
// The sources of copies that follow each other: one that lies in an earlier destination is copied first.
Tensors apart_from_earlier(Tensors sources, const Tensors& destinations);
void copy_into(const Tensor& destination, const Tensor& source);  // broadcasts, casts, and crosses devices
void fill(const Tensor& destination, Scalar value);
void fill_where(const Tensor& condition, const Tensor& destination, Scalar value);  // the condition broadcasts
// x = op(x, y) in place. y broadcasts to x, and memory that both share is read before it is written. If the tape
// records the call, x is not written: the result is a new tensor, which the caller puts in the place of x. Otherwise
// there is no result. The tape refuses a leaf that requires grad, and a tensor whose memory another tensor shares:
// one beside the `owners` that the caller knows of, x among them.
std::optional<Tensor> write(ElementwiseOp op, const Tensor& x, const Tensor& y, long owners = 1);
std::optional<Tensor> write(ElementwiseOp op, const Tensor& x, Scalar y, long owners = 1);

// Joins the tensors along `dim`. Their other sizes must agree.
Tensor cat(const Tensors& tensors, int64_t dim, std::string_view variant = {});

// Elements (gather), slices (index_select) and rows (embedding) that an index of int64 or int32 chooses. scatter and
// scatter_add are the reverse of gather: y = x, then y[index] = src, or += src.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, std::string_view variant = {});
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index, std::string_view variant = {});
Tensor embedding(const Tensor& index, const Tensor& weight, std::string_view variant = {});
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view variant = {});
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar number, std::string_view variant = {});
// x with the number around it: so many elements before and after, in each dimension.
Tensor pad(const Tensor& x, const Shape& before, const Shape& after, Scalar number);
Tensor one_hot(const Tensor& index, int64_t classes);  // int64 (..., classes), of an index of int64
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view variant = {});

// GeLU by the tanh approximation, in one launch.
Tensor gelu(const Tensor& x, std::string_view variant = {});

// Random numbers: the same on every device for the same seed and the same sequence of calls.
void manual_seed(uint64_t seed);
Tensor randn(const Shape& shape, DType dtype, Device device);
Tensor rand(const Shape& shape, DType dtype, Device device);
Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype, Device device);  // in [low, high)

// Reductions over `dims`, or over all dimensions when `dims` is empty.
Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
Tensor mean(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
Tensor amax(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
Tensor amin(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
// Variance and standard deviation: the divisor is the number of elements less the correction.
Tensor var(const Tensor& x, const Shape& dims, double correction, bool keepdim, std::string_view variant = {});
Tensor std(const Tensor& x, const Shape& dims, double correction, bool keepdim, std::string_view variant = {});
// Whether any element is not 0, and whether all are; bool.
Tensor any(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
Tensor all(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
// log(sum(exp(x))).
Tensor logsumexp(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});
Tensor prod(const Tensor& x, const Shape& dims, bool keepdim, std::string_view variant = {});  // of integers: int64

// The position of the largest or smallest element along `dim`, or of all elements if there is no `dim`. Among equal
// elements it is the first one. max and min return the element too.
struct ValuesAndIndices {
  Tensor values, indices;
};
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim, std::string_view variant = {});
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim, std::string_view variant = {});
ValuesAndIndices max(const Tensor& x, int64_t dim, bool keepdim, std::string_view variant = {});
ValuesAndIndices min(const Tensor& x, int64_t dim, bool keepdim, std::string_view variant = {});

// The elements along `dim` in order, and the positions they came from: all of them (sort), or the k largest or smallest
// (topk). Equal elements keep their order. `sort_values` gives no positions, and no gradient; it goes along the last
// dimension, ascending.
ValuesAndIndices sort(const Tensor& x, int64_t dim, bool descending, std::string_view variant = {});
Tensor sort_values(const Tensor& x, std::string_view variant = {});
ValuesAndIndices topk(const Tensor& x, int64_t k, int64_t dim, bool largest, std::string_view variant = {});
// The middle element along `dim`, of an even number the lower one, and the position of the first that equals it.
ValuesAndIndices median(const Tensor& x, int64_t dim, bool keepdim, std::string_view variant = {});

// How many numbers of each sorted row are at most each value: rows (..., N) and values (..., M) of one dtype, (..., M).
Tensor searchsorted(const Tensor& sorted, const Tensor& values);

// Running sums along `dim`.
Tensor cumsum(const Tensor& x, int64_t dim, std::string_view variant = {});

// first, first + step, ...: `count` numbers, computed in int64 or in double.
Tensor arange(int64_t count, Scalar first, Scalar step, bool in_integers, DType dtype, Device device);
// The same from start to end, which are exact.
Tensor linspace(double start, double end, int64_t steps, DType dtype, Device device);

// Matrices with zeros above a diagonal (tril), or below it (triu).
Tensor tril(const Tensor& x, int64_t diagonal, std::string_view variant = {});
Tensor triu(const Tensor& x, int64_t diagonal, std::string_view variant = {});

Tensor softmax(const Tensor& x, int64_t dim, std::string_view variant = {});
Tensor log_softmax(const Tensor& x, int64_t dim, std::string_view variant = {});
Tensor rms_norm(const Tensor& x, const std::optional<Tensor>& weight, double eps, bool zero_centered = false,
                std::string_view variant = {});
Tensor layer_norm(const Tensor& x, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, double eps,
                  std::string_view variant = {});

// Which keys each query may see: a bool mask (L_q, L_kv). The last query is at the position of the last key.
Tensor attention_mask(int64_t q_length, int64_t kv_length, bool is_causal, std::optional<int64_t> window,
                      Device device);

// softmax(scale q k^T + mask) v for each head; q (B, H, L_q, D_h), k and v (B, H_kv, L_kv, D_h), or all without B.
// The mask broadcasts to (B, H, L_q, L_kv). It is bool, true where a key may be seen, or it is added to the scores.
struct AttentionOptions {
  bool is_causal = false;
  std::optional<int64_t> window;      // a query sees only keys at a distance below this
  std::optional<double> scale;        // 1 / sqrt(D_h) if empty
  bool deterministic = false;         // whether the gradients must have the same bits on every run
  std::optional<Tensor> kv_length{};  // (1), int64, read on the device: k and v end there; empty: all of them
};
struct AttentionResult {
  Tensor out;  // has the shape and the layout of q
  // (B, H, L_q), if asked for: the log of the sum of exponentials of the scores, and what its rounding has left out.
  std::optional<Tensor> lse, lse_rest;
};
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
                          const AttentionOptions& options, bool return_lse, std::string_view variant = {},
                          bool return_rest = false);
struct AttentionGradients {
  Tensor dq, dk, dv;
  Tensor dmask;  // not defined() unless it was asked for, which v0_composed alone can do
};
AttentionGradients attention_backward(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                                      const Tensor& out, const Tensor& lse, const std::optional<Tensor>& lse_rest,
                                      const std::optional<Tensor>& mask, const AttentionOptions& options,
                                      std::string_view variant = {}, bool of_mask = false);

// Rotary position embedding: rotates the halves of each head of x, (B, H, L, D_h) or (H, L, D_h), by the angles whose
// cos and sin are given, (L, D_h) or (B, L, D_h).
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, std::string_view variant = {});
// rms_norm over each head, then rope: for models that normalise queries and keys.
Tensor rms_norm_rope(const Tensor& x, const Tensor& weight, const Tensor& cos, const Tensor& sin, double eps,
                     bool zero_centered = false, std::string_view variant = {});
// h = residual + rms_norm(x) and, with a next weight, y = rms_norm(h).
struct RmsNormAddResult {
  Tensor h;
  std::optional<Tensor> y;
};
RmsNormAddResult rms_norm_add(const Tensor& x, const Tensor& residual, const Tensor& weight,
                              const std::optional<Tensor>& next_weight, double eps, bool zero_centered = false,
                              std::string_view variant = {});
// Writes k and v, (B, H_kv, L, D_h), into caches (B, H_kv, T, D_h) from place `position` mod T on, wrapping around at
// the end.
void kv_append(const Tensor& k_cache, const Tensor& v_cache, const Tensor& k, const Tensor& v, const Tensor& position,
               std::string_view variant = {});
// rms_norm_rope of q (B, H, L, D_h), which it returns, and of k (B, H_kv, L, D_h), which goes to its cache with v as
// kv_append writes it.
Tensor rms_norm_rope_append(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& q_weight,
                            const Tensor& k_weight, const Tensor& cos, const Tensor& sin, const Tensor& k_cache,
                            const Tensor& v_cache, const Tensor& position, double eps, bool zero_centered = false,
                            std::string_view variant = {});

// Like torch.matmul: 1-D and 2-D operands, and batches of matrices, which broadcast. Transposed operands are not
// copied.
Tensor matmul(const Tensor& a, const Tensor& b, std::string_view variant = {});
// `loader` runs when the `library` rung is first asked for on the CPU; it calls kernels::set_cpu_blas.
void set_cpu_blas_loader(void (*loader)());

// PyTorch's "highest", "high" and "medium", of the process: whether products of float32 on a GPU may go through
// bfloat16 parts. They keep the accuracy of float32 in each.
void set_float32_matmul_precision(std::string_view precision);
std::string_view float32_matmul_precision();

// Takes `gradients` of `outputs` back to the leaves, or to `inputs` alone (autograd/engine.h). A gradient that is not
// defined() stands for 1.
void backward(const Tensors& outputs, Tensors gradients, bool retain_graph);
Tensors grad(const Tensors& outputs, Tensors gradients, const Tensors& inputs, bool retain_graph);

// Views that the tape records. The members of Tensor that have the same names record nothing.
Tensor view(const Tensor& x, const Shape& shape);
Tensor reshape(const Tensor& x, const Shape& shape);  // copies where the strides allow no view
Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor permute(const Tensor& x, const Shape& dims);
Tensor expand(const Tensor& x, const Shape& shape);
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor squeeze(const Tensor& x, std::optional<int64_t> dim);
Tensor diagonal(const Tensor& x, int dim0, int dim1);  // where indices of two equal sizes agree; dim1 goes

// One step of t[i, 2:5, None]. kSelect takes element `start` of a dimension, kSlice takes `count` elements, `step`
// apart, from `start` on, and kInsert adds a dimension of size 1.
struct IndexStep {
  enum Kind { kSelect, kSlice, kInsert } kind;
  int dim;  // in the tensor that the earlier steps have produced
  int64_t start = 0, count = 0, step = 1;
};
Tensor index(const Tensor& x, std::vector<IndexStep> steps);  // a view, or a copy if a step is negative

// An array in the brackets: integers of any shape, which index dimension `dim` of the result of the steps, or a bool
// mask, which covers that dimension and the following ones. Several arrays broadcast against each other. If other
// dimensions lie between them, the dimensions that they choose come first in the result, as in NumPy.
struct IndexArray {
  int dim;
  Tensor index;
};
Tensor index(const Tensor& x, std::vector<IndexStep> steps, const std::vector<IndexArray>& arrays);
// The places of elements that are not 0: (N, dimensions of x), int64, in order.
Tensor nonzero(const Tensor& x, std::string_view variant = {});
// Writes `value` there. If several values go to one place, the last one stays. With arrays, all of x is computed again
// and copied into its memory: three launches. A mask takes those of nonzero and a sum of its own too.
void set_index(const Tensor& x, const std::vector<IndexStep>& steps, const std::vector<IndexArray>& arrays,
               const Tensor& value);
void set_index(const Tensor& x, const std::vector<IndexStep>& steps, const std::vector<IndexArray>& arrays,
               Scalar value);

// A new tensor with the row-major data at `data` in host memory. ValueError for a number that an integer dtype cannot
// hold.
Tensor from_host(const void* data, DType from, const Shape& shape, DType dtype, Device device);
// Whether all bytes of a bool tensor on the CPU are 0 or 1. Other libraries may write others, which C++ does not allow.
bool are_bools(const Tensor& x);

Tensor contiguous(const Tensor& x);                // x itself if it is contiguous
Tensor to_device(const Tensor& x, Device device);  // x itself if it is there

}  // namespace rooflab
