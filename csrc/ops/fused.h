// A chain of elementwise calls, and reductions at its end, as one op, `fused`: what the compiler makes of a trace
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
  int reduced_dims;  // how many of its last dimensions the reductions take
};

}  // namespace rooflab
