// AdamW, which updates parameters and moments in place.
#pragma once

#include "ops/ops.h"

namespace rooflab {

struct AdamwOptions {
  int64_t step = 1;  // counted from 1
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool decay_last = false;  // decay after the update, as in textbooks; false: before it, as PyTorch does
  // If defined, these are used instead of step and lr: int64 () and float64 () on the parameters' device. lr_at needs
  // step_at.
  Tensor step_at, lr_at;
};

// One step for each parameter, with its gradient and its moments, which have its shape, dtype and device. All
// parameters are of one dtype and on one device.
void adamw(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
           const AdamwOptions& options, std::string_view variant = {});

// Raises what adamw() would raise, and changes nothing.
void check_adamw(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
                 const AdamwOptions& options, std::string_view variant = {});

}  // namespace rooflab
