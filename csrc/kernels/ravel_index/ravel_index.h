// ravel_index: what x[i, j] chooses, as places along one dimension that merges those of the arrays:
//
//   y = (i n_j + j) n_k + k ...     with numbers below 0 counted from the end
//
// The arrays are broadcast. A number outside [-n, n) raises an error: on the CPU at once, on a GPU when the host next
// waits for it; there the op that chooses finds the place out of range too.
//
// FLOPs: none. Compulsory bytes: arrays read once, places written once. Roof: memory bandwidth, and mostly the launch.
#pragma once

#include "kernels/common/strided.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {

struct RavelIndexArgs {
  IndexLayout arrays[kMaxDims];  // all broadcast to the sizes of y; the limit of each is its n
  int array_count;
  int64_t* y;  // contiguous

  ROOFLAB_HOST_DEVICE int64_t count() const { return arrays[0].count; }
};

inline constexpr int64_t kNoPlace = INT64_MIN;

// The place of element i. Where a number is outside, this calls found_outside(array, number) for the first.
template <class FoundOutside>
ROOFLAB_HOST_DEVICE int64_t place_at(const RavelIndexArgs& args, int64_t i, FoundOutside&& found_outside) {
  int64_t place = 0;
  for (int a = 0; a < args.array_count; ++a) {
    const IndexLayout& array = args.arrays[a];
    int64_t offset[1] = {};
    add_offsets(i, array.ndim, array.sizes, {array.strides}, offset);
    const int64_t number = index_at(array, offset[0]), index = place_of(number, array.from_end);
    if (index < 0 || index >= array.limit) {
      found_outside(array, number);
      return kNoPlace;
    }
    place = place * array.limit + index;
  }
  return place;
}

extern const Ladder<RavelIndexArgs> ravel_index_ladder;

}  // namespace rooflab::kernels
