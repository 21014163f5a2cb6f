// gather: rows or elements of a table chosen by an index; also index_select and embedding. Element i of y is x[place(i)
// + index[i] * step], where place(i) is the offset of i in x along all dimensions except the gathered one. The index
// repeats (stride 0) along the dimensions that it lacks: along the features, for rows of an embedding.
// An index outside [0, limit) raises an error: on the CPU at once, on a GPU when the host next waits for it, and there
// y holds NaN (-1; true for bool). For x[index], numbers in [-limit, 0) count from the end.
//
// FLOPs: none. Compulsory bytes: the index and y once, and as much of x as y holds, at most all of it. Roof: memory
// bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/out_of_range.h"
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
  int64_t from_end;           // added to numbers below 0: limit, if they count from the end; else 0
  int dim;                    // of the table, which x[index] names in its error
  OutOfRange* report;         // where a GPU reports a number that is out of range
};

ROOFLAB_HOST_DEVICE int64_t index_at(const IndexLayout& at, int64_t offset) {
  return at.dtype == DType::kInt64 ? static_cast<const int64_t*>(at.index)[offset]
                                   : static_cast<const int32_t*>(at.index)[offset];
}

// Which slice of that dimension a number stands for.
ROOFLAB_HOST_DEVICE int64_t place_of(int64_t number, int64_t from_end) { return number + (from_end & (number >> 63)); }

// The words of 8 or 16 bytes that a GPU's block has in flight; narrower ones are twice as many, to hide the latency.
inline constexpr int64_t kGatherStrip = 1024;

struct GatherArgs {
  IndexLayout at;
  const void* x;
  int64_t x_strides[kMaxDims];  // 0 along the gathered dimension
  void* y;                      // of at.sizes, contiguous
  DType dtype;
};

// The rows of x that a block of the GPU's v1b keeps in shared memory; 0 if it takes no such arguments.
int gather_staged_rows(const GatherArgs& args);

ROOFLAB_HOST_DEVICE OutOfRange out_of_range(const IndexLayout& at, int64_t number) {
  return {at.from_end > 0 ? OutOfRange::kIndexFromEnd : OutOfRange::kIndex, number, at.limit, at.dim, at.op};
}

// Throws ValueError, or IndexError where numbers count from the end, which names the first index that is out of range.
// CPU only; all threads look.
void check_indices(const IndexLayout& at, Queue& queue);

extern const Ladder<GatherArgs> gather_ladder;

}  // namespace rooflab::kernels
