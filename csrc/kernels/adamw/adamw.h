// adamw: one step of AdamW (Loshchilov and Hutter, arXiv:1711.05101) in place, for parameters p with gradients g and
// moments m and v:
//
//   p = p keep                            keep = 1 - lr weight_decay; after the update where decay comes last
//   m = m + (g - m) (1 - beta1)
//   v = v beta2 + g^2 (1 - beta2)
//   p = p - m / (sqrt(v) / root + eps) rate    root = sqrt(1 - beta2^t), rate = lr / (1 - beta1^t)
//
// The step's number and the learning rate may lie on the device, so that a graph that is replayed reads new ones each
// time.
//
// FLOPs: 14 per element, 13 without decay. Compulsory bytes: p, g, m and v read, p, m and v written: 28 for each
// float32 parameter. Roof: memory bandwidth.
#pragma once

#include <math.h>

#include <cstdint>
#include <initializer_list>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/host_device.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct AdamwTensor {
  void *p, *m, *v;  // (n) each, contiguous
  const void* g;
  int64_t n;
};

struct AdamwNumbers {
  double keep;          // the factor that decay applies to a parameter
  double beta1, beta2;  // decay rates of the two moments
  double rate, root, eps;
  bool decay_last;
  double lr, weight_decay;
  const int64_t* step_at;  // t on the device: keep, rate and root are then computed from it. Null: they are valid
  const double* lr_at;     // the learning rate on the device, used instead of lr; only with step_at; may be null
};

// Sets the numbers that depend on t and lr.
ROOFLAB_HOST_DEVICE AdamwNumbers adamw_numbers(AdamwNumbers numbers, double step, double lr) {
  numbers.keep = 1 - lr * numbers.weight_decay;
  numbers.rate = lr / (1 - pow(numbers.beta1, step));
  numbers.root = sqrt(1 - pow(numbers.beta2, step));
  return numbers;
}

// The numbers as they are when the kernel runs.
ROOFLAB_HOST_DEVICE AdamwNumbers adamw_numbers_now(const AdamwNumbers& numbers) {
  if (!numbers.step_at) return numbers;
  return adamw_numbers(numbers, static_cast<double>(*numbers.step_at), numbers.lr_at ? *numbers.lr_at : numbers.lr);
}

// Whether the first moment is mostly the new gradient. Then it is computed from the gradient's side: m + (g - m) would
// lose a gradient that is small beside the old moment.
ROOFLAB_HOST_DEVICE bool adamw_forgets(const AdamwNumbers& numbers) { return numbers.beta1 < 0.5; }

constexpr int kAdamwTensors = 64;  // tensors in the parameters of one kernel, which are limited to 4096 bytes
struct AdamwArgs {
  AdamwNumbers numbers;
  AdamwTensor tensors[kAdamwTensors];
  int count;
  bool contiguous;
  DType dtype;
};

// One element. A: float, or double for double.
template <class A>
struct AdamwStep {
  A keep, kept1, new1, kept2, new2, rate, root, eps;
  bool decay_last, forgets;

  ROOFLAB_HOST_DEVICE explicit AdamwStep(const AdamwNumbers& numbers)
      : keep(static_cast<A>(numbers.keep)),
        kept1(static_cast<A>(numbers.beta1)),
        new1(static_cast<A>(1 - numbers.beta1)),
        kept2(static_cast<A>(numbers.beta2)),
        new2(static_cast<A>(1 - numbers.beta2)),
        rate(static_cast<A>(numbers.rate)),
        root(static_cast<A>(numbers.root)),
        eps(static_cast<A>(numbers.eps)),
        decay_last(numbers.decay_last),
        forgets(adamw_forgets(numbers)) {}

  // Value: A, or a vector of them.
  template <class Value, class Sqrt>
  ROOFLAB_HOST_DEVICE void operator()(Value& p, Value g, Value& m, Value& v, Sqrt sqrt) const {
    if (!decay_last) p = p * keep;
    m = forgets ? g - (g - m) * kept1 : m + (g - m) * new1;
    v = v * kept2 + g * g * new2;
    p = p - m / (sqrt(v) / root + eps) * rate;
    if (decay_last) p = p * keep;
  }
};

extern const Ladder<AdamwArgs> adamw_ladder;

}  // namespace rooflab::kernels
