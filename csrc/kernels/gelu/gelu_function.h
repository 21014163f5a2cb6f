// GeLU of one number, for host and device.
#pragma once

#include <cmath>

#include "kernels/common/host_device.h"

namespace rooflab::kernels {

inline constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715;

// Where exp(-2u) is infinite in float and in double, so gelu is 0. Numbers below, -inf too, are taken for this one.
inline constexpr int kGeluLowest = -22;

// As it is defined, but for 1 + tanh(u) = 2 / (1 + exp(-2u)), which keeps its digits where tanh(u) is nearly -1.
ROOFLAB_HOST_DEVICE double gelu_reference(double x) {
  const double a = x < kGeluLowest ? kGeluLowest : x;
  return a / (1 + std::exp(-2 * kGeluScale * (a + kGeluCubic * a * a * a)));
}

}  // namespace rooflab::kernels
