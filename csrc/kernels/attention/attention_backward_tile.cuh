// What the CUDA rungs of attention's backward share: D = rowsum(dO * O), which is the first launch of each, the
// statistics of each query, and what keeps a NaN in dO from the keys that its query does not see.
#pragma once

#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_hidden.cuh"

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

// Where lse is not larger than this, the rungs for 16 bits may leave out its rest and round it in base 2: an error of
// 2^-16 of a weight.
inline constexpr float kLargeLse = 64;

// What the backward needs to know about each query of one head.
struct QueryStatistics {
  __device__ QueryStatistics(const AttentionBackwardArgs& args, int64_t batch, int64_t head)
      : first_((batch * args.forward.heads + head) * args.forward.q_length),
        lse_(args.forward.lse),
        rest_(args.forward.lse_rest),
        delta_(args.delta + (batch * args.forward.heads + head) * attention_rounded_rows(args.forward.q_length)),
        q_length_(static_cast<int>(args.forward.q_length)) {}

  // All weights of a query that does not exist are 0.
  __device__ __forceinline__ WeightShift shift(int query) const {
    if (query >= q_length_) return {-INFINITY, 0};
    return {lse_[first_ + query], rest_ == nullptr ? 0 : rest_[first_ + query]};
  }
  __device__ __forceinline__ float delta(int query) const { return query < q_length_ ? delta_[query] : 0; }

 private:
  int64_t first_;
  const float *lse_, *rest_, *delta_;
  int q_length_;
};

// Mends rows of dV, where dout stands for the values: `count` of them, from that of key `first` on, and kColumns
// columns from `first_column` on, by the warp that has stored them. element(row, column) is an element, row < count.
// This is a call, as in the forward pass.
template <class T, int kColumns, class Element>
__device__ __noinline__ void leave_out_hidden_queries(const AttentionBackwardArgs& args, int64_t batch, int64_t kv_head,
                                                      int first, int count, int first_column, Element element) {
  __syncwarp();
  const AttentionArgs& forward = args.forward;
  const Visibility visibility(forward);
  const int64_t group = forward.heads / forward.kv_heads, first_head = kv_head * group;
  const int queries = visibility.q_length, head_size = static_cast<int>(forward.head_size);
  for (int row = 0; row < min(count, visibility.kv_length - first); ++row) {
    const int key = first + row;
    const Visibility::Range seen = visibility.queries(key);
    const auto hides = [&](const ExplicitMask<T>& mask, int query) {
      return query < seen.begin || query >= seen.end || mask.apply(0, query, key) == -INFINITY;
    };
    const auto element_of_row = [&](int column) -> T& { return element(row, column); };

    NanColumns<kColumns> columns(first_column, head_size, element_of_row);
    if (!columns.any()) continue;
    for (int64_t head = first_head; head < first_head + group; ++head) {
      const ExplicitMask<T> mask(forward, batch, head);
      for (int query = 0; query < queries; ++query) {
        if (hides(mask, query)) columns.add_hidden(head_row<T>(args.dout, args.dout_strides, batch, head, query));
      }
    }
    if (!columns.are_wrong()) continue;
    const T* k = head_row<T>(forward.k, forward.k_strides, batch, kv_head, key);
    for (int64_t head = first_head; head < first_head + group; ++head) {
      const ExplicitMask<T> mask(forward, batch, head);
      const QueryStatistics statistics(args, batch, head);
      for (int query = seen.begin; query < seen.end && !columns.are_nan(); ++query) {
        if (hides(mask, query)) continue;
        const float product = dot(head_row<T>(forward.q, forward.q_strides, batch, head, query), k, head_size);
        const float score = mask.apply(scaled(product, forward.scale), query, key);
        columns.add_visible(exp2f(statistics.shift(query).exponent(score, 1)),
                            head_row<T>(args.dout, args.dout_strides, batch, head, query));
      }
    }
    columns.store(element_of_row);
  }
}

// The same where the rows are in device memory.
template <class T, int kColumns>
__device__ __forceinline__ void leave_out_hidden_queries(const AttentionBackwardArgs& args, int64_t batch,
                                                         int64_t kv_head, int first, int count, int first_column) {
  const AttentionStrides& strides = args.dv_strides;
  T* const rows = static_cast<T*>(args.dv) + batch * strides.batch + kv_head * strides.head + first * strides.token;
  const auto element = [rows, stride = strides.token](int row, int column) -> T& {
    return rows[row * stride + column];
  };
  leave_out_hidden_queries<T, kColumns>(args, batch, kv_head, first, count, first_column, element);
}

}  // namespace rooflab::kernels
