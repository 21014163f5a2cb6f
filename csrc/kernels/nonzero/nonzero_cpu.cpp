// nonzero on the CPU: see nonzero.h for what it computes.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/nonzero/nonzero.h"

namespace rooflab::kernels {
namespace {

constexpr int64_t kWord = 8;  // elements, a byte each; the first is the lowest

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

// Writes the places of the trues from element `begin` on, `count` of them. A word of the mask is eight elements: one
// comparison skips them where all are false, and else each step goes to the next true.
void write_places(const NonzeroArgs& args, int64_t begin, int64_t rank, int64_t count) {
  const int last = args.ndim - 1;
  const int64_t columns = args.sizes[last], end = rank + count;
  int64_t row_begin = 0, row_end = 0;  // the row of the last true that was written
  for (int64_t i = begin; i < args.count && rank < end; i += kWord) {
    uint64_t word = 0;
    std::memcpy(&word, args.mask + i, std::min(kWord, args.count - i));
    for (; word != 0 && rank < end; word &= word - 1) {
      const int64_t at = i + std::countr_zero(word) / kWord;
      if (at >= row_end) {
        write_place(args, rank++, at);
        row_begin = at - args.places[rank * args.ndim - 1];
        row_end = row_begin + columns;
      } else {
        int64_t* place = args.places + rank++ * args.ndim;
        for (int d = 0; d < last; ++d) place[d] = place[d - args.ndim];
        place[last] = at - row_begin;
      }
    }
  }
}

}  // namespace

void nonzero_cpu_v0_reference(const NonzeroArgs& args, Queue&) {
  if (args.places == nullptr) {
    std::fill_n(args.counts, args.portions, 0);
    for (int64_t i = 0; i < args.count; ++i) args.counts[i / args.portion] += args.mask[i];
    return;
  }
  for (int64_t i = 0, rank = 0; i < args.count && rank < args.found; ++i)
    if (args.mask[i]) write_place(args, rank++, i);
}

void nonzero_cpu_v1_portions(const NonzeroArgs& args, Queue& queue) {
  if (args.places == nullptr)
    return queue.parallel(args.portions, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t p = begin; p < end; ++p)
        args.counts[p] =
            count_trues(args.mask + p * args.portion, std::min(args.portion, args.count - p * args.portion));
    });
  int64_t* first = queue.scratch<int64_t>(args.portions + 1);  // each portion's first true, by its number
  first[0] = 0;
  for (int64_t p = 0; p < args.portions; ++p) first[p + 1] = std::min(first[p] + args.counts[p], args.found);
  queue.parallel(args.portions, 1, [&](int64_t begin, int64_t end, int) {
    write_places(args, begin * args.portion, first[begin], first[end] - first[begin]);
  });
}

}  // namespace rooflab::kernels
