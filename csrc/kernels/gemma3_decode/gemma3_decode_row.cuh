// For gemma3_decode's v1: a barrier of the grid, a sum over a block, and a row of the residual stream in registers.
#pragma once

#include "kernels/common/vector_load.cuh"
#include "kernels/gemma3_decode/gemma3_decode_plan.h"
#include "kernels/rms_norm/rms_norm_tile.cuh"

namespace rooflab::kernels::gemma3_decode {

constexpr int kThreads = kDecodeWarps * kWarp;

// A grid-wide barrier that is used once. Work that does not depend on other blocks belongs between arrive() and wait().
// It takes 0.9 us on an H200, and cooperative groups' barrier 1.05. The kernel uses the latter for its first barrier,
// because that one needs no counter: it makes sure that the counters of these have been set to 0.
class GridBarrier {
 public:
  __device__ __forceinline__ explicit GridBarrier(unsigned* arrived) : arrived_(arrived) {}

  __device__ __forceinline__ void arrive() const {
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived_) : "memory");
  }
  __device__ __forceinline__ void wait() const {
    if (threadIdx.x == 0) {
      unsigned seen;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived_) : "memory");
      } while (seen < gridDim.x);
    }
    __syncthreads();
  }

 private:
  unsigned* const arrived_;
};

// The sum of one number from each thread of the block. Every thread gets it.
class BlockSum {
 public:
  struct Scratch {
    float of_warp[2][kDecodeWarps];
  };
  __device__ explicit BlockSum(Scratch& scratch) : scratch_(scratch) {}

  __device__ __forceinline__ float operator()(float value) {
    float(&of_warp)[kDecodeWarps] = scratch_.of_warp[half_];
    half_ ^= 1;  // none can overwrite what a slower thread still reads from the last
    value = warp_reduce(value, Add{});
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kDecodeWarps; ++w) sum += of_warp[w];
    return sum;
  }

 private:
  Scratch& scratch_;
  int half_ = 0;
};

// A row of D numbers in registers. With one text the whole block holds it, with several a warp holds the row of each. A
// thread has four neighbouring numbers a turn. Numbers beyond D are 0.
template <bool kOneText>
struct Row {
  static constexpr int kShared = kOneText ? kThreads : kWarp;  // threads that share a row
  static constexpr int kTurns = kDecodeMaxModel / (4 * kShared);
  Vector<float, 4> values[kTurns]{};

  static __device__ __forceinline__ int text() { return kOneText ? 0 : threadIdx.x / kWarp; }

  template <class Body>
  static __device__ __forceinline__ void for_each(int d, Body&& body) {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int column = (turn * kShared + static_cast<int>(threadIdx.x) % kShared) * 4;
      if (column < d) body(turn, column);
    }
  }
  template <class T>
  static __device__ __forceinline__ Row load(const T* from, int d) {
    Row row;
    for_each(d, [&](int turn, int column) { row.values[turn] = to_float(load_vector<4>(from + column)); });
    return row;
  }
  // The sum of rows that lie `stride` apart.
  static __device__ __forceinline__ Row sum(const float* from, int rows, int64_t stride, int d) {
    Row total;
#pragma unroll 8 / kTurns> 1 ? 8 / kTurns : 2
    for (int r = 0; r < rows; ++r) {
      const Row row = load(from + r * stride, d);
      total = total.plus(row);
    }
    return total;
  }
  template <class T>
  __device__ __forceinline__ void store(T* to, int d) const {
    for_each(d, [&](int turn, int column) { store_vector(to + column, from_float<T>(values[turn])); });
  }

  // norm(row) (1 + weight)
  __device__ __forceinline__ Row normalised(const Row& weight, int d, double eps, BlockSum& block_sum) const {
    const float scale = inverse_rms<!kOneText>(static_cast<float>(eps), [&](float unit) {
      const float squares = sum_of_vectors<kTurns, 4>([&](int turn, int i) {
        const float value = values[turn][i] * unit;
        return value * value;
      });
      return (kOneText ? block_sum(squares) : warp_reduce(squares, Add{})) / d;
    });
    Row result;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
      for (int i = 0; i < 4; ++i) result.values[turn][i] = values[turn][i] * scale * (weight.values[turn][i] + 1.0f);
    return result;
  }
  __device__ __forceinline__ Row plus(const Row& other) const {
    Row result;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
      for (int i = 0; i < 4; ++i) result.values[turn][i] = values[turn][i] + other.values[turn][i];
    return result;
  }
};

}  // namespace rooflab::kernels::gemma3_decode
