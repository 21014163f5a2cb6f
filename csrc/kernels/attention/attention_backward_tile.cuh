// What the CUDA rungs of attention's backward share: D = rowsum(dO * O), which is the first launch of each, and the
// statistics of each query.
#pragma once

#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_tile.cuh"
#include "kernels/common/reduce.cuh"

namespace rooflab::kernels {

// Whose rows a block keeps and whose gradients it computes: dQ, or dK and dV. The other side's rows stream past.
enum class Side { kQueries, kKeys };

constexpr int kDeltaThreads = 256, kDeltaLanes = 8;  // eight lanes per row, so that short rows leave none idle

template <class T>
__global__ void __launch_bounds__(kDeltaThreads)
    attention_backward_cuda_delta_kernel(const __grid_constant__ AttentionBackwardArgs args) {
  constexpr int kWidth = kVectorWidth<T>;
  const AttentionArgs& forward = args.forward;
  const int64_t row = blockIdx.x * int64_t{kDeltaThreads / kDeltaLanes} + threadIdx.x / kDeltaLanes;
  const int64_t head = row / forward.q_length, i = row % forward.q_length;
  const int64_t batch = head / forward.heads;
  float sum = 0;
  if (batch < forward.batch) {
    const auto tensor = [&](const void* data, const AttentionStrides& strides) {
      return HeadRows<const T>(static_cast<const T*>(data), strides, batch, head % forward.heads, forward.q_length,
                               forward.head_size);
    };
    const HeadRows<const T> out = tensor(forward.out, forward.out_strides), dout = tensor(args.dout, args.dout_strides);
    const bool vectors = out.template has_vectors<kWidth>() && dout.template has_vectors<kWidth>();
    for (int d = threadIdx.x % kDeltaLanes * kWidth; d < out.columns; d += kDeltaLanes * kWidth) {
      const T *a = out.at(static_cast<int>(i), d), *b = dout.at(static_cast<int>(i), d);
      if (vectors) {
        const auto a_values = to_float(load_vector<kWidth>(a)), b_values = to_float(load_vector<kWidth>(b));
#pragma unroll
        for (int e = 0; e < kWidth; ++e) sum += a_values[e] * b_values[e];
      } else {
        for (int e = 0; e < min(kWidth, out.columns - d); ++e) sum += to_float(a[e]) * to_float(b[e]);
      }
    }
  }
  sum = warp_reduce(sum, Add{}, kDeltaLanes);
  if (batch < forward.batch && threadIdx.x % kDeltaLanes == 0) {
    args.delta[head * attention_rounded_rows(forward.q_length) + i] = sum;
  }
}

template <class T>
void launch_delta(const AttentionBackwardArgs& args, Queue& queue) {
  const int64_t rows = args.forward.batch * args.forward.heads * args.forward.q_length;
  constexpr int64_t kRows = kDeltaThreads / kDeltaLanes;
  queue.launch(attention_backward_cuda_delta_kernel<T>, {(rows + kRows - 1) / kRows, kDeltaThreads}, args);
}

// What the backward needs to know about each query of one head.
struct QueryStatistics {
  __device__ QueryStatistics(const AttentionBackwardArgs& args, int64_t batch, int64_t head)
      : lse_(args.forward.lse + (batch * args.forward.heads + head) * args.forward.q_length),
        delta_(args.delta + (batch * args.forward.heads + head) * attention_rounded_rows(args.forward.q_length)),
        q_length_(static_cast<int>(args.forward.q_length)) {}

  // exp(score - lse) is the pair's weight: 0 where the query sees no key (lse = -inf) or does not exist.
  __device__ __forceinline__ float lse(int query) const {
    const float lse = query < q_length_ ? lse_[query] : INFINITY;
    return lse == -INFINITY ? INFINITY : lse;
  }
  __device__ __forceinline__ float delta(int query) const { return query < q_length_ ? delta_[query] : 0; }

 private:
  const float *lse_, *delta_;
  int q_length_;
};

}  // namespace rooflab::kernels
