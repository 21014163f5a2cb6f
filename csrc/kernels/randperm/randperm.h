// randperm: the numbers below count in random order. Number i draws 32 random bits, word i of the sequence of random.h,
// and the numbers are put in order of their draws. Those that drew alike draw 64 bits more, from blocks that no draw of
// 32 bits comes to. So every order is equally likely, and is the same on every device.
//
// FLOPs: counted as none. Compulsory bytes: each number written once. Roof: memory bandwidth; of few numbers on a GPU,
// the time that launches take.
#pragma once

#include "kernels/common/ladder_declaration.h"
#include "kernels/random/philox.h"

namespace rooflab::kernels {

// A draw above and the number that drew it below.
ROOFLAB_HOST_DEVICE uint64_t drawn_item(uint32_t draw, int64_t number) {
  return uint64_t{draw} << 32 | static_cast<uint64_t>(number);
}

// Which of two items comes first.
struct DrawnOrder {
  uint64_t seed, stream;

  ROOFLAB_HOST_DEVICE explicit DrawnOrder(const RandomArgs& args) : seed(args.seed), stream(stream_of(args)) {}
  ROOFLAB_HOST_DEVICE uint64_t draw_again(uint64_t item) const {
    return PhiloxBlock(seed, stream, uint64_t{1} << 63 | static_cast<uint32_t>(item)).word<uint64_t>(0);
  }
  ROOFLAB_HOST_DEVICE bool operator()(uint64_t a, uint64_t b) const {
    if ((a ^ b) >> 32 != 0 || a == b) return a < b;
    const uint64_t again = draw_again(a), other = draw_again(b);
    return again != other ? again < other : a < b;
  }
};

// How the CPU's v1 shares its work: portions of the numbers, and 2^bits buckets of draws whose upper bits are alike.
// A worker has room for some more than the items of an ordinary bucket.
struct RandpermPlan {
  int bits;
  int64_t portions, room;
};
RandpermPlan randperm_plan(int64_t count, const Target& target);

// The GPU's v1 sorts by the upper digits of 8 bits of the draws, until no more than about so many items are alike.
inline constexpr int64_t kRandpermAlike = 128;
int randperm_digits(int64_t count);
int64_t randperm_count_bytes(int64_t count);  // of the scratch for counts of digits

extern const Ladder<RandomArgs> randperm_ladder;  // of integers: out is int64, and count is below 2^32

}  // namespace rooflab::kernels
