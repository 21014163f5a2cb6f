// Elements as unsigned numbers that compare as sort.h orders them: -0 equals 0, and a NaN is larger than any number.
// A key has as many bits as its element.
#pragma once

#include <cstdint>

#include "kernels/common/host_device.h"

namespace rooflab::kernels {

// From the bits of a float of that width. Negative numbers compare the other way round. If zeros are apart, -0 is less
// than 0.
template <class Bits>
ROOFLAB_HOST_DEVICE Bits key_of_float(Bits bits, bool is_nan, bool zeros_apart) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1), kAll = static_cast<Bits>(~Bits{0});
  if (is_nan) return kAll;
  if (bits == kSign && !zeros_apart) return kSign;
  return static_cast<Bits>(bits ^ (bits & kSign ? kAll : kSign));
}

// A number that has the key. Returns whether no other one has it: there are many NaN, and two zeros if not apart.
template <class Bits>
ROOFLAB_HOST_DEVICE bool float_of_key(Bits key, Bits& bits) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1), kAll = static_cast<Bits>(~Bits{0});
  bits = static_cast<Bits>(key ^ (key & kSign ? kSign : kAll));
  return key != kAll && key != kSign;
}

ROOFLAB_HOST_DEVICE uint32_t key_of(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000u; }
ROOFLAB_HOST_DEVICE uint64_t key_of(int64_t x) { return static_cast<uint64_t>(x) ^ 0x8000000000000000u; }
ROOFLAB_HOST_DEVICE uint8_t key_of(bool x) { return x; }

template <class Key>
ROOFLAB_HOST_DEVICE Key integer_of_key(Key key) {  // and the key of an integer
  return static_cast<Key>(key ^ Key{1} << (8 * sizeof(Key) - 1));
}

}  // namespace rooflab::kernels
