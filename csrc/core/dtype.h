// Element types. Half and BFloat16 are storage types: arithmetic is done in float after conversion.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rooflab {

enum class DType : uint8_t { kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kBool };

constexpr const char* name(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return "float64";
    case DType::kFloat32: return "float32";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
    case DType::kInt64: return "int64";
    case DType::kInt32: return "int32";
    case DType::kBool: return "bool";
  }
  return "unknown";
}

constexpr int64_t size_of(DType dtype) {
  constexpr int64_t kSizes[] = {8, 4, 2, 2, 8, 4, 1};
  return kSizes[static_cast<int>(dtype)];
}

constexpr bool is_floating(DType dtype) { return dtype <= DType::kBFloat16; }

// The number as a float whose last bit is odd if anything was dropped, so that rounding it again to 16 bits is correct.
constexpr float round_to_odd(double value) {
  const float rounded = static_cast<float>(value);
  const bool is_exact = (static_cast<double>(rounded) == value) | (value != value);
  const bool is_beyond = !is_exact & ((value < 0) == (static_cast<double>(rounded) < value));
  return std::bit_cast<float>((std::bit_cast<uint32_t>(rounded) - is_beyond) | !is_exact);
}
constexpr float round_to_odd(int64_t value) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (value >= -kExact && value <= kExact) return round_to_odd(static_cast<double>(value));
  return round_to_odd(static_cast<double>((value >> 10) | ((value & 1023) != 0)) * 1024);
}

// bfloat16: the upper half of a float, rounded to nearest even.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  explicit constexpr BFloat16(float value) : bits(round(std::bit_cast<uint32_t>(value))) {}
  explicit constexpr operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

 private:
  static constexpr uint16_t round(uint32_t f) {
    if ((f & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((f >> 16) | 0x40u);  // NaN
    return static_cast<uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
  }
};

// IEEE binary16, rounded to nearest even, with subnormals.
struct Half {
  uint16_t bits;

  Half() = default;
  explicit constexpr Half(float value) : bits(round(std::bit_cast<uint32_t>(value))) {}
  explicit constexpr operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu;
    const uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
      const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
      return sign ? -magnitude : magnitude;
    }
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }

 private:
  static constexpr uint16_t round(uint32_t f) {
    const uint32_t sign = (f >> 16) & 0x8000u;
    const uint32_t magnitude = f & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // overflow
    if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 leaves the rounded bits at the bottom
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
};

static_assert(sizeof(BFloat16) == 2 && sizeof(Half) == 2);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

}  // namespace rooflab
