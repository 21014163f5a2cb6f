// The CUDA rung of cat: see cat.h for what it computes.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/cat/cat.h"
#include "kernels/common/alignment.h"
#include "kernels/common/launch_size.h"

namespace rooflab::kernels {
namespace {

constexpr int kCatUnroll = 4;  // words of a thread, a block's width apart: all loads come first

// Word: what a thread moves at once. All widths and strides are in words.
template <class Word, class Index>
__global__ void __launch_bounds__(kThreads) cat_cuda_v1_pieces_kernel(const __grid_constant__ CatArgs args) {
  const CatPiece& piece = args.pieces[blockIdx.y];
  const Word* x = static_cast<const Word*>(piece.x);
  Word* y = static_cast<Word*>(args.y) + piece.begin;
  const Index width = static_cast<Index>(piece.width), words = static_cast<Index>(args.rows) * width;
  const Index step = gridDim.x * static_cast<Index>(kThreads * kCatUnroll);
  for (Index first = blockIdx.x * static_cast<Index>(kThreads * kCatUnroll) + threadIdx.x; first < words;
       first += step) {
    Word moved[kCatUnroll];
    Index row[kCatUnroll], column[kCatUnroll];
#pragma unroll
    for (int u = 0; u < kCatUnroll; ++u) {
      const Index at = min(first + u * kThreads, words - 1);
      row[u] = at / width;
      column[u] = at - row[u] * width;
      moved[u] = x[row[u] * static_cast<Index>(piece.row_stride) + column[u]];
    }
#pragma unroll
    for (int u = 0; u < kCatUnroll; ++u)
      if (first + u * kThreads < words) y[row[u] * static_cast<Index>(args.row_stride) + column[u]] = moved[u];
  }
}

// The bytes of the widest words that all pieces consist of, and begin and end with.
int64_t word_bytes(const CatArgs& args) {
  const int64_t size = size_of(args.dtype);
  for (int64_t bytes = 16; bytes > size; bytes /= 2) {
    bool fits = is_aligned(args.y, bytes) && args.row_stride * size % bytes == 0;
    for (int i = 0; i < args.count && fits; ++i) {
      const CatPiece& piece = args.pieces[i];
      fits = is_aligned(piece.x, bytes) && piece.width * size % bytes == 0 &&
             (args.rows == 1 || piece.row_stride * size % bytes == 0);
    }
    if (fits) return bytes;
  }
  return size;
}

template <class Word>
void launch(CatArgs args, Queue& queue) {
  const auto in_words = [&](int64_t& elements) { elements = elements * size_of(args.dtype) / int64_t{sizeof(Word)}; };
  int64_t widest = 0;
  bool is_small = true;  // every index is below 2^31
  in_words(args.row_stride);
  for (int i = 0; i < args.count; ++i) {
    CatPiece& piece = args.pieces[i];
    for (int64_t* elements : {&piece.width, &piece.row_stride, &piece.begin}) in_words(*elements);
    widest = std::max(widest, piece.width);
    // The last step of the loop may pass the end by one stride of the whole grid.
    is_small &= args.rows * std::max(piece.width, std::max(piece.row_stride, -piece.row_stride)) < int64_t{1} << 30;
  }
  is_small &= args.rows * args.row_stride < int64_t{1} << 30;
  const int64_t blocks = std::min(blocks_of(args.rows * widest, kThreads * kCatUnroll), kMostBlocks);
  const auto kernel = is_small ? cat_cuda_v1_pieces_kernel<Word, int32_t> : cat_cuda_v1_pieces_kernel<Word, int64_t>;
  queue.launch(kernel, {{blocks, args.count}, kThreads}, args);
}

}  // namespace

void cat_cuda_v1_pieces(const CatArgs& args, Queue& queue) {
  switch (word_bytes(args)) {
    case 1: return launch<uint8_t>(args, queue);
    case 2: return launch<uint16_t>(args, queue);
    case 4: return launch<uint32_t>(args, queue);
    case 8: return launch<uint64_t>(args, queue);
    default: return launch<uint4>(args, queue);
  }
}

}  // namespace rooflab::kernels
