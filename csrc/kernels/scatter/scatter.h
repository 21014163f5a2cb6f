// scatter: y[place(i) + index[i] * step] = values[i], where place(i) is the offset of i in y along all dimensions but
// the one that the index counts. At first y holds the tensor that is written over. Where several elements go to one
// place, the last one stays. An index outside [0, limit) raises an error: on the CPU at once, on a GPU, which ignores
// its element, when the host next waits for it.
//
// FLOPs: none. Compulsory bytes: the tensor written over, the index and the values read once, y written once. Roof:
// memory bandwidth.
#pragma once

#include "kernels/common/ladder_declaration.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {

struct ScatterArgs {
  IndexLayout at;      // of the values
  const void* values;  // of at.sizes; null: the number is used instead
  int64_t number;      // the bits of an element
  int64_t value_strides[kMaxDims];
  void* y;                      // contiguous
  int64_t places;               // the elements of y
  int64_t y_strides[kMaxDims];  // 0 along the dimension that the index counts
  bool in_any_order;            // the values are one number, or no two of them go to one place
  DType dtype;
};

// How the GPU's v1 works: on lines, the elements that differ only along the dimension that the index counts. A block of
// 256 threads has `lines` of them, which lie side by side if `across`, and keeps for each place of a line which element
// is its last.
struct ScatterPlan {
  int dim;         // of at.sizes, along which a line's elements lie
  int64_t blocks;  // 0: a line has too many places, or its elements lie along several dimensions
  int lines;       // of a block; a power of two
  bool across;
};
ScatterPlan scatter_plan(const ScatterArgs&);

extern const Ladder<ScatterArgs> scatter_ladder;

}  // namespace rooflab::kernels
