// The part of a row that one of the blocks that share it works on (row_split.h).
#pragma once

#include <cstdint>

namespace rooflab::kernels {

// Whole vectors of `width` elements.
struct RowPart {
  int64_t begin, end;

  __device__ __forceinline__ RowPart(int64_t d, int width, int64_t part, int64_t parts)
      : begin(d / width * part / parts * width), end(d / width * (part + 1) / parts * width) {}
};

}  // namespace rooflab::kernels
