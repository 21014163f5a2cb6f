// The keys of sort_key.h for elements of the CPU's types.
#pragma once

#include <bit>
#include <type_traits>

#include "kernels/common/order.h"
#include "kernels/sort/sort_key.h"

namespace rooflab::kernels {

template <class T>
using sort_key_t = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

template <class T>
sort_key_t<T> key_in_order(T x, bool zeros_apart) {
  if constexpr (std::is_integral_v<T>) {
    return key_of(x);
  } else {
    const auto number = static_cast<comparable_t<T>>(x);
    return key_of_float(std::bit_cast<sort_key_t<T>>(x), number != number, zeros_apart);
  }
}

template <class T>
T element_of(sort_key_t<T> key) {
  if constexpr (std::is_same_v<T, bool>) {
    return key != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(integer_of_key(key));
  } else {
    sort_key_t<T> bits;
    float_of_key(key, bits);
    return std::bit_cast<T>(bits);
  }
}

}  // namespace rooflab::kernels
