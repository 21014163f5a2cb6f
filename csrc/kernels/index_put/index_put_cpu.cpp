// index_put on the CPU: see index_put.h for what it computes.
#include "kernels/gather/put_values.h"
#include "kernels/index_put/index_put.h"

namespace rooflab::kernels {

void index_put_cpu_v0_reference(const IndexPutArgs& args, Queue& queue) {
  check_indices(args.at, queue);  // before anything is written
  put_values(args, queue);
}

}  // namespace rooflab::kernels
