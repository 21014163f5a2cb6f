// 16 Philox blocks, computed side by side in vectors. Every step is philox.h's, so the bits are the same.
#pragma once

#include "kernels/common/simd.h"
#include "kernels/random/philox.h"

namespace rooflab::kernels::ROOFLAB_ISA {

inline constexpr int kGroup = 16;

// The upper and the lower halves of c * factor, a product of 64 bits, in each lane.
ROOFLAB_INLINE void multiply(NativeUint c, uint32_t factor, NativeUint& high, NativeUint& low) {
  const NativeUint factors = NativeUint{} + factor;
  const NativeUlong even = multiply_even(c, factors), odd = multiply_even((NativeUint)((NativeUlong)c >> 32), factors);
  constexpr uint64_t kLow = 0xffffffff;
  high = (NativeUint)(even >> 32 | (odd & ~kLow));
  low = (NativeUint)((even & kLow) | odd << 32);
}

struct PhiloxGroup {
  uint32_t words[4][kGroup];

  [[gnu::noinline]] PhiloxGroup(const RandomArgs& args, uint64_t counter) {
    constexpr int kLanes = kNativeBytes / 4;
    const uint64_t stream = stream_of(args);
    for (int part = 0; part < kGroup; part += kLanes) {
      NativeUint c[4] = {
          {}, {}, NativeUint{} + static_cast<uint32_t>(stream), NativeUint{} + static_cast<uint32_t>(stream >> 32)};
      for (int j = 0; j < kLanes; ++j) {
        const uint64_t own = counter + static_cast<uint64_t>(part + j);
        c[0][j] = static_cast<uint32_t>(own);
        c[1][j] = static_cast<uint32_t>(own >> 32);
      }
      PhiloxKey key(args.seed);
      for (int round = 0; round < kPhiloxRounds; ++round, key.advance()) {  // as in philox_round
        NativeUint high[2], low[2];
        multiply(c[0], kPhiloxFactors[0], high[0], low[0]);
        multiply(c[2], kPhiloxFactors[1], high[1], low[1]);
        c[0] = high[1] ^ c[1] ^ key.k0;
        c[1] = low[1];
        c[2] = high[0] ^ c[3] ^ key.k1;
        c[3] = low[0];
      }
      for (int i = 0; i < 4; ++i) std::memcpy(words[i] + part, &c[i], sizeof(c[i]));
    }
  }
  template <class Word>
  ROOFLAB_INLINE Word word(int i, int j) const {
    if constexpr (sizeof(Word) == 4)
      return words[i][j];
    else
      return words[2 * i][j] | static_cast<uint64_t>(words[2 * i + 1][j]) << 32;
  }
};

}  // namespace rooflab::kernels::ROOFLAB_ISA
