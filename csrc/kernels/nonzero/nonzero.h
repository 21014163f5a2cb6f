// nonzero: the places of a mask's true elements, in order. A place is one number for each dimension. A rung runs twice:
// first it counts the trues of each portion of the mask, and when their places have memory, it writes them.
//
// FLOPs: none. Compulsory bytes: the mask read once and the counts written once; then both read once, and the places
// written once. Roof: memory bandwidth.
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
  const bool* mask;           // contiguous
  int64_t* counts;            // the trues of each portion
  int64_t* places;            // (found, ndim), contiguous; null while the portions are counted
  int64_t count;              // > 0 elements of the mask
  int64_t found;              // of them are true: there is room for no more; 0 while they are counted
  int64_t portions, portion;  // how many, and the elements of each but the last
  int ndim;                   // > 0
  int64_t sizes[kMaxDims];
};

// The elements of a portion. On a GPU, whose blocks have one each, they are some tiles.
inline constexpr int64_t kNonzeroPortion = 32768, kNonzeroTile = 4096, kNonzeroMostBlocks = 1024;
inline int64_t nonzero_portion(int64_t count, bool on_gpu) {
  return on_gpu ? (count + kNonzeroTile * kNonzeroMostBlocks - 1) / (kNonzeroTile * kNonzeroMostBlocks) * kNonzeroTile
                : kNonzeroPortion;
}

// Element i of the mask is the true element number `rank`.
ROOFLAB_HOST_DEVICE void write_place(const NonzeroArgs& args, int64_t rank, int64_t i) {
  int64_t* place = args.places + rank * args.ndim;
  for (int d = args.ndim - 1; d > 0; --d) i = divide(i, args.sizes[d], place[d]);
  place[0] = i;
}

extern const Ladder<NonzeroArgs> nonzero_ladder;

}  // namespace rooflab::kernels
