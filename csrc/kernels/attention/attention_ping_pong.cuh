// How v2c, v3 and v3a work on their tiles: the warpgroups that multiply take turns, and one thread of another warpgroup
// has tiles copied. attention_cuda_hopper.cu says why.
#pragma once

#include "kernels/attention/attention_forward_hopper.cuh"

namespace rooflab::kernels::ping_pong {

// Limited by what fits in registers (scores, probabilities, sums) and in shared memory.
using Shape64 = ForwardShape<64, 3, 128, 2, 2>;
using NarrowShape64 = ForwardShape<64, 2, 128, 2, 2>;  // where a block would take few tiles, its last round is shorter
using Shape128 = ForwardShape<128, 3, 80, 2, 2>;       // reads keys and values a third less often than 128 rows would
using NarrowShape128 = ForwardShape<128, 2, 128, 2, 2>;  // as for 64; and computes fewer pairs that causality hides
using Shape256 = ForwardShape<256, 2, 64, 2, 1>;

// No explicit mask: a lane's part of it in the scores of a block of keys.
struct NoMaskBits {
  __device__ NoMaskBits(const ForwardProblem&) {}
  __device__ __forceinline__ void set_rows(const QueryTile&, int) {}
  __device__ __forceinline__ void load(int) {}
  template <int kCount>
  __device__ __forceinline__ void apply(float (&)[kCount]) const {}
};

// Computes attention, by one warpgroup. `MaskBits` loads its words while the product is computed that they mask.
template <class T, class S, class MaskBits>
__device__ __forceinline__ void consume(ForwardShared<T, S>& shared, int consumer, const ForwardProblem& problem) {
  constexpr int kKeys = S::kKeys, kHeadSize = S::kHeadSize;
  constexpr int kFirstTurn = 1;  // the first of the named barriers
  const int warp = threadIdx.x % kWarpgroup / 32, lane = threadIdx.x % 32;

  float scores[kKeys / 2], out[kHeadSize / 2];
  uint32_t probabilities[kKeys / kMmaK][4];
  StageRing<S::kQStages> q_at;
  StageRing<S::kStages> k_at, v_at;

  const auto take_turn = [&] { ptx::named_barrier(kFirstTurn + consumer, 2 * kWarpgroup); };
  const auto pass_turn = [&] {
    ptx::named_barrier_arrive(kFirstTurn + (consumer + 1) % S::kConsumers, 2 * kWarpgroup);
  };
  const auto release = [&](ptx::Barrier& empty) {
    if (lane == 0) ptx::barrier_arrive(empty);
  };

  const auto start_scores = [&] {  // scores = q k^T
    const uint64_t q = ptx::swizzled_tile(shared.q[q_at.stage][consumer][0], 0);
    const uint64_t k = ptx::swizzled_tile(shared.k[k_at.stage][0], 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kHeadSize / kMmaK; ++step) {
      ptx::wgmma<T, kKeys, true, true>(scores, q + along_lines<kWarpgroupRows>(step), k + along_lines<kKeys>(step),
                                       step > 0);
    }
    ptx::wgmma_commit();
  };
  const auto start_sums = [&] {  // out += probabilities v
    const uint64_t v = ptx::swizzled_tile(shared.v[v_at.stage][0], sizeof(shared.v[0][0][0]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeys / kMmaK; ++step) {
      ptx::wgmma<T, kHeadSize, false>(out, probabilities[step], v + across_lines(step), true);
    }
    ptx::wgmma_commit();
  };
  const auto wait_keys = [&] { ptx::barrier_wait(shared.k_full[k_at.stage], k_at.parity); };
  const auto wait_values = [&] { ptx::barrier_wait(shared.v_full[v_at.stage], v_at.parity); };
  const auto release_keys = [&] {
    release(shared.k_empty[k_at.stage]);
    k_at.advance();
  };
  const auto release_values = [&] {
    release(shared.v_empty[v_at.stage]);
    v_at.advance();
  };
  const auto pack = [&] {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      probabilities[i / 4][i % 4] = ptx::pack<T>(scores[2 * i], scores[2 * i + 1]);
    }
  };

  if (consumer == S::kConsumers - 1) pass_turn();
  QueryTile tile{};
  MaskBits bits(problem);
  bool nan = false;
  do {
    ptx::barrier_wait(shared.q_full[q_at.stage][consumer], q_at.parity);
    tile = shared.tile[q_at.stage][consumer];
    const int warp_row = tile.row + consumer * kWarpgroupRows + warp * 16, row = warp_row + lane / 4;
    const VisibleKeys visible(problem, warp_row, row);
    bits.set_rows(tile, row);
    Softmax softmax;
    float rescale[2];
    int block = tile.first_block;
#pragma unroll
    for (int i = 0; i < kHeadSize / 2; ++i) out[i] = 0;
    wait_keys();
    start_scores();
    bits.load(block * kKeys);
    ptx::wgmma_wait<0>(scores);
    release_keys();
    mask<kKeys>(scores, visible, block * kKeys);
    bits.apply(scores);
    update(softmax, scores, problem.scale_log2, rescale);
    pack();
    for (++block; block < tile.end_block; ++block) {
      wait_keys();
      take_turn();
      start_scores();
      wait_values();
      start_sums();
      pass_turn();
      bits.load(block * kKeys);
      ptx::wgmma_wait<1>(scores);
      release_keys();
      mask<kKeys>(scores, visible, block * kKeys);
      bits.apply(scores);
      const bool grew = update(softmax, scores, problem.scale_log2, rescale);
      ptx::wgmma_wait<0>(out);
      release_values();
      if (grew) {
#pragma unroll
        for (int i = 0; i < kHeadSize / 2; ++i) out[i] *= rescale[i / 2 % 2];
      }
      pack();
    }
    release(shared.q_empty[q_at.stage][consumer]);
    q_at.advance();
    wait_values();
    start_sums();
    ptx::wgmma_wait<0>(out);
    release_values();
    nan |= has_nan(out);
    store<T, kHeadSize>(problem, tile, row, out, softmax);
  } while (!tile.is_last);
  if (__any_sync(0xffffffff, nan)) leave_out_hidden_keys<T, S>(problem, consumer);
}

// The body of the kernels.
template <class T, class S, class MaskBits = NoMaskBits>
__device__ __forceinline__ void attend(const CUtensorMap& q_map, const CUtensorMap& k_map, const CUtensorMap& v_map,
                                       const ForwardProblem& problem) {
  extern __shared__ __align__(1024) unsigned char raw[];
  auto& shared = *reinterpret_cast<ForwardShared<T, S>*>(raw);
  prepare(shared, q_map, k_map, v_map);

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<S::kConsumers == 2 ? 24 : 32>();
    if (threadIdx.x == 0) produce(shared, q_map, k_map, v_map, problem);
  } else {
    ptx::registers_grow_to<S::kConsumers == 2 ? 240 : 160>();
    consume<T, S, MaskBits>(shared, warpgroup - 1, problem);
  }
}

using Kernel = void (*)(CUtensorMap, CUtensorMap, CUtensorMap, ForwardProblem);

template <class T, class S>
void launch(Kernel kernel, int64_t most_blocks, const AttentionArgs& args, Queue& queue,
            const uint32_t* mask_bits = nullptr) {
  ForwardProblem problem = forward_problem(args, S::kRows, queue.target());
  problem.mask_bits = mask_bits;
  queue.launch(kernel, {std::min<int64_t>(problem.tiles, most_blocks), S::kThreads, sizeof(ForwardShared<T, S>)},
               attention_map(args.q, args.q_strides, args.batch, args.heads, args.q_length, args.head_size, args.dtype,
                             kWarpgroupRows),
               key_map(args, args.k, args.k_strides, args.batch, S::kKeys),
               key_map(args, args.v, args.v_strides, args.batch, S::kKeys), problem);
}

}  // namespace rooflab::kernels::ping_pong
