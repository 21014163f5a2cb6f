// The ladder of triangle: see triangle.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/triangle/triangle.h"

namespace rooflab::kernels {

using enum Device::Type;

void triangle_cpu_v0_reference(const TriangleArgs&, Queue&);
void triangle_cpu_v1_parallel(const TriangleArgs&, Queue&);
ROOFLAB_CUDA_RUNG(triangle_cuda_v0_reference, TriangleArgs)

const Ladder<TriangleArgs> triangle_ladder(
    "triangle",
    {
        {"v0_reference", kCuda, "one thread per element", nullptr, triangle_cuda_v0_reference},
        {"v1_parallel", kCpu, "all threads; rows kept or cleared whole are treated at once, in others the two parts",
         nullptr, triangle_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, an element at a time", nullptr, triangle_cpu_v0_reference},
    },
    {"tril", "triu"});

}  // namespace rooflab::kernels
