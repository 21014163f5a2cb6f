// The reference rung of fused on the CPU.
#include "kernels/fused/reference.h"

namespace rooflab::kernels {

void fused_cpu_v0_reference(const FusedArgs& args, Queue& queue) {
  const auto& [program, launch] = args;
  ReferenceSums sums{nullptr, launch.columns};
  if (program.column_sums > 0) sums.sums = queue.scratch<double>(program.column_sums * sums.elements);
  for (int64_t i = 0; i < launch.count / launch.columns; ++i) reference_chain(args, i, sums);
  for (int64_t column = 0; column < launch.columns; ++column) sums.store(args, column);
}

}  // namespace rooflab::kernels
