// 16-bit floats as bits, by integers alone: a conversion is no FLOP. And what the runner's functions are told.
#pragma once

typedef unsigned short rl_bits16;

enum rl_vote { rl_vote_all, rl_vote_any, rl_vote_count };
enum rl_warp {
  rl_warp_sync,
  rl_warp_shuffle,
  rl_warp_shuffle_up,
  rl_warp_shuffle_down,
  rl_warp_shuffle_xor,
  rl_warp_ballot,
  rl_warp_all,
  rl_warp_any,
  rl_warp_match_any,
  rl_warp_match_all,
  rl_warp_add,
  rl_warp_min,
  rl_warp_max,
  rl_warp_and,
  rl_warp_or,
  rl_warp_xor,
};
enum rl_atomic {
  rl_atomic_add,
  rl_atomic_min,
  rl_atomic_max,
  rl_atomic_exchange,
  rl_atomic_compare,
  rl_atomic_and,
  rl_atomic_or,
  rl_atomic_xor,
  rl_atomic_increment,
  rl_atomic_decrement,
};
enum rl_type {
  rl_type_int,
  rl_type_unsigned,
  rl_type_long,
  rl_type_unsigned_long,
  rl_type_float,
  rl_type_double,
  rl_type_half,
  rl_type_bfloat16,
  rl_type_half2,
  rl_type_bfloat162,
  rl_type_bits16,
};
inline int rl_log_size(rl_type type) {
  switch (type) {
    case rl_type_half:
    case rl_type_bfloat16:
    case rl_type_bits16: return 1;
    case rl_type_long:
    case rl_type_unsigned_long:
    case rl_type_double: return 3;
    default: return 2;
  }
}

struct rl_value {  // an argument of printf
  unsigned long long bits;
  int size;
};

inline unsigned rl_float_bits(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}
inline float rl_bits_float(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

inline float rl_from_bfloat16(rl_bits16 bits) { return rl_bits_float(static_cast<unsigned>(bits) << 16); }
inline rl_bits16 rl_to_bfloat16(float value) {
  const unsigned bits = rl_float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<rl_bits16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // to nearest, ties to even
}

inline float rl_from_half(rl_bits16 bits) {
  const unsigned sign = static_cast<unsigned>(bits & 0x8000) << 16;
  unsigned exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return rl_bits_float(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    if (fraction == 0) return rl_bits_float(sign);
    exponent = 1;
    while (!(fraction & 0x400)) {  // a subnormal half is a normal float
      fraction <<= 1;
      --exponent;
    }
    fraction &= 0x3ff;
  }
  return rl_bits_float(sign | (exponent + 112) << 23 | fraction << 13);
}
inline rl_bits16 rl_to_half(float value) {
  const unsigned bits = rl_float_bits(value);
  const unsigned sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return 0x7fff;
  if (rest >= 0x477ff000) return static_cast<rl_bits16>(sign | 0x7c00);  // rounds to infinity
  const int exponent = static_cast<int>(rest >> 23) - 112;
  if (exponent < -10) return static_cast<rl_bits16>(sign);
  const unsigned full = (rest & 0x7fffff) | 0x800000;
  const int dropped = exponent <= 0 ? 14 - exponent : 13;
  const unsigned kept = exponent <= 0 ? full >> dropped : (rest - (112u << 23)) >> 13;
  const unsigned half = 1u << (dropped - 1), lost = full & ((1u << dropped) - 1);
  const bool up = lost > half || (lost == half && (kept & 1));
  return static_cast<rl_bits16>(sign | (kept + up));
}
