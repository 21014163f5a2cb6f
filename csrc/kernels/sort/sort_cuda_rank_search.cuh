// What median and topk share: a block finds the number of a given rank digit by digit, and puts nothing in order.
#pragma once

#include "kernels/sort/sort_cuda_digits.cuh"

namespace rooflab::kernels {

// The keys of a line, of which kHeld fit into `held`, in shared memory. A longer line is read from memory each time.
template <class Key, int kHeld, int kThreadsOfBlock>
struct KeysOfLine {
  const SortArgs& args;
  const Line& line;
  Key* held;

  __device__ __forceinline__ bool is_held() const { return args.n <= kHeld; }

  // Calls body(place, key) for all elements, which the threads of the block share.
  template <class Body>
  __device__ __forceinline__ void for_each(Body&& body) const {
    if (!is_held()) return read(body);
    for (int64_t i = threadIdx.x; i < args.n; i += kThreadsOfBlock) body(i, held[i]);
  }

  // The same the first time: the keys are held from then on, if they fit.
  template <class Body>
  __device__ __forceinline__ void for_each_at_first(Body&& body) const {
    read([&](int64_t i, Key key) {
      if (is_held()) held[i] = key;
      body(i, key);
    });
  }

 private:
  template <class Body>
  __device__ __forceinline__ void read(Body&& body) const {
    constexpr int kLoads = 8;  // in flight
    for (int64_t first = threadIdx.x; first < args.n; first += kLoads * kThreadsOfBlock) {
      Key bits[kLoads];
#pragma unroll
      for (int u = 0; u < kLoads; ++u)
        if (first + u * kThreadsOfBlock < args.n) bits[u] = line.element<Key>(args, first + u * kThreadsOfBlock);
#pragma unroll
      for (int u = 0; u < kLoads; ++u)
        if (first + u * kThreadsOfBlock < args.n) body(first + u * kThreadsOfBlock, line.key_of_bits(args, bits[u]));
    }
  }
};

// In shared memory.
template <int kThreadsOfBlock>
struct RankSearch {
  static_assert(kThreadsOfBlock >= kDigits);
  uint32_t counts[kDigits], of_warps[kThreadsOfBlock / kWarp];
  uint32_t digit, before, count;  // the digit of the number, how many numbers have a smaller one, and how many have it

  // By all threads. Of the numbers that for_each(visit) calls `visit` with, the one that has `rank` of them before it.
  // Afterwards `rank` is its rank among those that equal it, and `count` says how many these are. A number has `bits`
  // bits or fewer.
  template <class Number, class ForEach>
  __device__ __forceinline__ Number find(int bits, uint32_t& rank, ForEach&& for_each) {
    Number found = 0, known = 0;  // the digits found so far, the highest first, and which bits these are
    for (int shift = (bits - 1) / kDigitBits * kDigitBits; shift >= 0; shift -= kDigitBits) {
      for (int d = threadIdx.x; d < kDigits; d += kThreadsOfBlock) counts[d] = 0;
      __syncthreads();
      for_each([&](Number number) {
        if ((number & known) == found) atomicAdd(&counts[static_cast<int>(number >> shift) & (kDigits - 1)], 1u);
      });
      __syncthreads();
      const uint32_t own = threadIdx.x < kDigits ? counts[threadIdx.x] : 0;
      const uint32_t smaller = sum_before(own, of_warps);
      if (smaller <= rank && rank < smaller + own) {
        digit = threadIdx.x;
        before = smaller;
        count = own;
      }
      __syncthreads();
      found |= static_cast<Number>(static_cast<Number>(digit) << shift);
      known |= static_cast<Number>(static_cast<Number>(kDigits - 1) << shift);
      rank -= before;
    }
    return found;
  }
};

}  // namespace rooflab::kernels
