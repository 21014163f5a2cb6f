// cat on the CPU: see cat.h.
#include "kernels/cat/cat.h"
#include "kernels/common/copy_rows_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int64_t kCatGrain = 32768;      // elements that are worth waking a thread for
constexpr int64_t kCatBlock = 32 << 10;   // bytes of y that are filled from all pieces in turn, so that they stay in L1
constexpr int64_t kCatLongRun = 1 << 10;  // bytes of a row that are worth being written past the caches

class Joiner {
 public:
  Joiner(const CatArgs& args, bool streaming)
      : args_(args), size_(size_of(args.dtype)), copy_(copy_rows_of(size_)), streaming_(streaming) {}

  // Fills columns [first, last) of rows [row, row + rows).
  void fill(int64_t row, int64_t rows, int64_t first, int64_t last) const {
    for (int i = 0; i < args_.count; ++i) {
      const CatPiece& piece = args_.pieces[i];
      const int64_t begin = larger(first, piece.begin), end = smaller(last, piece.begin + piece.width);
      if (begin < end) copy(piece, row, rows, begin, end - begin);
    }
  }

 private:
  void copy(const CatPiece& piece, int64_t row, int64_t rows, int64_t begin, int64_t run) const {
    const char* from = static_cast<const char*>(piece.x) + (row * piece.row_stride + begin - piece.begin) * size_;
    char* to = static_cast<char*>(args_.y) + (row * args_.row_stride + begin) * size_;
    if (run == 1) return copy_(from, {0, piece.row_stride}, to, {0, args_.row_stride}, 1, rows);
    if (!streaming_ || run * size_ < kCatLongRun)
      return copy_(from, {piece.row_stride, 1}, to, {args_.row_stride, 1}, rows, run);
    for (; rows > 0; --rows, from += piece.row_stride * size_, to += args_.row_stride * size_)
      stream_bytes(to, from, run * size_);
  }

  const CatArgs& args_;
  int64_t size_;
  CopyRows copy_;
  bool streaming_;
};

}  // namespace

void cat_cpu_v1_pieces(const CatArgs& args, Queue& queue) {
  const int64_t size = size_of(args.dtype), width = args.width;
  const Joiner joiner(args, queue.target().exceeds_cache(args.rows * width * size));
  const int64_t most = larger(kCatBlock / (width * size), 1);  // rows of a block
  queue.parallel(args.rows * width, kCatGrain, [&](int64_t at, int64_t end, int) {
    while (at < end) {
      const int64_t row = at / width, column = at % width, left = end - at;
      const bool whole = column == 0 && left >= width;
      const int64_t rows = whole ? smaller(left / width, most) : 1;
      const int64_t last = whole ? width : smaller(width, column + left);
      joiner.fill(row, rows, column, last);
      at += rows * (last - column);
    }
    fence();
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
