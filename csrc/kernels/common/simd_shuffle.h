// The lanes of two vectors in another order, for simd.h's vectors (include simd.h). GCC has __builtin_shufflevector
// since version 12.
#pragma once

namespace rooflab::kernels::ROOFLAB_ISA {

// Lane l is lane kLane[l] of the lanes of a and then those of b.
template <int... kLane, class V>
ROOFLAB_INLINE V shuffle(V a, V b) {
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(a, b, kLane...);
#else
  return __builtin_shuffle(a, b, decltype(a == b){kLane...});
#endif
}

// a's lanes, then b's.
template <class Both, int... kLane, class V>
ROOFLAB_INLINE Both join(V a, V b, std::integer_sequence<int, kLane...>) {
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(a, b, kLane...);
#else
  const V parts[] = {a, b};
  Both both;
  std::memcpy(&both, parts, sizeof(both));
  return both;
#endif
}

// Lane l is lane l + kDown, those beyond the last beginning anew.
template <int kDown, int... kLane, class V>
ROOFLAB_INLINE V rotate(V x, std::integer_sequence<int, kLane...>) {
  return shuffle<(kLane + kDown) % sizeof...(kLane)...>(x, x);
}

// out[i][k] = in[k][i] for four vectors of four lanes.
template <class Quad>
ROOFLAB_INLINE void transpose_quads(const Quad* in, Quad* out) {
  const Quad low02 = shuffle<0, 4, 1, 5>(in[0], in[2]), low13 = shuffle<0, 4, 1, 5>(in[1], in[3]);
  const Quad high02 = shuffle<2, 6, 3, 7>(in[0], in[2]), high13 = shuffle<2, 6, 3, 7>(in[1], in[3]);
  out[0] = shuffle<0, 4, 1, 5>(low02, low13);
  out[1] = shuffle<2, 6, 3, 7>(low02, low13);
  out[2] = shuffle<0, 4, 1, 5>(high02, high13);
  out[3] = shuffle<2, 6, 3, 7>(high02, high13);
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
