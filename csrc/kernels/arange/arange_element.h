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

ROOFLAB_HOST_DEVICE void arange_element(const ArangeArgs& args, int64_t i) {
  const auto steps = static_cast<uint64_t>(i) * static_cast<uint64_t>(args.step.integer);  // may wrap around
  if (args.in_integers)
    store_as(args.dtype, args.y, i, static_cast<int64_t>(static_cast<uint64_t>(args.first.integer) + steps));
  else
    store_as(args.dtype, args.y, i, args.first.real + rounded_product(static_cast<double>(i), args.step.real));
}

}  // namespace rooflab::kernels
