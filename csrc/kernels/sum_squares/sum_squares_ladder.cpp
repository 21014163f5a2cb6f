// The ladder of sum_squares: see sum_squares.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/sum_squares/sum_squares.h"

namespace rooflab::kernels {

using enum Device::Type;

void sum_squares_cpu_v0_reference(const SumSquaresArgs&, Queue&);
ROOFLAB_PER_ISA(sum_squares_cpu_v1_simd, SumSquaresArgs)
ROOFLAB_CUDA_RUNG(sum_squares_cuda_v0_reference, SumSquaresArgs)
ROOFLAB_CUDA_RUNG(sum_squares_cuda_v1_many, SumSquaresArgs)

namespace {

int64_t bytes_of_sums(const SumSquaresArgs& args) {
  return ListPieces(args.list, sum_squares_piece(size_of(args.dtype))).total() * static_cast<int64_t>(sizeof(double));
}
Footprint sum_squares_cpu_v1_footprint(const SumSquaresArgs& args, const Target&) {
  return {.scratch_bytes = bytes_of_sums(args)};
}
Footprint sum_squares_cuda_v1_footprint(const SumSquaresArgs& args, const Target&) {
  const int64_t bytes = bytes_of_sums(args);
  return {.launches = bytes > 0 ? 2 : 1, .scratch_bytes = bytes};
}

}  // namespace

const Ladder<SumSquaresArgs> sum_squares_ladder(
    "sum_squares",
    {
        {"v1_many", kCuda, "a block for each 32 KiB of up to 192 tensors, then one block adds the blocks' sums",
         nullptr, sum_squares_cuda_v1_many, sum_squares_cuda_v1_footprint},
        {"v0_reference", kCuda, "one thread, one element after the other", nullptr, sum_squares_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads, 32 KiB at a time", nullptr, sum_squares_cpu_v1_simd,
         sum_squares_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread, one element after the other", nullptr, sum_squares_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
