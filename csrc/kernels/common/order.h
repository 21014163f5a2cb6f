// The order of elements that arg_reduce, sort and topk share. sort takes a NaN for larger than any number; arg_reduce
// chooses a NaN before any number.
#pragma once

#include <type_traits>

#include "core/dtype.h"
#include "kernels/common/host_device.h"

namespace rooflab::kernels {

// The type in which elements of T are compared: integers exactly, 16-bit types as float.
template <class T>
using comparable_t = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// Whether a comes before b, with larger or smaller ones first. A NaN is larger than any number; equal ones keep their
// order.
template <class C>
ROOFLAB_HOST_DEVICE bool sorts_before(C a, C b, bool descending) {
  return descending ? a > b || (a != a && b == b) : a < b || (a == a && b != b);
}

// The same for elements at positions i and j, where equal elements keep their order.
template <class C>
ROOFLAB_HOST_DEVICE bool sorts_before(C a, int64_t i, C b, int64_t j, bool descending) {
  return sorts_before(a, b, descending) || (i < j && !sorts_before(b, a, descending));
}

// Whether a is preferred to b as the largest, or smallest: a NaN always is.
template <class C>
ROOFLAB_HOST_DEVICE bool is_chosen_over(C a, C b, bool largest) {
  return (largest ? a > b : a < b) || (a != a && b == b);
}

}  // namespace rooflab::kernels
