// The ladder of arg_reduce: see arg_reduce.h for what it computes.
#include "kernels/arg_reduce/arg_reduce.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

void arg_reduce_cpu_v0_reference(const ArgReduceArgs&, Queue&);
void arg_reduce_cpu_v1_parallel(const ArgReduceArgs&, Queue&);
ROOFLAB_PER_ISA(arg_reduce_cpu_v2_simd, ArgReduceArgs)
ROOFLAB_CUDA_RUNG(arg_reduce_cuda_v0_reference, ArgReduceArgs)
ROOFLAB_CUDA_RUNG(arg_reduce_cuda_v1_block, ArgReduceArgs)

namespace {

bool arg_reduce_cpu_v2_accepts(const ArgReduceArgs& args, const Target&) {
  return is_floating(args.dtype) && args.inner == 1 && args.reduced_stride == 1;
}

bool arg_reduce_cuda_v1_accepts(const ArgReduceArgs& args, const Target&) { return args.inner == 1; }

}  // namespace

const Ladder<ArgReduceArgs> arg_reduce_ladder(
    "arg_reduce",
    {
        {"v1_block", kCuda, "one block per output, which folds pairs of value and position; the last dimension",
         arg_reduce_cuda_v1_accepts, arg_reduce_cuda_v1_block},
        {"v0_reference", kCuda, "one thread per output", nullptr, arg_reduce_cuda_v0_reference},
        {"v2_simd", kCpu, "the extreme number by vectors, then its place; short rows side by side; adjacent floats",
         arg_reduce_cpu_v2_accepts, arg_reduce_cpu_v2_simd},
        {"v1_parallel", kCpu,
         "all threads; neighbouring outputs walk the axis together, a single output is reduced in vectors", nullptr,
         arg_reduce_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, one output at a time", nullptr, arg_reduce_cpu_v0_reference},
    },
    {"argmax", "argmin", "max", "min"});

}  // namespace rooflab::kernels
