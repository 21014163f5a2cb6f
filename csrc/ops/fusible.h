// The calls that a chain of the fusing compiler can hold (ops/program.h): it reads their options.
#pragma once

#include <array>

#include "kernels/reduce/reduce.h"
#include "ops/ops.h"

namespace rooflab {

struct ElementwiseOptions {
  ElementwiseOp op;
  DType dtype;                    // what is computed in
  std::array<Scalar, 3> numbers;  // each in place of the input of its number, where that is not defined; the first of
                                  // nan_to_num in place of NaN
};

struct GeluOptions {};

struct ReduceOptions {
  kernels::ReduceOp op;
  std::array<bool, kMaxDims> reduced;  // which dimensions
};

}  // namespace rooflab
