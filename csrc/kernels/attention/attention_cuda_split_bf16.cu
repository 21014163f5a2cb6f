// v5: float32 on Hopper's tensor cores, with the accuracy of float32. A kernel of its own splits q, k and v into three
// bfloat16 parts each (common/split_bf16.cuh). Then come v3's tiles, with six products of parts for each product, and
// probabilities that are split in registers. One warpgroup's softmax overlaps with the other's products. Tensor cores
// truncate sums, so a block's product with v starts from zero and is added to the sums with rounding.
// float32, D_h up to 128, any mask; each lane reads the explicit mask of its pairs from memory. An infinity in v gives
// NaN in its column.
//
// 6 x 4 D_h FLOPs per pair at the rate of bfloat16; scratch of 6 bytes for each element of q, k and v.
#include "core/target.h"
#include "kernels/attention/attention_forward_hopper.cuh"
#include "kernels/attention/attention_split_bf16.cuh"

namespace rooflab::kernels {
namespace {

// Limited by what fits in registers (scores, parts of probabilities, two kinds of sums) and in shared memory.
using Shape64 = ForwardShape<64, 2, 64, 2, 1, kSplitParts>;
using Shape128 = ForwardShape<128, 2, 64, 1, 1, kSplitParts>;

__device__ __forceinline__ float bias_of(uint8_t sees) { return sees ? 0 : -INFINITY; }
__device__ __forceinline__ float bias_of(float added) { return added; }

// Scales the scores of a lane's rows `row` and `row` + 8 and the block of keys from `key` on, applies the explicit
// mask, and hides what `visible` hides. There is no branch, because behind one the compiler would no longer let
// products run while others are issued. So pairs outside the mask read another of its elements.
template <class Element, int kKeys>
__device__ __forceinline__ void apply(const ExplicitMask<float>& mask, float (&scores)[kKeys / 2],
                                      const ForwardProblem& problem, const VisibleKeys& visible, int row, int key) {
  const int first = key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Element* of_row =
        static_cast<const Element*>(mask.data) + min(row + 8 * half, problem.q_length - 1) * mask.row_stride;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& score = scores[4 * j + 2 * half + e];
        const int at = first + 8 * j + e;
        const float bias = bias_of(of_row[min(at, problem.kv_length - 1) * mask.stride]);
        const bool hides = bias == -INFINITY || at < visible.begin[half] || at >= visible.end[half];
        score = hides ? -INFINITY : scaled(score, problem.args.scale) + bias;
      }
    }
  }
}

// A warpgroup's 64 rows of sums, as pairs of neighbours.
template <int kHeadSize>
__device__ __forceinline__ void store_floats(const ForwardProblem& problem, const QueryTile& tile, int row,
                                             const float (&out)[kHeadSize / 2], const Softmax& softmax) {
  const int first = threadIdx.x % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half, row += 8) {
    const float inverse = finish_row(problem, tile, row, half, softmax);
    if (row >= problem.q_length) continue;
    float* to = row_of_out<float>(problem, tile, row);
    const bool pairs = problem.head_size % 2 == 0 && reinterpret_cast<uintptr_t>(to) % sizeof(float2) == 0;
#pragma unroll
    for (int j = 0; j < kHeadSize / 8; ++j) {
      const int column = first + 8 * j;
      const float2 pair = make_float2(out[4 * j + 2 * half] * inverse, out[4 * j + 2 * half + 1] * inverse);
      if (pairs && column < problem.head_size) {
        *reinterpret_cast<float2*>(to + column) = pair;
      } else {
        if (column < problem.head_size) to[column] = pair.x;
        if (column + 1 < problem.head_size) to[column + 1] = pair.y;
      }
    }
  }
}

