// scatter on the CPU: see scatter.h for what it computes.
#include "kernels/gather/put_values.h"
#include "kernels/scatter/scatter.h"

namespace rooflab::kernels {

// y is new: where an error drops it, nobody sees what was written.
void scatter_cpu_v0_reference(const ScatterArgs& args, Queue& queue) {
  ScatterArgs from = args;
  if (args.values == nullptr) from.values = &args.number;
  if (!put_values(from, queue)) check_indices(args.at, queue);  // names the first
}

}  // namespace rooflab::kernels
