// sum_squares: the sum of the squares of all elements of several tensors, as the norm of a model's gradients needs it.
// It is computed in double, in which no square of a float32 overflows. The order of additions depends on the sizes
// alone, so a result is the same on every run and for any number of threads.
//
// FLOPs: 2 per element. Compulsory bytes: each element read once, 8 written. Roof: memory bandwidth; with many small
// tensors, launches, so one takes up to 192 of them.
#pragma once

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/tensor_list.h"

namespace rooflab::kernels {

// Fast rungs sum pieces of a tensor, and then the sums.
constexpr int64_t kSumSquaresBytes = 32768;                                                              // of a piece
constexpr int64_t sum_squares_piece(int64_t element_bytes) { return kSumSquaresBytes / element_bytes; }  // elements

struct SumSquaresArgs {
  TensorList list;
  double* y;       // ()
  bool continues;  // adds to y; else y is overwritten
  DType dtype;
};

extern const Ladder<SumSquaresArgs> sum_squares_ladder;

}  // namespace rooflab::kernels
