// The ladder of fused: see fused.h for what it computes.
#include <algorithm>

#include "kernels/common/column_sums.h"
#include "kernels/common/ladder.h"
#include "kernels/fused/fused.h"

namespace rooflab::kernels {

using enum Device::Type;

void fused_cpu_v0_reference(const FusedArgs& args, Queue& queue);
ROOFLAB_PER_ISA(fused_cpu_v1_blocks, FusedArgs)
ROOFLAB_CUDA_RUNG(fused_cuda_v0_reference, FusedArgs)
void fused_cuda_v1_nvrtc(const FusedArgs& args, Queue& queue);
Footprint fused_cuda_v1_footprint(const FusedArgs& args, const Target& target);

static bool fused_cuda_v1_accepts(const FusedArgs& args, const Target&) {
  const auto& [program, launch] = args;
  if (program.column_sums == 0) return launch.columns < int64_t{1} << 30;  // it counts them in int
  int64_t bytes = 0;
  for (int k = 0; k < program.operands; ++k) {
    const int64_t* strides = launch.operands[k].strides;
    const bool is_of_rows =
        std::all_of(strides + launch.row_ndim, strides + launch.ndim, [](int64_t s) { return s == 0; });
    bytes += is_of_rows ? 0 : std::max<int64_t>(4, size_of(program.operand_dtypes[k]));
  }
  for (int k = 0; k < program.column_sums; ++k) bytes += std::max<int64_t>(4, size_of(program.column_sum[k].dtype));
  return holds_summed_row(launch.columns, bytes);
}

// A double of each element that is summed, so that each column can be added up in order.
static Footprint fused_cuda_v0_footprint(const FusedArgs& args, const Target&) {
  const int sums = args.program.column_sums;
  return {1 + (sums > 0), 0, sums * args.launch.count * 8};
}

static Footprint fused_cpu_v0_footprint(const FusedArgs& args, const Target&) {
  return {1, 0, args.program.column_sums * args.launch.columns * 8};
}

static Footprint fused_cpu_v1_footprint(const FusedArgs& args, const Target&) {
  return {1, 0, args.program.column_sums * cpu_blocks(args.launch.rows) * args.launch.columns * 8};
}

const Ladder<FusedArgs> fused_ladder(
    "fused",
    {
        {"v1_nvrtc", kCuda,
         "a kernel generated for the chain, compiled by NVRTC at first use; rows that are reduced stay in registers",
         fused_cuda_v1_accepts, fused_cuda_v1_nvrtc, fused_cuda_v1_footprint},
        {"v0_reference", kCuda, "one element per thread, in double", nullptr, fused_cuda_v0_reference,
         fused_cuda_v0_footprint},
        {"v1_blocks", kCpu, "blocks of 512 elements stay in L1 through the whole chain, SIMD, all threads", nullptr,
         fused_cpu_v1_blocks, fused_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread, an element at a time, in double", nullptr, fused_cpu_v0_reference,
         fused_cpu_v0_footprint},
    });

}  // namespace rooflab::kernels
