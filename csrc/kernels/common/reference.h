// Conversions of any floating element type to and from double, for the reference rungs on the CPU.
#pragma once

#include <type_traits>

#include "core/dtype.h"

namespace rooflab::kernels {

template <class T>
double to_double(T x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else
    return static_cast<float>(x);
}

template <class T>
T from_double(double x) {
  if constexpr (sizeof(T) == 2)
    return T(round_to_odd(x));
  else
    return static_cast<T>(x);
}

}  // namespace rooflab::kernels