// Computes attention, by one warpgroup. Mask is the type of the explicit mask's elements, or void where there is none.
template <class S, class Mask>
__device__ __forceinline__ void consume(ForwardShared<Part, S>& shared, int consumer, const ForwardProblem& problem) {
  constexpr int kKeys = S::kKeys, kHeadSize = S::kHeadSize;
  const int warp = threadIdx.x % kWarpgroup / 32, lane = threadIdx.x % 32;

  float scores[kKeys / 2], out[kHeadSize / 2], block_out[kHeadSize / 2];
  uint32_t probabilities[S::kParts][kKeys / kMmaK][4];
  StageRing<S::kQStages> q_at;
  StageRing<S::kStages> k_at, v_at;

  const auto release = [&](ptx::Barrier& empty) {
    if (lane == 0) ptx::barrier_arrive(empty);
  };

  const auto multiply_qk = [&](int q_part, int k_part, bool accumulate) {
    const uint64_t q = ptx::swizzled_tile(shared.q[q_at.stage][consumer][q_part], 0);
    const uint64_t k = ptx::swizzled_tile(shared.k[k_at.stage][k_part], 0);
#pragma unroll
    for (int step = 0; step < kHeadSize / kMmaK; ++step) {
      ptx::wgmma<Part, kKeys, true, true>(scores, q + along_lines<kWarpgroupRows>(step), k + along_lines<kKeys>(step),
                                          accumulate || step > 0);
    }
  };
  const auto start_scores = [&] {  // scores = q k^T
    ptx::wgmma_fence();
    multiply_qk(0, 2, false);
    multiply_qk(2, 0, true);
    multiply_qk(1, 1, true);
    multiply_qk(0, 1, true);
    multiply_qk(1, 0, true);
    multiply_qk(0, 0, true);
    ptx::wgmma_commit();
  };
  const auto multiply_pv = [&](int p_part, int v_part, bool accumulate) {
    const uint64_t v = ptx::swizzled_tile(shared.v[v_at.stage][v_part], sizeof(shared.v[0][0][0]));
#pragma unroll
    for (int step = 0; step < kKeys / kMmaK; ++step) {
      ptx::wgmma<Part, kHeadSize, false>(block_out, probabilities[p_part][step], v + across_lines(step),
                                         accumulate || step > 0);
    }
  };
  const auto start_sums = [&] {  // block_out = probabilities v
    ptx::wgmma_fence();
    multiply_pv(0, 2, false);
    multiply_pv(2, 0, true);
    multiply_pv(1, 1, true);
    multiply_pv(0, 1, true);
    multiply_pv(1, 0, true);
    multiply_pv(0, 0, true);
    ptx::wgmma_commit();
  };

  QueryTile tile{};
  bool nan = false;
  do {
    ptx::barrier_wait(shared.q_full[q_at.stage][consumer], q_at.parity);
    tile = shared.tile[q_at.stage][consumer];
    const int warp_row = tile.row + consumer * kWarpgroupRows + warp * 16, row = warp_row + lane / 4;
    const VisibleKeys visible(problem, warp_row, row);
    const ExplicitMask<float> explicit_mask(problem.args, tile.batch, tile.head);
    Softmax softmax;
#pragma unroll
    for (int i = 0; i < kHeadSize / 2; ++i) out[i] = 0;
    for (int block = tile.first_block; block < tile.end_block; ++block) {
      ptx::barrier_wait(shared.k_full[k_at.stage], k_at.parity);
      start_scores();
      ptx::wgmma_wait<0>(scores);
      release(shared.k_empty[k_at.stage]);
      k_at.advance();

      if constexpr (std::is_void_v<Mask>) {
        mask<kKeys>(scores, visible, block * kKeys);
      } else {
        apply<Mask, kKeys>(explicit_mask, scores, problem, visible, row, block * kKeys);
      }
      float rescale[2];
      if (update(softmax, scores, problem.scale_log2, rescale)) {
#pragma unroll
        for (int i = 0; i < kHeadSize / 2; ++i) out[i] *= rescale[i / 2 % 2];
      }
#pragma unroll
      for (int i = 0; i < kKeys / 4; ++i) {
        uint32_t parts[S::kParts];
        split_bf16(scores[2 * i], scores[2 * i + 1], parts);
#pragma unroll
        for (int part = 0; part < S::kParts; ++part) probabilities[part][i / 4][i % 4] = parts[part];
      }

      ptx::barrier_wait(shared.v_full[v_at.stage], v_at.parity);
      start_sums();
      ptx::wgmma_wait<0>(block_out);
      release(shared.v_empty[v_at.stage]);
      v_at.advance();
#pragma unroll
      for (int i = 0; i < kHeadSize / 2; ++i) out[i] += block_out[i];
    }
    release(shared.q_empty[q_at.stage][consumer]);
    q_at.advance();
    nan |= has_nan(out);
    store_floats<kHeadSize>(problem, tile, row, out, softmax);
  } while (!tile.is_last);
  if (__any_sync(0xffffffff, nan)) leave_out_hidden_keys<float, S>(problem, consumer);
}

