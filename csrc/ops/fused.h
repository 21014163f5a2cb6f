// A chain of elementwise calls as one op, `fused`: what the compiler makes of a trace (ops/program.h).
#pragma once

#include "kernels/fused/fused.h"
#include "ops/call.h"

namespace rooflab {

struct FusedOp : Op {
  FusedOp(const kernels::FusedProgram& program, std::vector<Scalar> numbers);
  kernels::FusedProgram program;
  std::vector<Scalar> numbers;
};

}  // namespace rooflab
