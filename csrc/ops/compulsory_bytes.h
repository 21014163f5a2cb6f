// The bytes that an op cannot avoid reading of an operand.
#pragma once

#include "core/tensor.h"

namespace rooflab {

// Of the elements that a view really has: an expanded dimension repeats one.
inline int64_t compulsory_bytes(const Tensor& x) {
  int64_t bytes = size_of(x.dtype());
  for (int i = 0; i < x.ndim(); ++i)
    if (x.strides()[i] != 0) bytes *= x.shape()[i];
  return bytes;
}

}  // namespace rooflab
