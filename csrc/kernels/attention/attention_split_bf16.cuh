// q, k, v and dout as three bfloat16 parts each (common/split_bf16.cuh), for the rungs of attention and its backward
// that use them: the kernel that splits them, and the layout of the parts.
#pragma once

#include "core/target.h"
#include "kernels/attention/attention_tile.cuh"
#include "kernels/common/alignment.h"
#include "kernels/common/split_bf16.cuh"

namespace rooflab::kernels {

using Part = __nv_bfloat16;

// A part is contiguous, (batch, heads, length, columns), its rows padded with zeros to whole vectors of eight. The
// parts follow one another.
struct SplitOperand {
  const float* data;
  AttentionStrides strides;
  int64_t heads, length, head_size;
  bool aligned;
  Part* parts;
  int64_t row_vectors, vectors;  // per part
};
template <int kCount>
struct SplitOperands {
  SplitOperand of[kCount];
};

constexpr int kSplitThreads = 256;

template <int kCount>
__global__ void __launch_bounds__(kSplitThreads)
    attention_split_bf16_kernel(const __grid_constant__ SplitOperands<kCount> operands) {
  const SplitOperand& operand = operands.of[blockIdx.y];
  const int64_t stride = int64_t{gridDim.x} * kSplitThreads;
  for (int64_t i = blockIdx.x * int64_t{kSplitThreads} + threadIdx.x; i < operand.vectors; i += stride) {
    const int64_t row = i / operand.row_vectors, column = i % operand.row_vectors * kVector;
    const int64_t token = row % operand.length, head = row / operand.length % operand.heads,
                  batch = row / operand.length / operand.heads;
    const float* from = operand.data + batch * operand.strides.batch + head * operand.strides.head +
                        token * operand.strides.token + column;
    const int64_t left = operand.head_size - column;
    split_vector(from, static_cast<int>(left < kVector ? left : kVector), operand.aligned, operand.parts + i * kVector,
                 operand.vectors * kVector);
  }
}

inline SplitOperand split_operand(const void* data, const AttentionStrides& strides, int64_t batch, int64_t heads,
                                  int64_t length, int64_t head_size, Part* parts) {
  const auto fits = [](int64_t stride) { return stride % 4 == 0; };
  const int64_t row_vectors = attention_split_columns(head_size) / kVector;
  return {static_cast<const float*>(data),
          strides,
          heads,
          length,
          head_size,
          is_aligned(data) && fits(strides.batch) && fits(strides.head) && fits(strides.token),
          parts,
          row_vectors,
          batch * heads * length * row_vectors};
}

template <int kCount>
void launch_split(const SplitOperands<kCount>& operands, Queue& queue) {
  int64_t vectors = 0;
  for (const SplitOperand& operand : operands.of) vectors = std::max(vectors, operand.vectors);
  const int64_t blocks = (vectors + kSplitThreads - 1) / kSplitThreads;
  queue.launch(attention_split_bf16_kernel<kCount>,
               {{std::min<int64_t>(blocks, 8 * queue.target().sm_count), kCount}, kSplitThreads}, operands);
}

// The strides of a part.
inline AttentionStrides split_strides(int64_t heads, int64_t length, int64_t head_size) {
  const int64_t columns = attention_split_columns(head_size);
  return {heads * length * columns, length * columns, columns};
}

}  // namespace rooflab::kernels
