// The random numbers of one Philox block, for host and device. Every operation is one that IEEE 754 rounds exactly, and
// every multiply-add is an explicit fma, so that no compiler's choice can change a bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "kernels/common/host_device.h"
#include "kernels/random/random.h"

namespace rooflab::kernels {

constexpr int kPhiloxRounds = 10;

struct PhiloxKey {
  uint32_t k0, k1;

  ROOFLAB_HOST_DEVICE explicit PhiloxKey(uint64_t seed)
      : k0(static_cast<uint32_t>(seed)), k1(static_cast<uint32_t>(seed >> 32)) {}
  ROOFLAB_HOST_DEVICE void advance() {
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
};

ROOFLAB_HOST_DEVICE void philox_round(const PhiloxKey& key, uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3) {
  const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
  c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ key.k0;
  c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ key.k1;
  c1 = static_cast<uint32_t>(b);
  c3 = static_cast<uint32_t>(a);
}

ROOFLAB_HOST_DEVICE uint64_t stream_of(const RandomArgs& args) {
  return args.stream + (args.advance ? static_cast<uint64_t>(*args.advance) : 0);
}

struct PhiloxBlock {
  uint32_t words[4];

  ROOFLAB_HOST_DEVICE PhiloxBlock(uint64_t seed, uint64_t stream, uint64_t counter)
      : words{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), static_cast<uint32_t>(stream),
              static_cast<uint32_t>(stream >> 32)} {
    PhiloxKey key(seed);
    for (int round = 0; round < kPhiloxRounds; ++round, key.advance())
      philox_round(key, words[0], words[1], words[2], words[3]);
  }
  template <class Word>
  ROOFLAB_HOST_DEVICE Word word(int i) const {
    if constexpr (sizeof(Word) == 4)
      return words[i];
    else
      return words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
  }
};

template <class Real>
ROOFLAB_HOST_DEVICE Real exact_fma(Real a, Real b, Real c) {
  if constexpr (sizeof(Real) == 4)
    return __builtin_fmaf(a, b, c);
  else
    return __builtin_fma(a, b, c);
}

// log(x) for x in (0, 1]: x = 2^e m with m in [sqrt(1/2), sqrt(2)), log(m) = 2 atanh(s), s = (m - 1) / (m + 1), as the
// series s + s^3/3 + s^5/5 ...; s^2 <= 0.0295, so 5 terms for float and 11 for double.
template <class Real>
ROOFLAB_HOST_DEVICE Real exact_log(Real x) {
  using Bits = std::conditional_t<sizeof(Real) == 4, int32_t, int64_t>;
  constexpr int kTerms = sizeof(Real) == 4 ? 5 : 11, kDigits = sizeof(Real) == 4 ? 23 : 52;
  const Bits offset = std::bit_cast<Bits>(Real(0.70710678118654752440));
  const Bits bits = std::bit_cast<Bits>(x) - offset;
  const Bits exponent = bits >> kDigits;
  const Real m = std::bit_cast<Real>((bits & ((Bits{1} << kDigits) - 1)) + offset);
  const Real s = (m - 1) / (m + 1), square = s * s;
  Real series = Real(1) / (2 * kTerms + 1);
  for (int k = kTerms - 1; k >= 0; --k) series = exact_fma(series, square, Real(1) / (2 * k + 1));
  return exact_fma(static_cast<Real>(exponent), Real(0.69314718055994530942), 2 * (s * series));
}

// cos and sin of 2 pi turn, for turn in [0, 1): the nearest quarter is subtracted exactly, and Taylor's series gives
// the rest.
template <class Real>
ROOFLAB_HOST_DEVICE void exact_cos_sin(Real turn, Real& cosine, Real& sine) {
  constexpr int kTerms = sizeof(Real) == 4 ? 5 : 9;
  const int quarter = static_cast<int>(exact_fma(turn, Real(4), Real(0.5)));
  const Real angle = exact_fma(static_cast<Real>(quarter), Real(-0.25), turn) * Real(6.28318530717958647693);
  const Real square = -(angle * angle);
  Real c = 1, s = 1;
  for (int k = kTerms; k > 0; --k) {
    c = exact_fma(c * square, Real(1) / ((2 * k - 1) * (2 * k)), Real(1));
    s = exact_fma(s * square, Real(1) / ((2 * k) * (2 * k + 1)), Real(1));
  }
  s *= angle;
  const bool swap = quarter & 1;
  const Real x = swap ? s : c, y = swap ? c : s;
  cosine = (quarter + 1) & 2 ? -x : x;
  sine = quarter & 2 ? -y : y;
}

// Uniform on (0, 1] and on [0, 1), for Box-Muller.
ROOFLAB_HOST_DEVICE float open_unit(uint32_t word) {
  return exact_fma(static_cast<float>(static_cast<int32_t>(word >> 1)), 0x1p-31f, 0x1p-32f);
}
ROOFLAB_HOST_DEVICE double open_unit(uint64_t word) {
  return exact_fma(static_cast<double>(static_cast<int64_t>(word >> 1)), 0x1p-63, 0x1p-64);
}
ROOFLAB_HOST_DEVICE float unit(uint32_t word) { return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f; }
ROOFLAB_HOST_DEVICE double unit(uint64_t word) {
  return static_cast<double>(static_cast<int64_t>(word >> 11)) * 0x1p-53;
}

template <class Real, class Word>
ROOFLAB_HOST_DEVICE void box_muller(Word a, Word b, Real (&out)[2]) {
  Real cosine, sine;
  exact_cos_sin(unit(b), cosine, sine);
  const Real radius = std::sqrt(-2 * exact_log(open_unit(a)));
  out[0] = radius * cosine;
  out[1] = radius * sine;
}

// The type of the random bits for one element, and how many elements of the dtype one block makes.
template <class T>
using WordOf = std::conditional_t<std::is_integral_v<T> || sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
constexpr int kPerBlock = 16 / static_cast<int>(sizeof(WordOf<T>));

// The number of digits in T's significand.
template <class T>
constexpr int kSignificandDigits = std::is_same_v<T, double>  ? 53
                                   : std::is_same_v<T, float> ? 24
                                   : std::is_same_v<T, Half>  ? 11
                                                              : 8;

ROOFLAB_HOST_DEVICE uint64_t high_product(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

// An element of the kinds that take one word each: uniform and integers.
template <RandomKind kKind, class T>
ROOFLAB_HOST_DEVICE T random_element(const RandomArgs& args, WordOf<T> word) {
  if constexpr (kKind == RandomKind::kIntegers) {
    const uint64_t r = args.range == 0 ? word : high_product(word, args.range);
    return static_cast<T>(static_cast<uint64_t>(args.low) + r);
  } else if constexpr (sizeof(T) == 8) {
    return unit(word);
  } else {
    constexpr float kStep = 1.0f / static_cast<float>(1 << kSignificandDigits<T>);
    return T(static_cast<float>(static_cast<int32_t>(word >> (32 - kSignificandDigits<T>))) * kStep);
  }
}

// Elements [kPerBlock * counter, kPerBlock * (counter + 1)) of the sequence.
template <RandomKind kKind, class T>
ROOFLAB_HOST_DEVICE void random_block(const RandomArgs& args, uint64_t counter, T (&out)[kPerBlock<T>]) {
  using Real = std::conditional_t<sizeof(T) == 8, double, float>;
  const PhiloxBlock block(args.seed, stream_of(args), counter);
  if constexpr (kKind == RandomKind::kNormal) {
    for (int i = 0; i < kPerBlock<T>; i += 2) {
      Real pair[2];
      box_muller(block.word<WordOf<T>>(i), block.word<WordOf<T>>(i + 1), pair);
      out[i] = T(pair[0]);
      out[i + 1] = T(pair[1]);
    }
  } else {
    for (int i = 0; i < kPerBlock<T>; ++i) out[i] = random_element<kKind, T>(args, block.word<WordOf<T>>(i));
  }
}

// Calls f.template operator()<kKind, T>().
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class F>
ROOFLAB_HOST_DEVICE void dispatch_random(const RandomArgs& args, F&& f) {
  using enum RandomKind;
  if (args.kind == kIntegers)
    return args.dtype == DType::kInt64 ? f.template operator()<kIntegers, int64_t>()
                                       : f.template operator()<kIntegers, int32_t>();
  const auto floating = [&]<RandomKind kKind>() {
    switch (args.dtype) {
      case DType::kFloat64: return f.template operator()<kKind, double>();
      case DType::kFloat32: return f.template operator()<kKind, float>();
      case DType::kFloat16: return f.template operator()<kKind, Half>();
      case DType::kBFloat16: return f.template operator()<kKind, BFloat16>();
      case DType::kInt64:
      case DType::kInt32:
      case DType::kBool: return;
    }
  };
  args.kind == kNormal ? floating.template operator()<kNormal>() : floating.template operator()<kUniform>();
}

}  // namespace rooflab::kernels
