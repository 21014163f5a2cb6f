// The rung of matmul that is Intel's own, for other processors: it is listed, and never taken.
#include "core/queue.h"
#include "core/target.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels {

void matmul_cpu_v5_amx_tile(const MatmulArgs&, Queue&) { __builtin_trap(); }
Footprint matmul_cpu_v5_footprint(const MatmulArgs&, const Target&) { return {}; }

}  // namespace rooflab::kernels
