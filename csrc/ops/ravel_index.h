// Several arrays of an index as one.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace rooflab {

// Integers along one dimension of x, or along several that a mask covers, seen as one.
struct Places {
  int dim, dims;
  int64_t size;
  Tensor index;  // int64 or int32, in [-size, size)
};

// int64, broadcast from the indices: the places of what they choose along the dimension into which all of theirs merge.
// IndexError for a number out of range: on a GPU when the host next waits, and there the place is out of range too.
Tensor ravel_index(const std::vector<Places>& all);

}  // namespace rooflab
