// nvcuda::wmma::mma_sync: each thread computes its own elements from those that all threads of the warp hold.
#include "device/codes.h"
#include "half_bits.h"
#include "warp.h"

using namespace simt;

namespace {

// An element of a matrix of which thread t holds the elements from t * count on, counted along rows or columns.
uint16_t element(const Lane& mine, const void* const rl_product::*matrix, int row, int column, int rows, int columns,
                 bool by_columns) {
  const int count = rows * columns / kWarp, at = by_columns ? column * rows + row : row * columns + column;
  const auto* const holder = reinterpret_cast<const rl_product*>(mine.taken[at / count]);
  return static_cast<const uint16_t*>(holder->*matrix)[at % count];
}

}  // namespace

extern "C" void rl_matrix_product(uint32_t site, uint32_t line, const rl_product* product) {
  meet(site, line, ~uint32_t{0}, reinterpret_cast<uint64_t>(product), kMatrixProduct);
  const Lane& mine = lane();
  if (mine.taken_from != ~uint32_t{0}) stop(Fault::kMissedWarp, site, ~uint32_t{0}, ~mine.taken_from);
  const rl_product& p = *product;
  const int count = p.m * p.n / kWarp;
  float made[kWarp];
  for (int i = 0; i < count; ++i) {
    const int at = self.current % kWarp * count + i, row = at / p.n, column = at % p.n;
    float sum = p.is_half ? from_half(static_cast<const uint16_t*>(p.c)[i]) : static_cast<const float*>(p.c)[i];
    for (int k = 0; k < p.k; ++k) {
      const uint16_t a = element(mine, &rl_product::a, row, k, p.m, p.k, p.a_by_columns);
      const uint16_t b = element(mine, &rl_product::b, k, column, p.k, p.n, p.b_by_columns);
      sum += p.is_brain ? from_bfloat16(a) * from_bfloat16(b) : from_half(a) * from_half(b);
    }
    made[i] = sum;
  }
  wait_for_warp(~uint32_t{0});  // nobody writes before all have read
  for (int i = 0; i < count; ++i) {
    if (p.is_half)
      static_cast<uint16_t*>(p.d)[i] = to_half(made[i]);
    else
      static_cast<float*>(p.d)[i] = made[i];
  }
}
