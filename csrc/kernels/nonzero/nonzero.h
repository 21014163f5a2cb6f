// nonzero: the places of a mask's true elements, in order. A place is one number for each dimension.
//
// FLOPs: none. Compulsory bytes: the mask read once, the places written once. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/queue.h"
#include "core/shape.h"
#include "core/target.h"
#include "kernels/common/host_device.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/strided.h"

namespace rooflab::kernels {

struct NonzeroArgs {
  const bool* mask;  // contiguous
  int64_t* places;   // (found, ndim), contiguous
  int64_t count;     // > 0 elements of the mask
  int64_t found;     // > 0 of them are true: the caller has counted, and there is room for no more
  int ndim;          // > 0
  int64_t sizes[kMaxDims];
};

// Element i of the mask is the true element number `rank`.
ROOFLAB_HOST_DEVICE void write_place(const NonzeroArgs& args, int64_t rank, int64_t i) {
  int64_t* place = args.places + rank * args.ndim;
  for (int d = args.ndim - 1; d > 0; --d) i = divide(i, args.sizes[d], place[d]);
  place[0] = i;
}

// v1 counts the trues of each portion of the mask first: of kNonzeroPortion elements on the CPU, of some tiles on a
// GPU, where each block adds up the counts of the portions before its own.
inline constexpr int64_t kNonzeroPortion = 32768, kNonzeroTile = 4096, kNonzeroMostBlocks = 1024;

extern const Ladder<NonzeroArgs> nonzero_ladder;

}  // namespace rooflab::kernels
