// sort: the elements along one axis in order, and their positions; topk: only the first of them. The input is viewed as
// (outer, n, inner). Equal elements keep their order; a NaN is larger than any number. Where no positions are asked
// for, rungs may move keys alone: zeros of both signs then come in any order, and the bits of a NaN are those of any.
//
// FLOPs: none are counted; n log2 n comparisons per line would be enough. Compulsory bytes: each input element read
// once, each output written once. Roof: memory bandwidth for the radix sorts; the other rungs compare.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct SortArgs {
  const void* x;     // (outer, n, inner)
  void* values;      // (outer, keep, inner), contiguous
  int64_t* indices;  // (outer, keep, inner), contiguous; null where they are not asked for, and then keep = n
  int64_t outer, n, inner;
  int64_t outer_stride, n_stride, inner_stride;  // of x, in elements
  int64_t keep;                                  // <= n
  bool descending;
  DType dtype;
};

// The GPU's v2 sorts up to kSortChunk elements in a block. Of a longer line each chunk's first elements, `keep` of
// them, are sorted again. The elements of a line on which pass number `pass` works; 0 when the pass before was the
// last.
inline constexpr int64_t kSortChunk = 2048;
int64_t sort_left_after(const SortArgs&, int pass);

// The GPU's v3 gives every block a portion of a line, some tiles of elements, and counts each portion's digits.
inline constexpr int64_t kSortTile = 2048, kSortDigits = 256;
int64_t sort_portions(const SortArgs&);  // of a line
bool sort_packs_before(const SortArgs&);
int64_t sort_radix_bytes(const SortArgs&);  // of its scratch
bool sort_cuda_v3_accepts(const SortArgs&, const Target&);
Footprint sort_cuda_v3_footprint(const SortArgs&, const Target&);

// The GPU's v4 keeps a line of up to kSortBlock elements in a block. Up to kSortShort of them are sorted sooner by v2's
// comparisons.
inline constexpr int64_t kSortShort = 512, kSortBlock = 4096;

// The GPU's v5 finds the last of up to kSelectMost elements. A block has kSelectBytes of shared memory for the keys of
// a line, and fewer threads for a line of up to kSelectShort elements.
inline constexpr int64_t kSelectMost = 256, kSelectBytes = 32768, kSelectShort = 4096;

// The CPU's v2 puts up to so many elements in order without a branch.
inline constexpr int64_t kSortFew = 16;

extern const Ladder<SortArgs> sort_ladder;

}  // namespace rooflab::kernels
