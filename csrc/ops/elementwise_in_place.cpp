// Writes into existing memory: x += y and the like, copies into a tensor, fills.
#include <algorithm>

#include "autograd/reads.h"
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/autocast.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/promotion.h"

namespace rooflab {
namespace {

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.shape() == b.shape() && a.strides() == b.strides() && a.dtype() == b.dtype();
}

// What an elementwise op can read while it writes `destination`: there, each element is read before it is written.
Tensor readable(const Tensor& x, const Tensor& destination) {
  return is_same_view(x, destination) ? x : apart(x, destination);
}

void check_fits(const char* op, const char* what, const Tensor& destination, const Tensor& source) {
  RL_CHECK(broadcast_shapes(op, destination.shape(), source.shape()) == destination.shape(), op, what, ": ",
           source.shape(), " does not broadcast to ", destination.shape());
}

// x = op(x, y) in the memory of x, without gradients.
void write_plain(ElementwiseOp op, const Tensor& x, const Operand& y) {
  const char* name = kernels::info(op).name;
  RL_CHECK(!kernels::is_comparison(op), name, "in place: the result is bool");
  const auto [dtype, result] = dtypes_of(op, x, y);
  check_fits_dtype(name, result, x.dtype());
  check_writable(name, x);
  submit_into(op, {Operand(x), y}, dtype, x);
  x.storage()->bump_version();
}

// The recorded result of op(x, y), which takes the place of x: if nobody else sees the memory of x, that is equivalent
// to writing into it.
template <class Y>
Tensor replacement(ElementwiseOp op, const Tensor& x, const Y& y, long owners) {
  const char* name = kernels::info(op).name;
  const bool is_leaf = autograd::requires_grad(x) && !x.meta()->node;
  RL_CHECK(!is_leaf, name, "in place: the tensor is a leaf that requires grad; write into it under rl.no_grad()");
  const bool is_own = x.storage().use_count() == owners && x.storage()->bytes() >= x.nbytes();
  RL_CHECK(is_own, name,
           "in place: the gradient of the result is wanted, but the tensor shares its memory with another, or backward "
           "needs it as it is; make a new tensor (x = x + y)");
  Tensor result = elementwise(op, x, y);
  check_fits_dtype(name, result.dtype(), x.dtype());
  result = cast(result, x.dtype());
  // The user asked for the gradient of the tensor, which is the result now.
  if (x.meta() && x.meta()->retains_grad.exchange(false)) {
    result.meta()->retains_grad = true;
    const Tensor none = result.meta()->exchange_grad(x.meta()->grad());
  }
  return result;
}

}  // namespace

Tensor apart(const Tensor& x, const Tensor& destination) { return x.overlaps(destination) ? copy(x.detach()) : x; }

Tensors apart_from_earlier(Tensors sources, const Tensors& destinations) {
  for (size_t i = 1; i < sources.size(); ++i)
    if (std::any_of(destinations.begin(), destinations.begin() + i,
                    [&](const Tensor& earlier) { return earlier.overlaps(sources[i]); }))
      sources[i] = copy(sources[i].detach());
  return sources;
}

void check_writable(const char* op, const Tensor& destination) {
  autograd::check_destination(op, destination);
  RL_CHECK(
      !destination.overlaps_itself(), op,
      "destination: an expanded tensor, or one whose elements share memory, holds one element in many places; copy "
      "it first");
}

void copy_into(const Tensor& destination, const Tensor& source) {
  const bool casts = source.dtype() != destination.dtype();
  const ElementwiseOp op = casts ? ElementwiseOp::kCast : ElementwiseOp::kCopy;
  const OpScope scope(kernels::info(op).name);
  check_writable("copy", destination);
  autograd::check_source("copy", source);
  check_fits("copy", "source", destination, source);
  const Tensor from = readable(to_device(source, destination.device()), destination);
  if (is_same_view(from, destination)) return;
  submit_into(op, {Operand(from)}, from.dtype(), destination);
  autograd::note_overwritten(destination);
  destination.storage()->bump_version();
}

std::optional<Tensor> write(ElementwiseOp op, const Tensor& x, const Tensor& y, long owners) {
  const char* name = kernels::info(op).name;
  if (autocast::wanted("copy", {&x, &y})) return write(op, x, autocast::in(x.dtype(), y), owners);
  const OpScope scope(name);
  check_same_device(name, x, y);
  check_fits(name, "in place", x, y);
  if (autograd::recording(x, y)) return replacement(op, x, y, owners);
  write_plain(op, x, readable(y, x));
  return std::nullopt;
}

std::optional<Tensor> write(ElementwiseOp op, const Tensor& x, Scalar y, long owners) {
  const OpScope scope(kernels::info(op).name);
  if (autograd::recording(x)) return replacement(op, x, y, owners);
  write_plain(op, x, y);
  return std::nullopt;
}

void fill(const Tensor& destination, Scalar value) {
  const OpScope scope("fill");
  check_writable("fill", destination);
  submit_into(ElementwiseOp::kCopy, {Operand(value)}, destination.dtype(), destination);
  autograd::note_overwritten(destination);
  destination.storage()->bump_version();
}

void fill_where(const Tensor& condition, const Tensor& destination, Scalar value) {
  const OpScope scope("where");
  check_writable("where", destination);
  check_fits("where", "condition", destination, condition);
  const Tensor from = readable(condition, destination), x = destination.detach();
  submit_into(ElementwiseOp::kWhere, {Operand(from), Operand(value), Operand(x)}, x.dtype(), destination);
  destination.storage()->bump_version();
}

}  // namespace rooflab
