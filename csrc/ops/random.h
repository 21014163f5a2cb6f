// The process's position in its sequence of random numbers.
#pragma once

#include <cstdint>

namespace rooflab {

struct RandomState {
  uint64_t seed;
  uint64_t next_stream;  // stream number of the next call that draws
};
RandomState random_state();
void set_random_state(const RandomState& state);

}  // namespace rooflab
