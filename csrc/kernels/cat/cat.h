// cat: joins arrays side by side: row n of y is row n of x[0], then row n of x[1], and so on. Arrays that are joined
// along a dimension have this form: the dimensions before it are the rows, and the others lie in each row.
//
// FLOPs: none. Compulsory bytes: every element read once and written once. Roof: memory bandwidth, and for small arrays
// the launch.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

inline constexpr int kCatPieces = 32;  // that one launch joins; all of them travel in its arguments

struct CatPiece {
  const void* x;       // (rows, width), elements of a row adjacent
  int64_t width;       // at least 1
  int64_t row_stride;  // in elements
  int64_t begin;       // where it lies in a row of y
};

struct CatArgs {
  void* y;  // (rows, width), elements of a row adjacent
  int64_t rows, width, row_stride;
  DType dtype;
  bool alike;  // every piece is of this dtype and has rows of adjacent elements
  int count;   // of pieces
  CatPiece pieces[kCatPieces];
};

extern const Ladder<CatArgs> cat_ladder;

}  // namespace rooflab::kernels
