// How the CPU writes values to the places that an index names: index_put and scatter.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/common/strided.h"
#include "kernels/gather/share_places.h"

namespace rooflab::kernels {

// Writes `count` values, which lie value_step apart, to places that lie y_step apart.
template <class Word>
void put_line(Word* y, int64_t y_step, const Word* values, int64_t value_step, int64_t count) {
  if (y_step == 1 && value_step == 1)
    std::memcpy(y, values, count * sizeof(Word));
  else if (y_step == 1 && value_step == 0)
    std::fill_n(y, count, *values);
  else
    for (int64_t j = 0; j < count; ++j) y[j * y_step] = values[j * value_step];
}

// Writes, in order, the elements whose position along dimension `shared` is in [begin, end). Leaves out numbers that
// are out of range, and returns whether there are none.
template <class Word, class Index, class Args>
bool put_part(const Args& args, int shared, int64_t begin, int64_t end) {
  const int last = args.at.ndim - 1;
  int64_t sizes[kMaxDims];
  std::copy_n(args.at.sizes, args.at.ndim, sizes);
  sizes[shared] = end - begin;
  int64_t lines = 1;
  for (int d = 0; d < last; ++d) lines *= sizes[d];
  const int64_t length = sizes[last], index_step = args.at.strides[last], value_step = args.value_strides[last],
                y_step = args.y_strides[last], from_end = args.at.from_end, step = args.at.step;
  const auto limit = static_cast<uint64_t>(args.at.limit);
  const Index* index = static_cast<const Index*>(args.at.index) + begin * args.at.strides[shared];
  const Word* values = static_cast<const Word*>(args.values) + begin * args.value_strides[shared];
  Word* y = static_cast<Word*>(args.y) + begin * args.y_strides[shared];
  const bool is_plain = index_step == 1 && value_step == 1 && y_step == 0 && step == 1 && from_end == 0;
  bool are_inside = true;
  StridedWalk<3> walk(0, last, sizes, {args.at.strides, args.value_strides, args.y_strides});
  for (int64_t line = 0; line < lines; ++line, walk.next()) {
    const Index* numbers = index + walk.offsets[0];
    const Word* from = values + walk.offsets[1];
    Word* to = y + walk.offsets[2];
    if (index_step == 0) {
      const int64_t place = place_of(*numbers, from_end);
      const bool is_inside = static_cast<uint64_t>(place) < limit;
      if (is_inside) put_line(to + place * step, y_step, from, value_step, length);
      are_inside &= is_inside;
    } else if (is_plain) {
      for (int64_t j = 0; j < length; ++j) {
        const auto place = static_cast<uint64_t>(numbers[j]);
        if (place < limit)
          to[place] = from[j];
        else
          are_inside = false;
      }
    } else {
      for (int64_t j = 0; j < length; ++j) {
        const int64_t place = place_of(numbers[j * index_step], from_end);
        const bool is_inside = static_cast<uint64_t>(place) < limit;
        if (is_inside) to[place * step + j * y_step] = from[j * value_step];
        are_inside &= is_inside;
      }
    }
  }
  return are_inside;
}

// All values, by threads that share a dimension along which no two elements meet. Returns whether all numbers are in
// range. Also where they have been checked, another thread may change them: nothing is ever written beside y.
template <class Args>
bool put_values(const Args& args, Queue& queue) {
  const auto part_of = [&]<class Index>(Index) {
    switch (size_of(args.dtype)) {
      case 1: return put_part<uint8_t, Index, Args>;
      case 2: return put_part<uint16_t, Index, Args>;
      case 4: return put_part<uint32_t, Index, Args>;
      default: return put_part<uint64_t, Index, Args>;
    }
  };
  const auto part = args.at.dtype == DType::kInt64 ? part_of(int64_t{}) : part_of(int32_t{});
  std::atomic<bool> are_inside = true;
  share_places(args.at, args.y_strides, queue, [&](int shared, int64_t begin, int64_t end) {
    if (!part(args, shared, begin, end)) are_inside = false;
  });
  return are_inside;
}

}  // namespace rooflab::kernels
