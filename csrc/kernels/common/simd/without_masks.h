// The first lanes of a register where the instruction set cannot load or store them alone: pieces of half the register,
// a quarter and so on, as the bits of their size say.
#pragma once

namespace rooflab::kernels::ROOFLAB_ISA {

template <int kPiece>
ROOFLAB_INLINE void copy_pieces(char* to, const char* from, int64_t bytes) {
  if constexpr (kPiece > 1) {
    const int64_t piece = bytes & kPiece;
    if (piece) std::memcpy(to, from, kPiece);
    copy_pieces<kPiece / 2>(to + piece, from + piece, bytes);
  }
}

template <class V>
ROOFLAB_INLINE void load_first(const void* p, int64_t n, V& x) {
  x = V{};
  copy_pieces<sizeof(V)>(reinterpret_cast<char*>(&x), static_cast<const char*>(p), n * sizeof(x[0]));
}
template <class V>
ROOFLAB_INLINE void store_first(void* p, int64_t n, V x) {
  copy_pieces<sizeof(V)>(static_cast<char*>(p), reinterpret_cast<const char*>(&x), n * sizeof(x[0]));
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
