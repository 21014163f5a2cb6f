// The ladder of logsumexp: see logsumexp.h for what it computes.
#include <algorithm>

#include "kernels/common/column_groups.h"
#include "kernels/common/ladder.h"
#include "kernels/common/launch_size.h"
#include "kernels/logsumexp/logsumexp.h"

namespace rooflab::kernels {

using enum Device::Type;

void logsumexp_cpu_v0_reference(const LogsumexpArgs&, Queue&);
ROOFLAB_PER_ISA(logsumexp_cpu_v1_simd, LogsumexpArgs)
ROOFLAB_PER_ISA(logsumexp_cpu_v2_columns, LogsumexpArgs)
ROOFLAB_CUDA_RUNG(logsumexp_cuda_v0_reference, LogsumexpArgs)
ROOFLAB_CUDA_RUNG(logsumexp_cuda_v1_online, LogsumexpArgs)

namespace {

bool logsumexp_cpu_v2_accepts(const LogsumexpArgs& args, const Target&) {
  return args.inner >= kFewColumns && args.inner_stride == 1;
}

Footprint logsumexp_cpu_v1_footprint(const LogsumexpArgs& args, const Target& target) {
  if (has_adjacent_rows(args)) return {};
  const int64_t columns = std::min(args.inner, kLogsumexpColumns), size = size_of(args.dtype);
  return {.scratch_bytes = logsumexp_workers(args, target) * part_of_worker(columns * args.reduced, size) * size};
}

Footprint logsumexp_cuda_v1_footprint(const LogsumexpArgs& args, const Target&) {
  const int64_t bytes = logsumexp_partial_bytes(args);
  return {.launches = bytes > 0 ? 2 : 1, .scratch_bytes = bytes};
}

}  // namespace

int64_t logsumexp_workers(const LogsumexpArgs& args, const Target& target) {
  return std::min<int64_t>(args.outer * blocks_of(args.inner, kLogsumexpColumns), target.threads);
}

int64_t logsumexp_partial_bytes(const LogsumexpArgs& args) {
  const int64_t splits = reduce_v1_plan(args).splits, bytes = args.dtype == DType::kFloat64 ? 16 : 8;
  return splits > 1 ? splits * args.outer * args.inner * bytes : 0;
}

const Ladder<LogsumexpArgs> logsumexp_ladder(
    "logsumexp",
    {
        {"v1_online", kCuda,
         "maximum and sum in one pass, by the threads of a block; where outputs are few, blocks share the axis",
         nullptr, logsumexp_cuda_v1_online, logsumexp_cuda_v1_footprint},
        {"v0_reference", kCuda, "one thread per output, two passes: maximum, sum; in double", nullptr,
         logsumexp_cuda_v0_reference},
        {"v2_columns", kCpu, "a lane is a column, so columns need not be turned first; 8 columns or more, side by side",
         logsumexp_cpu_v2_accepts, logsumexp_cpu_v2_columns},
        {"v1_simd", kCpu, "maximum and sum in one pass, SIMD, all threads; columns are turned into rows in cache",
         nullptr, logsumexp_cpu_v1_simd, logsumexp_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread, two passes: maximum, sum; in double", nullptr, logsumexp_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
