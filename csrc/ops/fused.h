// A chain of elementwise calls, of reductions of their rows and of sums of their columns as one op, `fused`: the
// compiler makes it from a trace (ops/program.h). Its last outputs are the sums of columns.
#pragma once

#include <memory>
#include <vector>

#include "kernels/fused/fused.h"
#include "ops/ops.h"

namespace rooflab {

struct FusedChain {
  kernels::FusedProgram program;
  std::vector<Scalar> numbers;
  Shape shape;       // of the elements
  int reduced_dims;  // how many of the last dimensions are reduced
};

struct FusedOptions {
  std::shared_ptr<const FusedChain> chain;
};
const Op<FusedOptions>& fused_op();

}  // namespace rooflab
