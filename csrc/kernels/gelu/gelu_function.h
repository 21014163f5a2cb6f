// GeLU of one number, for host and device.
#pragma once

#include <cmath>

#include "kernels/common/host_device.h"

namespace rooflab::kernels {

inline constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715;

// As it is defined.
ROOFLAB_HOST_DEVICE double gelu_reference(double x) {
  return 0.5 * x * (1 + std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
}

}  // namespace rooflab::kernels
