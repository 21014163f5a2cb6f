// Norms in float square the numbers of a row, and squares leave float's range long before the numbers do. Rows of huge
// or tiny numbers are therefore multiplied by a power of two before they are squared.
#pragma once

#include <cmath>

#include "kernels/common/host_device.h"

namespace rooflab::kernels {

inline constexpr float kSmallUnit = 0x1p-96f, kLargeUnit = 0x1p96f;

// Whether a row's mean square plus eps (or variance plus eps) shows that its squares may have left float's range.
ROOFLAB_HOST_DEVICE bool leaves_range(float square) { return !(square >= 0x1p-100f && square < __builtin_inff()); }

// The factor for a row, given its mean square plus eps, or its variance plus eps and its mean. For most rows it is 1. A
// row whose numbers are all far from 0 can have a tiny variance only through rounding, so its factor is 1 too.
ROOFLAB_HOST_DEVICE float row_unit(float square, float mean = 0) {
  if (!(square < __builtin_inff())) return kSmallUnit;
  return square < 0x1p-100f && mean > -0x1p-12f && mean < 0x1p-12f ? kLargeUnit : 1.0f;
}
ROOFLAB_HOST_DEVICE double row_unit(double, double = 0) { return 1; }  // no wider type to agree with

// 1 / sqrt(variance + eps unit^2), for the variance of a row times unit. eps unit^2 may be too small for a float, which
// matters where numbers are all alike: then the root is that of eps, times unit.
template <class S>
ROOFLAB_HOST_DEVICE S inverse_deviation(S variance, S eps, S unit) {
  using std::sqrt;
  const bool are_alike = variance == S(0);
  return S(1) / (sqrt(are_alike ? eps : variance + eps * unit * unit) * (are_alike ? unit : S(1)));
}

// Whether the mean of products of a row's gradients and numbers shows that products may have left float's range, or are
// so small that they lost digits. Then the numbers have to be normalised before they are multiplied. So it is for a row
// of zeros too, where that changes nothing.
ROOFLAB_HOST_DEVICE bool product_leaves_range(float mean) { return leaves_range(mean < 0 ? -mean : mean); }

}  // namespace rooflab::kernels
