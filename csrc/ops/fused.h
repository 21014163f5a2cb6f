// A chain of elementwise calls, with reductions at its end, as one op, `fused`: the compiler makes it from a trace
// (ops/program.h).
#pragma once

#include "kernels/fused/fused.h"
#include "ops/call.h"

namespace rooflab {

struct FusedOp : Op {
  FusedOp(const kernels::FusedProgram& program, std::vector<Scalar> numbers, Shape shape, int reduced_dims);
  kernels::FusedProgram program;
  std::vector<Scalar> numbers;
  Shape shape;       // of the elements
  int reduced_dims;  // how many of the last dimensions are reduced
};

}  // namespace rooflab
