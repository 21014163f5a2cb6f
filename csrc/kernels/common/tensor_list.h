// Several tensors that one launch takes, each as a flat array.
#pragma once

#include <cstdint>

#include "kernels/common/host_device.h"

namespace rooflab::kernels {

constexpr int kListTensors = 192;  // in the parameters of one kernel, which are limited to 4096 bytes

struct FlatTensor {
  void* data;  // (n), contiguous
  int64_t n;
};

struct TensorList {
  FlatTensor tensors[kListTensors];
  int count;
};

// The first piece of each tensor, then the total number of pieces: a tensor has one for each `length` elements.
struct ListPieces {
  int32_t first[kListTensors + 1];

  ListPieces(const TensorList& list, int64_t length) {
    first[0] = 0;
    for (int i = 0; i < kListTensors; ++i) {
      const int64_t n = i < list.count ? list.tensors[i].n : 0;
      first[i + 1] = first[i] + static_cast<int32_t>((n + length - 1) / length);
    }
  }
  ROOFLAB_HOST_DEVICE int64_t total() const { return first[kListTensors]; }

  // The tensor that a piece belongs to.
  ROOFLAB_HOST_DEVICE int tensor_of(int64_t piece) const {
    int low = 0, high = kListTensors;  // it is in [low, high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first[middle] <= piece ? low : high) = middle;
    }
    return low;
  }
};

}  // namespace rooflab::kernels
