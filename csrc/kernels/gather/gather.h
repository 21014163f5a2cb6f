// gather: rows or elements of a table chosen by an index; also index_select and embedding. Element i of y is x[place(i)
// + index[i] * step], where place(i) is the offset of i in x along all dimensions except the gathered one. The index
// repeats (stride 0) along the dimensions that it lacks: along the features, for rows of an embedding.
// An index outside [0, limit) raises an error on the CPU. A GPU cannot raise one: there y holds NaN (-1; true for
// bool).
//
// FLOPs: none. Compulsory bytes: the index and y once, and as much of x as y holds, at most all of it. Roof: memory
// bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/shape.h"
#include "core/target.h"
#include "kernels/common/host_device.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

// How the elements of an array of `sizes` find their index, and which dimension the index counts.
struct IndexLayout {
  const char* op;     // the op that the index belongs to, for error messages
  const void* index;  // int64 or int32
  DType dtype;        // of the index
  int ndim;           // at least 1; neighbours that are evenly spaced everywhere are one
  int64_t count;      // all elements
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];  // of the index, in elements
  int64_t limit, step;        // size and stride of the dimension that the index counts
};

ROOFLAB_HOST_DEVICE int64_t index_at(const IndexLayout& at, int64_t offset) {
  return at.dtype == DType::kInt64 ? static_cast<const int64_t*>(at.index)[offset]
                                   : static_cast<const int32_t*>(at.index)[offset];
}

struct GatherArgs {
  IndexLayout at;
  const void* x;
  int64_t x_strides[kMaxDims];  // 0 along the gathered dimension
  void* y;                      // of at.sizes, contiguous
  DType dtype;
};

// Throws ValueError, which names the first index outside [0, limit). CPU only; all threads look.
void check_indices(const IndexLayout& at, Queue& queue);

extern const Ladder<GatherArgs> gather_ladder;

}  // namespace rooflab::kernels
