// softmax and log_softmax over rows of length D, with m[n] = max_d x[n, :] and s[n] = sum_d exp(x[n, :] - m[n]):
//   softmax:     y[n, d] = exp(x[n, d] - m[n]) / s[n]
//   log_softmax: y[n, d] = x[n, d] - m[n] - log(s[n])
// A row that has a NaN or a +inf, or only -inf, is NaN throughout; other rows are not affected.
//
// FLOPs: 5 per element (maximum, subtract, exp, sum, and divide or subtract). Compulsory bytes: each element read once
// and written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct SoftmaxArgs {
  const void* x;  // (N, D), elements of a row adjacent
  void* y;        // (N, D), contiguous
  int64_t n, d;
  int64_t x_row_stride;  // in elements; 0 repeats a row
  DType dtype;
  bool logarithm;  // log_softmax
  // Where rows are columns, as along any other dimension than the last, `inner` of them lie side by side: element k of
  // row o * inner + i is columns[o * outer_stride + k * step + i] and y[(o * D + k) * inner + i]. Otherwise 0. Only the
  // rungs of which softmax_takes_columns holds read them so. For the others the op turns the rows first; until then x
  // is null. Once y lies as the columns do (y_has_columns), only such rungs may run.
  const void* columns = nullptr;
  int64_t inner = 0, outer_stride = 0, step = 0;
  bool y_has_columns = false;
};
inline constexpr const char *kSoftmaxColumns = "v4_columns", *kSoftmaxShortColumns = "v4a_short_columns";
constexpr bool softmax_takes_columns(std::string_view rung) {
  return rung == kSoftmaxColumns || rung == kSoftmaxShortColumns;
}

// The GPU's v4a holds columns of so many elements.
inline constexpr int kSoftmaxShortColumn = 8;

// v2 on the CPU keeps the exponentials of two rows on the stack, in the type that they are computed in.
// Rows of a few elements lie side by side there, one in each lane.
inline constexpr int64_t kSoftmaxCpuScratch = 128 << 10;  // bytes per row
inline constexpr int64_t kSoftmaxCpuShort = 16;           // elements

// The GPU's v1b: the lanes that work on a row; and the rows of a block, which together have whole vectors of 16 bytes,
// work for every lane, and about kSoftmaxStaged floats.
inline constexpr int64_t kSoftmaxStaged = 4096, kSoftmaxStagedWidth = 1536;  // of shared memory, of the widest row
int softmax_staged_lanes(const SoftmaxArgs&);
int64_t softmax_staged_rows(const SoftmaxArgs&);

// The GPU's v2a: the elements that threads hold of a row, in whole vectors. Of 16-bit elements these are the words of
// 16 bytes that it overlaps. A block's row of up to kMaxElementRow floats is held element by element.
int64_t softmax_held_elements(const SoftmaxArgs&);

// Whether each row begins at the same place within 16 bytes in x and in y.
bool softmax_rows_lie_alike(const SoftmaxArgs&);

// The GPU's v2b: what a block holds of its row in shared memory, so much that two blocks fit a multiprocessor.
int64_t softmax_held_bytes(const SoftmaxArgs&, const Target&);

extern const Ladder<SoftmaxArgs> softmax_ladder;

}  // namespace rooflab::kernels
