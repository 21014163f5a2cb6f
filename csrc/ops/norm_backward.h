// What rms_norm_backward and layer_norm_backward share besides their kernels. Args: the arguments of either's kernels.
#pragma once

#include "ops/row_backward.h"
#include "ops/rows.h"

namespace rooflab {

// For squares of huge and tiny numbers, which float cannot hold.
inline Tensor in_double(const Tensor& x) { return cast(x, DType::kFloat64); }

// What is known before the operands are laid out as rows.
template <class Args>
Args planned_norm_args(const Tensor& x, double eps, bool has_dweight) {
  Args args{};
  args.d = x.shape().back();
  args.n = args.d == 0 ? 0 : x.numel() / args.d;
  args.dy_row_stride = args.x_row_stride = args.d;
  args.eps = eps;
  args.has_dweight = has_dweight;
  args.dtype = x.dtype();
  return args;
}

// The operands dy, x and weight of a call, in the form that kernels take.
struct NormOperands {
  Rows dy, x;
  Tensor weight;

  explicit NormOperands(const Call& call)
      : dy(as_rows(call.inputs[0])), x(as_rows(call.inputs[1])), weight(as_parameter(call.inputs[2])) {}

  // The operands must live as long as the arguments are in use.
  template <class Args>
  void put_into(Args& args) const {
    args.dy = dy.x.data();
    args.x = x.x.data();
    args.weight = weight.data();
    args.dy_row_stride = dy.stride;
    args.x_row_stride = x.stride;
  }
};

inline NormGradients empty_norm_gradients(const Tensor& x, bool wants_dweight, bool wants_dbias) {
  const auto parameter = [&](bool is_wanted) {
    return is_wanted ? Tensor::empty({x.shape().back()}, x.dtype(), x.device()) : Tensor();
  };
  return {Tensor::empty(x.shape(), x.dtype(), x.device()), parameter(wants_dweight), parameter(wants_dbias)};
}

// The gradients that are wanted: the outputs of a call.
inline Tensors as_outputs(const NormGradients& gradients) {
  Tensors outputs;
  for (const Tensor* gradient : {&gradients.dx, &gradients.dweight, &gradients.dbias})
    if (gradient->defined()) outputs.push_back(*gradient);
  return outputs;
}

}  // namespace rooflab
