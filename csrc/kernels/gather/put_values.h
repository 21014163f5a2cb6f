// How the CPU writes values to the places that an index names: index_put and scatter.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/common/strided.h"
#include "kernels/gather/share_places.h"

namespace rooflab::kernels {

// Writes, in order, the elements whose position along dimension `shared` is in [begin, end).
template <class Word, class Args>
void put_part(const Args& args, int shared, int64_t begin, int64_t end) {
  const int last = args.at.ndim - 1;
  int64_t sizes[kMaxDims];
  std::copy_n(args.at.sizes, args.at.ndim, sizes);
  sizes[shared] = end - begin;
  int64_t lines = 1;
  for (int d = 0; d < last; ++d) lines *= sizes[d];
  const int64_t length = sizes[last], index_start = begin * args.at.strides[shared];
  const Word* values = static_cast<const Word*>(args.values) + begin * args.value_strides[shared];
  Word* y = static_cast<Word*>(args.y) + begin * args.y_strides[shared];
  const int64_t index_step = args.at.strides[last], value_step = args.value_strides[last],
                y_step = args.y_strides[last];
  // Another thread may change the index after it was checked, but nothing may be written beside y.
  const auto named = [&](int64_t at, auto&& write) {
    const int64_t place = place_of(index_at(args.at, at), args.at.from_end);
    if (place >= 0 && place < args.at.limit) write(place * args.at.step);
  };
  for (int64_t line = 0; line < lines; ++line) {
    int64_t offsets[3] = {};
    add_offsets(line, last, sizes, {args.at.strides, args.value_strides, args.y_strides}, offsets);
    const int64_t at = index_start + offsets[0];
    const Word* from = values + offsets[1];
    Word* to = y + offsets[2];
    if (index_step == 0)
      named(at, [&](int64_t offset) {
        if (value_step == 1 && y_step == 1)
          std::memcpy(to + offset, from, length * sizeof(Word));
        else
          for (int64_t j = 0; j < length; ++j) to[offset + j * y_step] = from[j * value_step];
      });
    else
      for (int64_t j = 0; j < length; ++j)
        named(at + j * index_step, [&](int64_t offset) { to[offset + j * y_step] = from[j * value_step]; });
  }
}

// All values, by threads that share a dimension along which no two elements meet.
template <class Args>
void put_values(const Args& args, Queue& queue) {
  check_indices(args.at, queue);
  const auto part = [&] {
    switch (size_of(args.dtype)) {
      case 1: return put_part<uint8_t, Args>;
      case 2: return put_part<uint16_t, Args>;
      case 4: return put_part<uint32_t, Args>;
      default: return put_part<uint64_t, Args>;
    }
  }();
  share_places(args.at, args.y_strides, queue,
               [&](int shared, int64_t begin, int64_t end) { part(args, shared, begin, end); });
}

}  // namespace rooflab::kernels
