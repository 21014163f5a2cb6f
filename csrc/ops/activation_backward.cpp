// gelu_backward, silu_backward, geglu_backward and swiglu_backward: checks and cost, shared by all four; and
// the rules composed of elementwise ops.
#include "ops/activation_backward.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/elementwise.h"
#include "ops/rows.h"
#include "ops/rung.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

using kernels::Activation;
using kernels::ActivationBackwardArgs;
using enum ElementwiseOp;

constexpr int64_t kGeluFlops = 13, kSiluFlops = 6, kGatedFlops = 3;  // per element

struct Options {
  Activation activation;
};

void run(const Call<Options>& call) {
  const bool is_gated = call.inputs.size() > 2;
  bool is_dense = true;
  for (const Tensor& x : call.inputs) is_dense &= x.is_contiguous();
  is_dense |= !call.outputs[0].is_contiguous();  // the operands lie in memory as the results do
  const auto rows_of = [&](const Tensor& x) {    // one row where all are without gaps
    return is_dense ? Rows{x, 1, x.numel(), x.numel()} : as_rows(x);
  };
  const Rows dy = rows_of(call.inputs[0]), a = rows_of(call.inputs[1]);
  const Rows b = is_gated ? rows_of(call.inputs[2]) : Rows{Tensor(), a.n, a.d, a.d};
  run_rung(kernels::activation_backward_ladder, call,
           {dy.x.data(), a.x.data(), b.x.data(), call.outputs[0].data(), is_gated ? call.outputs[1].data() : nullptr,
            a.n, a.d, dy.stride, a.stride, b.stride, call.options.activation, a.x.dtype()});
}

const Op<Options> kGeluOp("gelu_backward", run), kSiluOp("silu_backward", run), kGegluOp("geglu_backward", run),
    kSwigluOp("swiglu_backward", run);

const Op<Options>& op_of(Activation activation, bool is_gated) {
  if (activation == Activation::kGelu) return is_gated ? kGegluOp : kGeluOp;
  return is_gated ? kSwigluOp : kSiluOp;
}

// Every rung but the composed one takes all dtypes except float64. Which of those runs depends on the layout of the
// operands, which run() determines.
bool composes(const Tensor& a, std::string_view variant) {
  if (a.numel() == 0) return false;
  return variant.empty() ? a.dtype() == DType::kFloat64 : variant == "v0_composed";
}

void check_like(const char* op, const char* argument, const Tensor& x, const Tensor& a) {
  RL_CHECK(x.shape() == a.shape(), op, argument, ": expected the shape of a ", a.shape(), ", got ", x.shape());
  check_same_device(op, a, x);
  check_same_dtype(op, a, x);
}

Tensors submitted(const Op<Options>& op, Activation activation, const Tensors& inputs, std::string_view variant) {
  const Tensor& a = inputs[1];
  const bool is_gated = inputs.size() > 2;
  const auto empty = [&] {
    const Tensor& last = inputs[is_gated ? 2 : 1];
    return empty_beside({inputs[0], a, last}, a.shape(), a.dtype(), a.device());
  };
  Tensors outputs{empty()};
  if (is_gated) outputs.push_back(empty());
  const int64_t flops = (activation == Activation::kGelu ? kGeluFlops : kSiluFlops) + (is_gated ? kGatedFlops : 0);
  const int64_t written = static_cast<int64_t>(outputs.size()) * outputs[0].nbytes();
  const Cost cost{0, flops * a.numel(), compulsory_bytes(inputs), written};
  submit(Call(op, inputs, outputs, {activation}, cost, variant));
  return outputs;
}

// With s = sigmoid(u), the slope is s (1 + a (1 - s) u'). Beyond kFar it is 0 or 1 in every dtype, and powers of a
// could overflow.
Tensor composed_gradient(Activation activation, const Tensor& dy, const Tensor& a) {
  constexpr double kFar = 750;
  const Tensor x = elementwise(kMinimum, elementwise(kMaximum, widen(a), Scalar{-kFar}), Scalar{kFar});
  if (activation == Activation::kSilu) {
    const Tensor s = elementwise(kSigmoid, x);
    return dy * cast(s * (1 + x * (1 - s)), a.dtype());
  }
  constexpr double kSlope = 1.5957691216057308, kCube = 0.044715;
  const Tensor x2 = x * x;
  const Tensor s = elementwise(kSigmoid, x * (kSlope + kSlope * kCube * x2));
  return dy * cast(s * (1 + x * (1 - s) * (kSlope + 3 * kSlope * kCube * x2)), a.dtype());
}

}  // namespace

Tensor activation_backward(Activation activation, const Tensor& dy, const Tensor& a, std::string_view variant) {
  const Op<Options>& op = op_of(activation, false);
  const OpScope scope(op.name);
  check_floating(op.name, "a", a);
  check_like(op.name, "dy", dy, a);
  if (!composes(a, variant)) return submitted(op, activation, {dy, a}, variant)[0];
  const Tensor da = composed_gradient(activation, dy, a);
  scope.done();  // its parts have counted their work
  return da;
}

GatedGradients gated_backward(Activation activation, const Tensor& dy, const Tensor& a, const Tensor& b,
                              std::string_view variant) {
  const Op<Options>& op = op_of(activation, true);
  const OpScope scope(op.name);
  check_floating(op.name, "a", a);
  check_like(op.name, "dy", dy, a);
  check_like(op.name, "b", b, a);
  if (!composes(a, variant)) {
    const Tensors gradients = submitted(op, activation, {dy, a, b}, variant);
    return {gradients[0], gradients[1]};
  }
  const ElementwiseOp forward = activation == Activation::kGelu ? kGeglu : kSwiglu;
  const GatedGradients gradients{composed_gradient(activation, dy * b, a), elementwise(forward, a, dy)};
  scope.done();  // its parts have counted their work
  return gradients;
}

Tensor activation_gradient(Activation activation, const Tensor& dy, const Tensor& a) {
  const bool composes = Trace::current() || dy.shape() != a.shape();  // a was broadcast
  return composes ? composed_gradient(activation, dy, a) : activation_backward(activation, dy, a);
}

}  // namespace rooflab
