// nonzero on the CPU: see nonzero.h for what it computes.
#include <algorithm>

#include "kernels/nonzero/nonzero.h"

namespace rooflab::kernels {
namespace {

int64_t count_trues(const bool* mask, int64_t count) {
  int64_t trues = 0;
  for (int64_t begin = 0; begin < count; begin += 128) {  // as many as a byte can count
    const int64_t end = std::min(begin + 128, count);
    uint8_t some = 0;
    for (int64_t i = begin; i < end; ++i) some += mask[i];
    trues += some;
  }
  return trues;
}

// Writes the places of `count` trues, the first of which is at or after element `begin`. No branch depends on the mask:
// where it looks random, half of them would be predicted wrongly. So the next place is written whether there is a true
// or not, and again by the next element if there was none.
void write_places(const NonzeroArgs& args, int64_t begin, int64_t* places, int64_t count) {
  const int last = args.ndim - 1;
  int64_t digits[kMaxDims], rest = begin;
  for (int d = last; d > 0; --d) rest = divide(rest, args.sizes[d], digits[d]);
  digits[0] = rest;
  const bool* mask = args.mask + begin;
  const int64_t* end = places + count * args.ndim;
  while (places < end && digits[0] < args.sizes[0]) {
    for (; digits[last] < args.sizes[last] && places < end; ++digits[last]) {
      for (int d = 0; d < args.ndim; ++d) places[d] = digits[d];
      places += *mask++ ? args.ndim : 0;
    }
    for (int d = last; d > 0 && digits[d] == args.sizes[d]; --d) {
      digits[d] = 0;
      ++digits[d - 1];
    }
  }
}

}  // namespace

void nonzero_cpu_v0_reference(const NonzeroArgs& args, Queue&) {
  for (int64_t i = 0, rank = 0; i < args.count && rank < args.found; ++i)
    if (args.mask[i]) write_place(args, rank++, i);
}

void nonzero_cpu_v1_portions(const NonzeroArgs& args, Queue& queue) {
  const int64_t portions = (args.count + kNonzeroPortion - 1) / kNonzeroPortion;
  int64_t* first = queue.scratch<int64_t>(portions + 1);  // each portion's first true, by its number
  queue.parallel(portions, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p)
      first[p + 1] =
          count_trues(args.mask + p * kNonzeroPortion, std::min(kNonzeroPortion, args.count - p * kNonzeroPortion));
  });
  first[0] = 0;
  for (int64_t p = 0; p < portions; ++p) first[p + 1] = std::min(first[p + 1] + first[p], args.found);
  queue.parallel(portions, 1, [&](int64_t begin, int64_t end, int) {
    write_places(args, begin * kNonzeroPortion, args.places + first[begin] * args.ndim, first[end] - first[begin]);
  });
}

}  // namespace rooflab::kernels
