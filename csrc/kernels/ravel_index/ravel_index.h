// ravel_index: what x[i, j] chooses, as places along one dimension that merges those of the arrays:
//
//   y = (i n_j + j) n_k + k ...     with numbers below 0 counted from the end
//
// The arrays are broadcast. A number outside [-n, n) raises an error: on the CPU at once, on a GPU when the host next
// waits for it; there the place is one that the op behind takes for out of range too.
//
// FLOPs: none. Compulsory bytes: arrays read once, places written once. Roof: memory bandwidth, and mostly the launch.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/out_of_range.h"
#include "core/queue.h"
#include "core/shape.h"
#include "core/target.h"
#include "kernels/common/host_device.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/strided.h"

namespace rooflab::kernels {

struct IndexedDim {
  const void* index;          // int64 or int32
  int64_t strides[kMaxDims];  // of the index, in elements; 0 where it is broadcast
  int64_t size;               // n
  int dim;                    // of x, which an error names
  DType dtype;
};

struct RavelIndexArgs {
  IndexedDim arrays[kMaxDims];
  int array_count, ndim;
  int64_t sizes[kMaxDims], count;  // of y
  int64_t* y;                      // contiguous
  OutOfRange* report;              // where a GPU reports a number that is out of range
};

inline constexpr int64_t kNoPlace = INT64_MIN;

// The number of an array for the element at `offset`.
ROOFLAB_HOST_DEVICE int64_t number_at(const IndexedDim& array, int64_t offset) {
  return array.dtype == DType::kInt64 ? static_cast<const int64_t*>(array.index)[offset]
                                      : static_cast<const int32_t*>(array.index)[offset];
}
ROOFLAB_HOST_DEVICE bool is_inside(const IndexedDim& array, int64_t number) {
  return number >= -array.size && number < array.size;
}
ROOFLAB_HOST_DEVICE OutOfRange out_of_range(const IndexedDim& array, int64_t number) {
  return {OutOfRange::kIndexFromEnd, number, array.size, array.dim, nullptr};
}

// The place of element i. found_outside(array, number) is called for the first number that is outside.
template <class FoundOutside>
ROOFLAB_HOST_DEVICE int64_t place_at(const RavelIndexArgs& args, int64_t i, FoundOutside&& found_outside) {
  int64_t place = 0;
  for (int a = 0; a < args.array_count; ++a) {
    const IndexedDim& array = args.arrays[a];
    int64_t offset[1] = {};
    add_offsets(i, args.ndim, args.sizes, {array.strides}, offset);
    const int64_t number = number_at(array, offset[0]);
    if (!is_inside(array, number)) {
      found_outside(array, number);
      return kNoPlace;
    }
    place = place * array.size + number + (number < 0 ? array.size : 0);
  }
  return place;
}

extern const Ladder<RavelIndexArgs> ravel_index_ladder;

}  // namespace rooflab::kernels
