// scatter on the CPU: see scatter.h for what it computes.
#include "kernels/gather/put_values.h"
#include "kernels/scatter/scatter.h"

namespace rooflab::kernels {

void scatter_cpu_v0_reference(const ScatterArgs& args, Queue& queue) { put_values(args, queue); }

}  // namespace rooflab::kernels
