// gather on the CPU: see gather.h for what it computes.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "core/error.h"
#include "kernels/common/find_first.h"
#include "kernels/common/strided.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {
namespace {

// Words are short: a call of memcpy takes longer than copying a few.
template <class Word>
void copy_words(Word* to, const Word* from, int64_t count) {
  constexpr int64_t kPart = 16 / sizeof(Word), kMost = 8 * kPart;
  if (count > kMost || count < kPart) {
    if (count > kMost) return static_cast<void>(std::memcpy(to, from, count * sizeof(Word)));
    for (int64_t k = 0; k < count; ++k) to[k] = from[k];
    return;
  }
  for (int64_t k = 0; k < count - kPart; k += kPart) std::memcpy(to + k, from + k, 16);
  std::memcpy(to + count - kPart, from + count - kPart, 16);  // may overlap the part before
}

// Whether each number of a large index lies beside the next and is used once. Then it is checked where it is used,
// which saves reading it twice.
bool checks_in_passing(const GatherArgs& args) {
  const IndexLayout& at = args.at;
  const bool repeats = std::find(at.strides, at.strides + at.ndim, 0) != at.strides + at.ndim;
  return at.strides[at.ndim - 1] == 1 && args.x_strides[at.ndim - 1] == 0 && at.step == 1 && at.limit > 0 && !repeats;
}

// One element of x for each number of the index; the first of x for one that is out of range. Returns whether none is.
template <bool kFromEnd, class Word, class Index>
[[gnu::always_inline]] inline bool pick_checked(Word* y, const Word* x, const Index* index, int64_t count,
                                                const IndexLayout& at) {
  const uint64_t from_end = kFromEnd ? static_cast<uint64_t>(at.from_end) : 0;
  const uint64_t values = from_end + static_cast<uint64_t>(at.limit);
  bool are_inside = true;
  for (int64_t k = 0; k < count; ++k) {
    const bool is_inside = static_cast<uint64_t>(index[k]) + from_end < values;
    are_inside &= is_inside;
    y[k] = x[is_inside ? place_of(index[k], static_cast<int64_t>(from_end)) : 0];
  }
  return are_inside;
}

// Copies elements [begin, end) of y, line by line along the last dimension. Returns false if it met an index that is
// out of range, for which it looks where checks_in_passing() holds.
template <class Word, class Index>
bool pick(const GatherArgs& args, int64_t begin, int64_t end) {
  const int last = args.at.ndim - 1;
  const int64_t length = args.at.sizes[last], x_step = args.x_strides[last], index_step = args.at.strides[last];
  const int64_t from_end = args.at.from_end, step = args.at.step;
  Word* y = static_cast<Word*>(args.y);
  int64_t column;
  const int64_t first = divide(begin, length, column);
  const bool is_checked = checks_in_passing(args);
  bool are_inside = true;
  StridedWalk<2> line(first, last, args.at.sizes, {args.x_strides, args.at.strides});
  for (int64_t i = begin; i < end; line.next(), column = 0) {
    const int64_t run = std::min(length - column, end - i);
    const Word* x = static_cast<const Word*>(args.x) + line.offsets[0] + column * x_step;
    const Index* index = static_cast<const Index*>(args.at.index) + line.offsets[1] + column * index_step;
    if (index_step == 0 && x_step == 1)
      copy_words(y + i, x + place_of(*index, from_end) * step, run);
    else if (is_checked)
      are_inside &= from_end > 0 ? pick_checked<true>(y + i, x, index, run, args.at)
                                 : pick_checked<false>(y + i, x, index, run, args.at);
    else
      for (int64_t k = 0; k < run; ++k) y[i + k] = x[k * x_step + place_of(index[k * index_step], from_end) * step];
    i += run;
  }
  return are_inside;
}

template <class Word>
bool pick_words(const GatherArgs& args, int64_t begin, int64_t end) {
  return args.at.dtype == DType::kInt64 ? pick<Word, int64_t>(args, begin, end) : pick<Word, int32_t>(args, begin, end);
}

bool pick_elements(const GatherArgs& args, int64_t begin, int64_t end) {
  switch (size_of(args.dtype)) {
    case 1: return pick_words<uint8_t>(args, begin, end);
    case 2: return pick_words<uint16_t>(args, begin, end);
    case 4: return pick_words<uint32_t>(args, begin, end);
    default: return pick_words<uint64_t>(args, begin, end);
  }
}

// The number of the first index that is out of range; `count` if there is none. A row-major walk over `at` meets them.
template <class Index>
int64_t first_outside(const IndexLayout& at, Queue& queue) {
  const Index* index = static_cast<const Index*>(at.index);
  const auto from_end = static_cast<uint64_t>(at.from_end), values = from_end + static_cast<uint64_t>(at.limit);
  const auto is_outside = [=](int64_t number) { return static_cast<uint64_t>(number) + from_end >= values; };
  if (at.ndim == 1) return find_first(queue, at.count, [&](int64_t i) { return is_outside(index[i * at.strides[0]]); });
  return find_first(queue, at.count, [&](int64_t i) {
    int64_t offset[1] = {};
    add_offsets(i, at.ndim, at.sizes, {at.strides}, offset);
    return is_outside(index[offset[0]]);
  });
}

}  // namespace

void check_indices(const IndexLayout& at, Queue& queue) {
  IndexLayout own = at;  // only the dimensions that the index has, evenly spaced neighbours as one
  own.ndim = 0;
  own.count = 1;
  for (int d = 0; d < at.ndim; ++d) {
    if (at.strides[d] == 0) continue;
    const bool merges = own.ndim > 0 && own.strides[own.ndim - 1] == at.strides[d] * at.sizes[d];
    if (!merges) own.sizes[own.ndim++] = 1;
    own.sizes[own.ndim - 1] *= at.sizes[d];
    own.strides[own.ndim - 1] = at.strides[d];
    own.count *= at.sizes[d];
  }
  const int64_t bad =
      own.dtype == DType::kInt64 ? first_outside<int64_t>(own, queue) : first_outside<int32_t>(own, queue);
  const auto index_of = [&](int64_t i) {
    int64_t offset[1] = {};
    add_offsets(i, own.ndim, own.sizes, {own.strides}, offset);
    return index_at(own, offset[0]);
  };
  if (bad < own.count) raise(out_of_range(own, index_of(bad)));
}

void gather_cpu_v0_reference(const GatherArgs& args, Queue& queue) {
  check_indices(args.at, queue);
  const int64_t size = size_of(args.dtype);
  for (int64_t i = 0; i < args.at.count; ++i) {
    int64_t offsets[2] = {};
    add_offsets(i, args.at.ndim, args.at.sizes, {args.x_strides, args.at.strides}, offsets);
    const int64_t from = offsets[0] + place_of(index_at(args.at, offsets[1]), args.at.from_end) * args.at.step;
    std::memcpy(static_cast<char*>(args.y) + i * size, static_cast<const char*>(args.x) + from * size, size);
  }
}

void gather_cpu_v1_parallel(const GatherArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 4096;  // elements that are worth waking a thread for
  if (!checks_in_passing(args)) check_indices(args.at, queue);
  std::atomic<bool> are_inside = true;
  queue.parallel(args.at.count, kGrain, [&](int64_t begin, int64_t end, int) {
    if (!pick_elements(args, begin, end)) are_inside = false;
  });
  if (!are_inside) check_indices(args.at, queue);  // names the first
}

}  // namespace rooflab::kernels
