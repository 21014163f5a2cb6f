// One element of arange, for both devices.
#pragma once

#include "kernels/arange/arange.h"
#include "kernels/elementwise/reference.h"

namespace rooflab::kernels {

// The host does not contract a product and a sum into one instruction, because its compiler is told so.
ROOFLAB_HOST_DEVICE double rounded_product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

ROOFLAB_HOST_DEVICE int64_t integer_of(const ArangeArgs& args, int64_t i) {
  const auto steps = static_cast<uint64_t>(i) * static_cast<uint64_t>(args.step.integer);  // may wrap around
  return static_cast<int64_t>(static_cast<uint64_t>(args.first.integer) + steps);
}
ROOFLAB_HOST_DEVICE double real_of(const ArangeArgs& args, int64_t i) {
  if (args.has_last && i == args.count - 1) return args.last;
  return args.first.real + rounded_product(static_cast<double>(i), args.step.real);
}

}  // namespace rooflab::kernels
