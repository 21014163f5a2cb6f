// v3: copies that turn rows into columns. Square blocks, 16 bytes wide, are turned in registers. Where the rows of the
// result lie a multiple of a kilobyte apart, their lines compete for a few places of L1. There a tile of the result is
// made in a buffer first, and each of its rows is then copied whole. For *_simd.cpp files (see simd.h).
#pragma once

#include "kernels/common/line_simd.h"
#include "kernels/common/simd_shuffle.h"
#include "kernels/common/strided.h"
#include "kernels/elementwise/elementwise.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <class Word>
constexpr int kBlockSide = 16 / static_cast<int>(sizeof(Word));
template <class Word>
using BlockRow [[gnu::vector_size(16)]] = Word;

// The lanes of a's and b's lower halves, or of their upper halves, in turn.
template <class Word, int kFirst, int... kLane>
ROOFLAB_INLINE BlockRow<Word> zip(BlockRow<Word> a, BlockRow<Word> b, std::integer_sequence<int, kLane...>) {
  return shuffle<(kFirst + kLane / 2 + kLane % 2 * kBlockSide<Word>)...>(a, b);
}

// to[i * line + j] = from[i + j * step] for as many i and j as a vector has lanes.
template <class Word>
ROOFLAB_INLINE void turn_block(const Word* from, int64_t step, Word* to, int64_t line) {
  constexpr int kCount = kBlockSide<Word>;
  constexpr std::make_integer_sequence<int, kCount> lanes{};
  BlockRow<Word> x[kCount], y[kCount];
  for (int j = 0; j < kCount; ++j) std::memcpy(&x[j], from + j * step, sizeof(x[j]));
  for (int pass = 1; pass < kCount; pass *= 2) {
    for (int k = 0; k < kCount / 2; ++k) {
      y[2 * k] = zip<Word, 0>(x[k], x[k + kCount / 2], lanes);
      y[2 * k + 1] = zip<Word, kCount / 2>(x[k], x[k + kCount / 2], lanes);
    }
    for (int k = 0; k < kCount; ++k) x[k] = y[k];
  }
  for (int i = 0; i < kCount; ++i) std::memcpy(to + i * line, &x[i], sizeof(x[i]));
}

// The same for `height` rows and `width` columns of the result.
template <class Word>
ROOFLAB_INLINE void turn(const Word* from, int64_t step, Word* to, int64_t line, int64_t height, int64_t width) {
  constexpr int kCount = kBlockSide<Word>;
  const int64_t rows = height / kCount * kCount, columns = width / kCount * kCount;  // of whole blocks
  for (int64_t j = 0; j < columns; j += kCount)
    for (int64_t i = 0; i < rows; i += kCount) turn_block(from + i + j * step, step, to + i * line + j, line);
  for (int64_t i = rows; i < height; ++i)
    for (int64_t j = 0; j < columns; ++j) to[i * line + j] = from[i + j * step];
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = columns; j < width; ++j) to[i * line + j] = from[i + j * step];
}

template <class Word>
void turn_tiles(const ElementwiseArgs& args, Queue& queue) {
  constexpr int64_t kHeight = 64, kWidth = 256 / sizeof(Word);  // of a tile
  constexpr int64_t kHeldLine = kWidth + kLine<Word>;           // elements: rows of the buffer do not compete
  constexpr int64_t kCompeting = 1024;                          // bytes
  constexpr int64_t kGrain = 32768;                             // elements that are worth waking a thread for
  const ElementwiseTurn matrix = elementwise_turn(args);
  const int64_t rows = matrix.rows, columns = matrix.columns, step = matrix.step, out_step = matrix.out_step;
  const bool holds = out_step * int64_t{sizeof(Word)} % kCompeting == 0 && rows > kBlockSide<Word>;
  const int64_t down = parts_of(rows, kHeight), across = parts_of(columns, kWidth);
  queue.parallel(args.count / (rows * columns) * down * across, kGrain / (kHeight * kWidth),
                 [&](int64_t begin, int64_t end, int) {
                   alignas(64) Word held[kHeight * kHeldLine];
                   for (int64_t tile = begin; tile < end; ++tile) {
                     const int64_t row = tile / across % down * kHeight, column = tile % across * kWidth;
                     int64_t offsets[2] = {row + column * step, row * out_step + column};
                     add_offsets(tile / (across * down), matrix.outer_dims, matrix.sizes,
                                 {matrix.strides, matrix.out_strides}, offsets);
                     const Word* from = static_cast<const Word*>(args.inputs[0].data) + offsets[0];
                     Word* to = static_cast<Word*>(args.out) + offsets[1];
                     const int64_t height = smaller(kHeight, rows - row), width = smaller(kWidth, columns - column);
                     if (!holds) {
                       turn(from, step, to, out_step, height, width);
                       continue;
                     }
                     turn(from, step, held, kHeldLine, height, width);
                     for (int64_t i = 0; i < height; ++i)
                       std::memcpy(to + i * out_step, held + i * kHeldLine, static_cast<size_t>(width) * sizeof(Word));
                   }
                 });
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
