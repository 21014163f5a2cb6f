// 16-bit floats as bits, by integers alone: so every machine rounds alike.
#pragma once

#include <cstdint>
#include <cstring>

namespace simt {

inline uint32_t float_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline float bits_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline float from_bfloat16(uint16_t bits) { return bits_float(static_cast<uint32_t>(bits) << 16); }
inline uint16_t to_bfloat16(float value) {
  const uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // to nearest, ties to even
}

inline float from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return bits_float(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    if (fraction == 0) return bits_float(sign);
    exponent = 1;
    while (!(fraction & 0x400)) {  // a subnormal half is a normal float
      fraction <<= 1;
      --exponent;
    }
    fraction &= 0x3ff;
  }
  return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
}
inline uint16_t to_half(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return 0x7fff;
  if (rest >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  const int exponent = static_cast<int>(rest >> 23) - 112;
  if (exponent < -10) return static_cast<uint16_t>(sign);
  const uint32_t full = (rest & 0x7fffff) | 0x800000;
  const int dropped = exponent <= 0 ? 14 - exponent : 13;
  const uint32_t kept = exponent <= 0 ? full >> dropped : (rest - (112u << 23)) >> 13;
  const uint32_t half = 1u << (dropped - 1), lost = full & ((1u << dropped) - 1);
  const bool up = lost > half || (lost == half && (kept & 1));
  return static_cast<uint16_t>(sign | (kept + up));
}

}  // namespace simt
