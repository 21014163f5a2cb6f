// searchsorted: y[r, i] = how many numbers of the sorted row r are at most values[r, i], by bisection.
//
// FLOPs: counted as none. Compulsory bytes: the rows and the values read once, y written once. Roof: memory latency.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/host_device.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/order.h"

namespace rooflab::kernels {

struct SearchsortedArgs {
  const void* sorted;  // (R, N), contiguous
  const void* values;  // (R, M), contiguous
  int64_t* y;          // (R, M), contiguous
  int64_t rows, n, m;
  DType dtype;
};

template <class T>
ROOFLAB_HOST_DEVICE void searchsorted_element(const SearchsortedArgs& args, int64_t i) {
  const T* sorted = static_cast<const T*>(args.sorted) + i / args.m * args.n;
  const auto value = static_cast<comparable_t<T>>(static_cast<const T*>(args.values)[i]);
  int64_t begin = 0, end = args.n;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (static_cast<comparable_t<T>>(sorted[middle]) <= value)
      begin = middle + 1;
    else
      end = middle;
  }
  args.y[i] = begin;
}

extern const Ladder<SearchsortedArgs> searchsorted_ladder;

}  // namespace rooflab::kernels
