// Several arrays of an index as one.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace rooflab {

// What an array of integers, or a mask, chooses along its dimensions, seen as one.
struct Places {
  int dim, dims;
  int64_t size;
  Tensor index;  // int64 or int32; right in [-size, size), which nobody has looked at yet
};

// int64, broadcast from the indices: the places of what they choose along the dimension into which all of theirs merge.
// IndexError for a number out of range: on a GPU when the host next waits, and there the place is out of range too.
Tensor ravel_index(const std::vector<Places>& all);

}  // namespace rooflab