template <class S, class Mask>
__global__ void __launch_bounds__(S::kThreads, 1)
    attention_cuda_v5_split_bf16_kernel(const __grid_constant__ CUtensorMap q_map,
                                        const __grid_constant__ CUtensorMap k_map,
                                        const __grid_constant__ CUtensorMap v_map,
                                        const __grid_constant__ ForwardProblem problem) {
#ifdef ROOFLAB_SM90A
  extern __shared__ __align__(1024) unsigned char raw[];
  auto& shared = *reinterpret_cast<ForwardShared<Part, S>*>(raw);
  prepare(shared, q_map, k_map, v_map);

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<40>();
    if (threadIdx.x == 0) produce(shared, q_map, k_map, v_map, problem);
  } else {
    ptx::registers_grow_to<232>();
    consume<S, Mask>(shared, warpgroup - 1, problem);
  }
#else
  unsupported_architecture();
#endif
}

template <class S, class Mask>
void launch(const AttentionArgs& args, Queue& queue) {
  const Target& target = queue.target();
  Part* const q = queue.scratch<Part>(attention_split_elements(args));
  Part* const k = q + attention_split_elements(args.batch, args.heads, args.q_length, args.head_size);
  Part* const v = k + attention_split_elements(args.batch, args.kv_heads, args.kv_length, args.head_size);
  const AttentionStrides q_strides = split_strides(args.heads, args.q_length, args.head_size);
  const AttentionStrides kv_strides = split_strides(args.kv_heads, args.kv_length, args.head_size);
  launch_split<3>(
      {{split_operand(args.q, args.q_strides, args.batch, args.heads, args.q_length, args.head_size, q),
        split_operand(args.k, args.k_strides, args.batch, args.kv_heads, args.kv_length, args.head_size, k),
        split_operand(args.v, args.v_strides, args.batch, args.kv_heads, args.kv_length, args.head_size, v)}},
      queue);

  // The parts, as bfloat16 operands with a batch of 3 x batch.
  AttentionArgs split = args;
  split.q = q;
  split.head_size = attention_split_columns(args.head_size);
  split.dtype = DType::kBFloat16;
  const int64_t batches = kSplitParts * args.batch;
  ForwardProblem problem = forward_problem(args, S::kRows, target);
  if (args.mask != nullptr) problem.scale = 1, problem.scale_log2 = kLog2E;  // of scores to which the mask was added
  queue.launch(
      attention_cuda_v5_split_bf16_kernel<S, Mask>,
      {std::min<int64_t>(problem.tiles, target.sm_count), S::kThreads, sizeof(ForwardShared<Part, S>)},
      attention_map(q, q_strides, batches, args.heads, args.q_length, split.head_size, split.dtype, kWarpgroupRows),
      key_map(split, k, kv_strides, batches, S::kKeys), key_map(split, v, kv_strides, batches, S::kKeys), problem);
}

template <class S>
void launch(const AttentionArgs& args, Queue& queue) {
  if (args.mask == nullptr) return launch<S, void>(args, queue);
  args.mask_is_bool ? launch<S, uint8_t>(args, queue) : launch<S, float>(args, queue);
}

}  // namespace

void attention_cuda_v5_split_bf16(const AttentionArgs& args, Queue& queue) {
  args.head_size <= 64 ? launch<Shape64>(args, queue) : launch<Shape128>(args, queue);
}

}  // namespace rooflab::kernels
