// logsumexp over one axis, with the input viewed as (outer, reduced, inner): y[o, i] = log(sum_k exp(x[o, k, i])). It
// is m + log(sum_k exp(x[o, k, i] - m)) with m the largest element, so nothing overflows. A NaN gives NaN, else +inf
// gives +inf; -inf where there is nothing else, or nothing at all.
//
// FLOPs: 4 per element (maximum, subtract, exp, sum). Compulsory bytes: each input element read once, each output
// written once. Roof: memory bandwidth.
#pragma once

#include "kernels/reduce/reduce.h"

namespace rooflab::kernels {

using LogsumexpArgs = ReduceArgs;  // floating; op is kMax, which the plan of the GPU's v1 is made for

// The CPU's v1 turns columns, so many at a time, into rows: each of its workers has room for them.
inline constexpr int64_t kLogsumexpColumns = 16;
int64_t logsumexp_workers(const LogsumexpArgs&, const Target&);
constexpr bool has_adjacent_rows(const LogsumexpArgs& args) { return args.inner == 1 && args.reduced_stride == 1; }

// Bytes of the GPU's v1 for a maximum and a sum of each split and output; 0 if there is only one split.
int64_t logsumexp_partial_bytes(const LogsumexpArgs&);

extern const Ladder<LogsumexpArgs> logsumexp_ladder;

}  // namespace rooflab::kernels
