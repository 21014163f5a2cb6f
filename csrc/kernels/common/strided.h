// Where element i of a row-major walk lies in arrays that have other strides.
#pragma once

#include <cstdint>

#include "core/shape.h"
#include "kernels/common/host_device.h"

namespace rooflab::kernels {

// Splits i into a quotient and a remainder. Most indices fit in 32 bits, where division costs a GPU a quarter as much.
ROOFLAB_HOST_DEVICE int64_t divide(int64_t i, int64_t by, int64_t& remainder) {
  if (((i | by) >> 32) == 0) {
    const uint32_t quotient = static_cast<uint32_t>(i) / static_cast<uint32_t>(by);
    remainder = static_cast<uint32_t>(i) - quotient * static_cast<uint32_t>(by);
    return quotient;
  }
  const int64_t quotient = i / by;
  remainder = i - quotient * by;
  return quotient;
}

// Adds to offsets[k] the offset of element i in array k: sizes[ndim], strides[k][ndim] in elements.
template <int kArrays>
ROOFLAB_HOST_DEVICE void add_offsets(int64_t i, int ndim, const int64_t* sizes,
                                     const int64_t* const (&strides)[kArrays], int64_t (&offsets)[kArrays]) {
  for (int d = ndim - 1; d >= 0; --d) {
    int64_t index = i;
    if (d > 0) i = divide(i, sizes[d], index);
    for (int k = 0; k < kArrays; ++k) offsets[k] += index * strides[k][d];
  }
}

// Where a row-major walk is, element `at` of sizes[ndim], in arrays of the given strides. A step costs additions alone.
template <int kArrays>
class StridedWalk {
 public:
  StridedWalk(int64_t at, int ndim, const int64_t* sizes, const int64_t* const (&strides)[kArrays])
      : ndim_(ndim), sizes_(sizes) {
    for (int k = 0; k < kArrays; ++k) strides_[k] = strides[k];
    for (int d = ndim - 1; d >= 0; --d) {
      index_[d] = at;
      if (d > 0) at = divide(at, sizes[d], index_[d]);
      move(d, index_[d]);
    }
  }

  [[gnu::always_inline]] void next() {
    for (int d = ndim_ - 1; d >= 0; --d) {
      move(d, 1);
      if (++index_[d] < sizes_[d]) return;
      move(d, -index_[d]);
      index_[d] = 0;
    }
  }

  int64_t offsets[kArrays] = {};

 private:
  void move(int d, int64_t by) {
    for (int k = 0; k < kArrays; ++k) offsets[k] += by * strides_[k][d];
  }

  int ndim_;
  const int64_t* sizes_;
  const int64_t* strides_[kArrays];
  int64_t index_[kMaxDims];
};

}  // namespace rooflab::kernels
