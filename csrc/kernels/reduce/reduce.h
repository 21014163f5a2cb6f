// reduce: sum, mean, amax, amin, var, std, prod, any or all over one axis, with the input viewed as (outer, reduced,
// inner); several adjacent axes, or all, merge into one. y[o, i] = sum_k x[o, k, i]  (or mean, largest, smallest, where
// a NaN counts as both, variance, its square root, whether any is not 0, or all are).
//
// Sums are accumulated in float (double for float64, int64 for integers and bool). An accumulator takes few additions
// before it is folded, in pairs or into double: the error of n numbers grows as log(n), however alike they are. The
// order of additions depends on the shape and the alignment alone, so a result is the same on every run and for any
// number of threads. A sum is infinite only where the sum in double does not fit the dtype: pieces that overflow float
// on the way are summed again, in double on the CPU, and after scaling them down on a GPU.
//
// A product is formed in double too, so that it may leave the range of the dtype on the way (of integers in int64).
//
// A variance is formed of distances, so that it is right where numbers are large and alike: from the mean of a piece on
// the CPU, from an element of the same output on a GPU, whose threads accumulate them and their squares in double. A
// root is taken in double too, because a variance may not fit the dtype where its root does.
//
// FLOPs: 1 per input element; 4 for var and std: an addition for the mean, a distance, its square, another addition.
// Compulsory bytes: each input element read once, each output written once. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

enum class ReduceOp : uint8_t { kSum, kMean, kMax, kMin, kVar, kStd, kProd, kAny, kAll };
constexpr bool is_truth(ReduceOp op) { return op == ReduceOp::kAny || op == ReduceOp::kAll; }
constexpr bool is_spread(ReduceOp op) { return op == ReduceOp::kVar || op == ReduceOp::kStd; }

struct ReduceArgs {
  const void* x;  // (outer, reduced, inner)
  void* y;        // (outer, inner), contiguous; int64 for sums and products of integers and bool, bool for
                  // kAny and kAll, else of dtype
  int64_t outer, reduced, inner;
  int64_t outer_stride, reduced_stride, inner_stride;  // of x, in elements
  ReduceOp op;
  DType dtype;            // of x; kMean, kVar and kStd: floating
  double correction = 0;  // kVar and kStd: the divisor is the number of elements less this
};

// How the CUDA rungs v1 and v2 divide the work: blocks of (columns, steps, rows) threads, each of which takes `width`
// neighbours of the inner axis at once, or blocks of (steps, rows) threads, which take them along the reduced axis.
struct ReducePlan {
  int width;
  bool along;
  int64_t column_count, step_count;         // the inner and the reduced axis, in units of what one thread takes
  int columns, steps, rows;                 // per block; steps is a power of two
  int64_t column_tiles, row_tiles, splits;  // numbers of blocks; splits divide the reduced axis
};

ReducePlan reduce_v1_plan(const ReduceArgs&);
ReducePlan reduce_v2_plan(const ReduceArgs&);
// Bytes for the partial results [split, outer, inner] that a second kernel folds; 0 if there is only one split.
int64_t reduce_partial_bytes(const ReduceArgs&, const ReducePlan&);

extern const Ladder<ReduceArgs> reduce_ladder;

}  // namespace rooflab::kernels
