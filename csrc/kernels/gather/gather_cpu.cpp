// gather on the CPU: see gather.h for what it computes.
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "kernels/common/find_first.h"
#include "kernels/common/strided.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {
namespace {

// Copies runs of `length` neighbours along the last dimension, which share one index.
void copy_runs(const GatherArgs& args, int64_t length, int64_t begin, int64_t end) {
  const int64_t size = size_of(args.dtype);
  for (int64_t run = begin; run < end; ++run) {
    int64_t offsets[2] = {};
    add_offsets(run * length, args.at.ndim, args.at.sizes, {args.x_strides, args.at.strides}, offsets);
    const int64_t from = offsets[0] + index_at(args.at, offsets[1]) * args.at.step;
    std::memcpy(static_cast<char*>(args.y) + run * length * size, static_cast<const char*>(args.x) + from * size,
                length * size);
  }
}

// The same for single elements of one dimension.
template <class Word>
void pick(const GatherArgs& args, int64_t begin, int64_t end) {
  const Word* x = static_cast<const Word*>(args.x);
  Word* y = static_cast<Word*>(args.y);
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i * args.x_strides[0] + index_at(args.at, i * args.at.strides[0]) * args.at.step];
}

void pick_elements(const GatherArgs& args, int64_t begin, int64_t end) {
  switch (size_of(args.dtype)) {
    case 1: return pick<uint8_t>(args, begin, end);
    case 2: return pick<uint16_t>(args, begin, end);
    case 4: return pick<uint32_t>(args, begin, end);
    default: return pick<uint64_t>(args, begin, end);
  }
}

}  // namespace

void check_indices(const IndexLayout& at, Queue& queue) {
  IndexLayout own = at;  // only the dimensions that the index has
  own.ndim = 0;
  own.count = 1;
  for (int d = 0; d < at.ndim; ++d) {
    if (at.strides[d] == 0) continue;
    own.sizes[own.ndim] = at.sizes[d];
    own.strides[own.ndim++] = at.strides[d];
    own.count *= at.sizes[d];
  }
  const auto index_of = [&](int64_t i) {
    int64_t offset[1] = {};
    add_offsets(i, own.ndim, own.sizes, {own.strides}, offset);
    return index_at(own, offset[0]);
  };
  const int64_t bad = find_first(queue, own.count, [&](int64_t i) {
    const int64_t index = index_of(i);
    return index < 0 || index >= own.limit;
  });
  RL_CHECK(bad == own.count, at.op, "index: expected in [0, ", at.limit, "), got ", index_of(bad));
}

void gather_cpu_v0_reference(const GatherArgs& args, Queue& queue) {
  check_indices(args.at, queue);
  copy_runs(args, 1, 0, args.at.count);
}

void gather_cpu_v1_parallel(const GatherArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 8192;  // elements that are worth waking a thread for
  check_indices(args.at, queue);
  const int last = args.at.ndim - 1;
  const bool has_rows = args.at.strides[last] == 0 && args.x_strides[last] == 1;
  const int64_t length = has_rows ? args.at.sizes[last] : 1;
  queue.parallel(args.at.count / length, std::max<int64_t>(kGrain / length, 1), [&](int64_t begin, int64_t end, int) {
    if (args.at.ndim == 1 && length == 1)
      pick_elements(args, begin, end);
    else
      copy_runs(args, length, begin, end);
  });
}

}  // namespace rooflab::kernels
