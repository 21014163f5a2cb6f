// A float as the sum of three bfloat16, whose 8 + 8 + 8 bits hold its 24. With a = a0 + a1 + a2 and b = b0 + b1 + b2,
// six of the nine products of parts are enough to compute a b on tensor cores: those with i + j <= 2. The others are
// below a roundoff of float32. Tensor cores truncate each sum, which costs least while the sum is small, so the
// smallest products go first. bfloat16 has the range of float32, so no scaling is needed. Parts of numbers below 2^-110
// lose bits, and those of infinities are NaN.
#pragma once

#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

inline constexpr int kSplitParts = 3;

// Splits two floats at a time; they become neighbours in each part.
__device__ __forceinline__ void split_bf16(float first, float second, uint32_t (&parts)[kSplitParts]) {
#pragma unroll
  for (int part = 0; part < kSplitParts; ++part) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    parts[part] = reinterpret_cast<const uint32_t&>(pair);
    first -= __low2float(pair);
    second -= __high2float(pair);
  }
}

// Splits `count` (1 to 8) neighbours. The parts are `part_stride` elements apart. `to` is 16-byte aligned, and so is
// `from` if `aligned`.
__device__ __forceinline__ void split_vector(const float* from, int count, bool aligned, __nv_bfloat16* to,
                                             int64_t part_stride) {
  Vector<float, 8> x;
  if (aligned && count == 8) {
    x = load_vector<8, CachePolicy::kStreaming>(from);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = i < count ? from[i] : 0.0f;
  }
  uint32_t words[4][kSplitParts];
#pragma unroll
  for (int i = 0; i < 4; ++i) split_bf16(x[2 * i], x[2 * i + 1], words[i]);
#pragma unroll
  for (int part = 0; part < kSplitParts; ++part)
    *reinterpret_cast<uint4*>(to + part * part_stride) =
        make_uint4(words[0][part], words[1][part], words[2][part], words[3][part]);
}

}  // namespace rooflab::kernels
