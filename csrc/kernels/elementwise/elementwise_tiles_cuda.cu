// v2b: copies that turn rows into columns. Whichever way the threads of a warp lie, either their reads or their writes
// would be a stride apart, and each would move a sector of 32 bytes for an element. So a tile passes through shared
// memory: the threads lie along the input's elements when they read, and along the result's when they write. A tile has
// 4096 elements: 64 x 64, or more one way where the matrix is shorter the other way.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/strided.h"
#include "kernels/elementwise/elementwise.h"

namespace rooflab::kernels {
namespace {

struct Turn : ElementwiseTurn {
  ElementwiseTile tile;
  unsigned down, across;  // tiles
};

// A thread moves kEach elements.
template <class Word, int kEach>
__global__ void __launch_bounds__((1 << kElementwiseTileBits) / kEach)
    elementwise_cuda_v2b_tiles_kernel(const Word* in, Word* out, const __grid_constant__ Turn turn) {
  constexpr int kThreads = (1 << kElementwiseTileBits) / kEach;
  extern __shared__ __align__(8) unsigned char shared[];
  Word* tile = reinterpret_cast<Word*>(shared);
  const auto [height_bits, width_bits, line] = turn.tile;
  let_next_kernel_come();
  const unsigned strip = blockIdx.x / turn.down;
  const int64_t row = int64_t{blockIdx.x % turn.down} << height_bits;
  const int64_t column = int64_t{strip % turn.across} << width_bits;
  int64_t offsets[2] = {row + column * turn.step, row * turn.out_step + column};
  add_offsets(strip / turn.across, turn.outer_dims, turn.sizes, {turn.strides, turn.out_strides}, offsets);
  const int64_t height = turn.rows - row, width = turn.columns - column;  // what is left of the matrix
  wait_for_previous_kernel();

  Word held[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int at = threadIdx.x + k * kThreads, i = at & ((1 << height_bits) - 1), j = at >> height_bits;
    if (i < height && j < width) held[k] = in[offsets[0] + i + j * turn.step];
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int at = threadIdx.x + k * kThreads, i = at & ((1 << height_bits) - 1), j = at >> height_bits;
    tile[j * line + i] = held[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int at = threadIdx.x + k * kThreads, j = at & ((1 << width_bits) - 1), i = at >> width_bits;
    if (i < height && j < width) out[offsets[1] + i * turn.out_step + j] = tile[j * line + i];
  }
}

template <class Word>
void launch(const ElementwiseArgs& args, Queue& queue) {
  Turn turn{elementwise_turn(args), elementwise_tile(args), 0, 0};
  turn.down = static_cast<unsigned>(((turn.rows - 1) >> turn.tile.height_bits) + 1);
  turn.across = static_cast<unsigned>(((turn.columns - 1) >> turn.tile.width_bits) + 1);
  // Where a multiprocessor has only a few tiles, more threads share the work of each.
  constexpr int64_t kFewTiles = 1024;
  const int64_t tiles = elementwise_tiles(args);
  const auto start = [&]<int kEach>() {
    const LaunchShape shape{
        .grid = tiles, .block = (1 << kElementwiseTileBits) / kEach, .shared_bytes = elementwise_tile_bytes(args)};
    queue.launch(elementwise_cuda_v2b_tiles_kernel<Word, kEach>, early(shape, queue),
                 static_cast<const Word*>(args.inputs[0].data), static_cast<Word*>(args.out), turn);
  };
  tiles <= kFewTiles ? start.template operator()<8>() : start.template operator()<16>();
}

}  // namespace

void elementwise_cuda_v2b_tiles(const ElementwiseArgs& args, Queue& queue) {
  switch (size_of(args.dtype)) {
    case 1: return launch<uint8_t>(args, queue);
    case 2: return launch<uint16_t>(args, queue);
    case 4: return launch<uint32_t>(args, queue);
    default: return launch<uint64_t>(args, queue);
  }
}

}  // namespace rooflab::kernels
