// What rms_norm_backward and layer_norm_backward share besides their kernels. Args: the arguments of either's kernels.
#pragma once

#include "ops/row_backward.h"
#include "ops/rows.h"

namespace rooflab {

// For squares of huge and tiny numbers, which float cannot hold.
inline Tensor in_double(const Tensor& x) { return cast(x, DType::kFloat64); }

// The operands dy, x and weight, in the form that kernels take.
struct NormOperands {
  Rows dy, x;
  Tensor weight;

  explicit NormOperands(const Tensors& inputs)
      : dy(as_rows(inputs[0])), x(as_rows(inputs[1])), weight(as_parameter(inputs[2])) {}
  // As far as a rung is chosen by them: nothing is copied yet.
  NormOperands(const Tensor& dy, const Tensor& x, const Tensor& weight)
      : dy(planned_rows(dy)), x(planned_rows(x)), weight(weight.is_contiguous() ? weight : Tensor()) {}

  // The arguments without results. The operands must live as long as they are in use.
  template <class Args>
  Args args(DType dtype, double eps, bool has_dweight) const {
    Args args{};
    args.dy = dy.x.data();
    args.x = x.x.data();
    args.weight = weight.data();
    args.n = x.n;
    args.d = x.d;
    args.dy_row_stride = dy.stride;
    args.x_row_stride = x.stride;
    args.eps = eps;
    args.has_dweight = has_dweight;
    args.dtype = dtype;
    return args;
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
