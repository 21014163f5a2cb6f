// Random numbers by counter: element i is a function of (seed, stream, i) alone, by Philox4x32-10 (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", 2011). So the values are the same, bit for bit, on every device,
// instruction set and number of threads. A call takes a new stream number; there is no state to advance.
//   normal    standard normal, by Box-Muller: two from each pair of uniform numbers
//   uniform   [0, 1): as many random bits as the dtype has digits, so no value rounds to 1
//   integers  low + floor(r * range / 2^64), r of 64 bits, for any range up to 2^64
// float16 and bfloat16 normals are the float32 ones, rounded.
//
// FLOPs: counted as none. Compulsory bytes: each element written once. Roof: memory bandwidth on a GPU; on a CPU the
// arithmetic of Philox (10 rounds) binds.
#pragma once

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

enum class RandomKind : uint8_t { kNormal, kUniform, kIntegers };

struct RandomArgs {
  void* out;  // count elements, contiguous
  int64_t count;
  DType dtype;  // floating; int64 or int32 for integers
  RandomKind kind;
  uint64_t seed, stream;
  int64_t low;             // integers: the smallest value
  uint64_t range;          // integers: the number of values; 0 means 2^64
  const int64_t* advance;  // added to stream, in device memory: grows with each replay of a graph; or null
};

extern const Ladder<RandomArgs> random_ladder;

}  // namespace rooflab::kernels
