// median: the middle element of each line along one axis, of an even number the lower one, and its position. The input
// is viewed as (outer, n, inner). A line with a NaN has NaN. Among equal elements, and among NaN, the first is taken.
//
// FLOPs: none are counted; the GPU's v2 compares each element once for each of its bits, and v3 counts each once for
// each of its bytes. Compulsory bytes: each input element read once, each output written once. Roof: memory bandwidth
// for many lines, latency for few.
#pragma once

#include "kernels/sort/sort.h"

namespace rooflab::kernels {

using MedianArgs = SortArgs;  // values and indices are (outer, 1, inner): keep = 1; ascending

// The GPU's v2 and v3 keep a line in shared memory, of which a block has so many bytes. A warp of v2 takes a short
// line.
inline constexpr int64_t kMedianBytes = 32768, kMedianShort = 256;
// Of the GPU's v1: what it sorts first.
SortArgs median_lines_to_sort(const MedianArgs&);

extern const Ladder<MedianArgs> median_ladder;

}  // namespace rooflab::kernels
