// The process's position in its sequence of random numbers, and draws from other sequences.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace rooflab {

struct RandomState {
  uint64_t seed;
  uint64_t next_stream;  // stream number of the next call that draws
};
RandomState random_state();
void set_random_state(const RandomState& state);  // does nothing in a function that runs again (autograd/draws.h)

// Like rand(), from a position in a sequence that is not the process's.
Tensor rand_at(const RandomState& at, const Shape& shape, DType dtype, Device device);

}  // namespace rooflab
