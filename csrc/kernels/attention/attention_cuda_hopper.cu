// v3: Hopper. A block takes 64 query rows for each of its two or three consumer warpgroups, which keep their scores,
// probabilities and sums in registers; one warp of a fourth does nothing but order tiles of k and v from the copy
// engine (TMA), ahead of use. A consumer starts the product q k^T of the next keys (wgmma) before it multiplies the
// probabilities of these with v, so the softmax of one block of keys runs beside the products of another; and the
// consumers take turns at the tensor cores, so that one's exponentials fall into another's products.
// float16 and bfloat16 with float32 sums; no explicit mask; operands in multiples of 16 bytes.
#include "kernels/attention/attention_hopper.cuh"

namespace rooflab::kernels {
namespace {

// The tile for each head size, from what fits in registers (255 a thread, scores and sums) and shared memory (227 KB).
template <int kHeadSize>
struct Shape;
template <>
struct Shape<64> {
  static constexpr int kConsumers = 3, kKeys = 128, kStages = 2;
  static constexpr bool kTakeTurns = true;
};
template <>
struct Shape<128> {
  static constexpr int kConsumers = 2, kKeys = 176, kStages = 2;
  static constexpr bool kTakeTurns = true;
};
template <>
struct Shape<256> {
  static constexpr int kConsumers = 2, kKeys = 80, kStages = 2;
  static constexpr bool kTakeTurns = false;
};

template <class T, int kHeadSize>
struct Shared {
  static constexpr int kConsumers = Shape<kHeadSize>::kConsumers, kKeys = Shape<kHeadSize>::kKeys;
  static constexpr int kStages = Shape<kHeadSize>::kStages, kRows = kConsumers * kWarpgroupRows;

  alignas(1024) TokenTile<T, kRows, kHeadSize> q;
  alignas(1024) TokenTile<T, kKeys, kHeadSize> k[kStages];
  alignas(1024) TokenTile<T, kKeys, kHeadSize> v[kStages];
  ptx::Barrier q_full, q_empty, k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
};

struct Problem {
  int q_length, kv_length, window;
  bool is_causal;
  int heads, queries_per_key;  // query heads, and how many of them share a key head
  int all_heads;               // of all batches
  int section;                 // how many of these are worked on at a time
  int row_tiles, tiles;
  int head_size;
  float scale, scale_log2;
  void* out;
  AttentionStrides out_strides;
  float* lse;

  __device__ __forceinline__ KeyRange keys(int row) const {
    return visible_keys(row, q_length, kv_length, is_causal, window);
  }
};

struct RowTile {
  int row, head, batch;
  int first_block, end_block;  // of keys that some row sees
};

// Calls body for each tile of rows that falls to this block: within a section of heads, whose keys and values stay in
// the L2 cache, the last rows first, since causality gives them most keys; every other round runs backwards, so that no
// block always has the longer ones.
template <int kRows, int kKeys, class Body>
__device__ __forceinline__ void for_each_tile(const Problem& problem, Body body) {
  const int blocks = gridDim.x, block = blockIdx.x;
  for (int round = 0; round * blocks < problem.tiles; ++round) {
    const int index = round * blocks + (round % 2 == 0 ? block : blocks - 1 - block);
    if (index >= problem.tiles) continue;
    const int first_head = index / (problem.section * problem.row_tiles) * problem.section;
    const int within = index - first_head * problem.row_tiles;
    const int heads = min(problem.section, problem.all_heads - first_head);
    const int head = first_head + within % heads;
    const int row = (problem.row_tiles - 1 - within / heads) * kRows;
    const int begin = problem.keys(row).begin;
    const int end = problem.keys(min(row + kRows, problem.q_length) - 1).end;
    body(RowTile{row, head % problem.heads, head / problem.heads, begin / kKeys, (end + kKeys - 1) / kKeys});
  }
}

// Orders all tiles, by one thread, in the order of their use.
template <class T, int kHeadSize>
__device__ __forceinline__ void produce(Shared<T, kHeadSize>& shared, const CUtensorMap& q_map,
                                        const CUtensorMap& k_map, const CUtensorMap& v_map, const Problem& problem) {
  using S = Shared<T, kHeadSize>;
  StageRing<1> q_at;
  StageRing<S::kStages> k_at, v_at;
  for_each_tile<S::kRows, S::kKeys>(problem, [&](const RowTile& tile) {
    const int kv_head = tile.head / problem.queries_per_key;
    const auto load_keys = [&](int block) {
      ptx::barrier_wait(shared.k_empty[k_at.stage], k_at.parity ^ 1);
      load_tokens(shared.k[k_at.stage], k_map, shared.k_full[k_at.stage], block * S::kKeys, kv_head, tile.batch);
      k_at.advance();
    };
    if (tile.first_block < tile.end_block) load_keys(tile.first_block);
    ptx::barrier_wait(shared.q_empty, q_at.parity ^ 1);
    load_tokens(shared.q, q_map, shared.q_full, tile.row, tile.head, tile.batch);
    q_at.advance();
    for (int block = tile.first_block; block < tile.end_block; ++block) {
      if (block + 1 < tile.end_block) load_keys(block + 1);
      ptx::barrier_wait(shared.v_empty[v_at.stage], v_at.parity ^ 1);
      load_tokens(shared.v[v_at.stage], v_map, shared.v_full[v_at.stage], block * S::kKeys, kv_head, tile.batch);
      v_at.advance();
    }
  });
}

// The two rows of a lane, eight apart.
struct Rows {
  int begin[2], end[2];    // keys that each sees
  int all_begin, all_end;  // keys that every row of the warp sees
};

// Hides keys from the scores of a block whose first key is `key`.
template <int kKeys>
__device__ __forceinline__ void mask(float (&scores)[kKeys / 2], const Rows& rows, int key) {
  if (rows.all_begin <= key && key + kKeys <= rows.all_end) return;
  const int first = key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int skip = rows.begin[half] - first;
    const unsigned count = rows.end[half] - rows.begin[half];
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& score = scores[4 * j + 2 * half + e];
        score = static_cast<unsigned>(8 * j + e - skip) < count ? score : -INFINITY;
      }
    }
  }
}

// exp(score - reference) sums to `sum` so far, this lane's share of it, for the lane's two rows.
struct Softmax {
  float reference[2] = {-INFINITY, -INFINITY}, sum[2] = {};
};

__device__ __forceinline__ float finite(float reference) { return reference == -INFINITY ? 0.f : reference; }

// Turns scores into probabilities relative to the reference, which follows the rows' maxima. It may stay behind by a
// factor of 2^8 in probability: only a larger step is worth the rescaling of all sums, by `rescale`.
// Returns whether there was one.
template <int kCount>
__device__ __forceinline__ bool update(Softmax& softmax, float (&scores)[kCount], float scale_log2,
                                       float (&rescale)[2]) {
  constexpr float kLag = 8, kHuge = 1 << 20;
  float top[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float most = fmaxf(scores[2 * half], scores[2 * half + 1]);
#pragma unroll
    for (int i = 4; i < kCount; i += 4) {
      most = fmaxf(most, fmaxf(scores[i + 2 * half], scores[i + 2 * half + 1]));
    }
    top[half] = fmaxf(row_max(most), softmax.reference[half]);
  }
  const bool grew = __any_sync(0xffffffff, (top[0] - softmax.reference[0]) * scale_log2 > kLag ||
                                               (top[1] - softmax.reference[1]) * scale_log2 > kLag);
  if (grew) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rescale[half] = exp2_approximate((softmax.reference[half] - finite(top[half])) * scale_log2);
      softmax.reference[half] = top[half];
      softmax.sum[half] *= rescale[half];
    }
  }

  float base[2] = {finite(softmax.reference[0]), finite(softmax.reference[1])};
  float shift[2] = {base[0] * scale_log2, base[1] * scale_log2};
  // The rounding error of a shift this large could overflow exp2: subtract before scaling.
  if (__any_sync(0xffffffff, fmaxf(fabsf(shift[0]), fabsf(shift[1])) > kHuge)) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) scores[i] -= base[i / 2 % 2];
    shift[0] = shift[1] = 0;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    scores[i] = exp2_approximate(fmaf(scores[i], scale_log2, -shift[i / 2 % 2]));
    softmax.sum[i / 2 % 2] += scores[i];
  }
  return grew;
}

// The four lanes of a row hold two neighbouring elements each of four chunks of eight; afterwards lane i has chunk i.
__device__ __forceinline__ uint4 gather_chunk(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3) {
  const auto exchange = [](uint32_t& low, uint32_t& high, int distance) {
    const bool upper = threadIdx.x & distance;
    const uint32_t received = __shfl_xor_sync(0xffffffff, upper ? low : high, distance);
    (upper ? low : high) = received;
  };
  exchange(x0, x1, 1);
  exchange(x2, x3, 1);
  exchange(x0, x2, 2);
  exchange(x1, x3, 2);
  return {x0, x1, x2, x3};
}

template <class T, int kHeadSize>
__device__ __forceinline__ void store(const Problem& problem, const RowTile& tile, int row,
                                      const float (&out)[kHeadSize / 2], const Softmax& softmax) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half, row += 8) {
    const float sum = row_sum(softmax.sum[half]);
    const float inverse = sum == 0 ? 0.f : 1 / sum;
    const bool inside = row < problem.q_length;
    if (problem.lse != nullptr && inside && lane == 0) {
      problem.lse[(int64_t{tile.batch} * problem.heads + tile.head) * problem.q_length + row] =
          sum == 0 ? -INFINITY : softmax.reference[half] * problem.scale + logf(sum);
    }
    T* to = static_cast<T*>(problem.out) + tile.batch * problem.out_strides.batch +
            tile.head * problem.out_strides.head + row * problem.out_strides.token;
#pragma unroll
    for (int column = 0; column < kHeadSize; column += 32) {
      uint32_t x[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* pair = out + (column / 8 + i) * 4 + 2 * half;
        x[i] = ptx::pack<T>(pair[0] * inverse, pair[1] * inverse);
      }
      const uint4 chunk = gather_chunk(x[0], x[1], x[2], x[3]);
      const int at = column + lane * 8;
      if (inside && at < problem.head_size) *reinterpret_cast<uint4*>(to + at) = chunk;
    }
  }
}

// Attends, by one warpgroup.
template <class T, int kHeadSize>
__device__ __forceinline__ void consume(Shared<T, kHeadSize>& shared, int consumer, const Problem& problem) {
  using S = Shared<T, kHeadSize>;
  constexpr int kKeys = S::kKeys, kConsumers = S::kConsumers;
  constexpr bool kTakeTurns = Shape<kHeadSize>::kTakeTurns;
  // From one panel, or one step of 16 along the product's inner dimension, to the next. In units of 16 bytes.
  constexpr int kLineStep = kMmaK * sizeof(T) / 16, kTokenStep = kMmaK * kLine * sizeof(T) / 16;
  constexpr int kQPanel = sizeof(shared.q[0]) / 16, kKPanel = sizeof(shared.k[0][0]) / 16;
  constexpr int kFirstTurn = 1;  // the named barriers
  const int thread = threadIdx.x % kWarpgroup;
  const int row_in_tile = consumer * kWarpgroupRows + thread / 32 * 16;

  float scores[kKeys / 2], out[kHeadSize / 2];
  uint32_t probabilities[kKeys / kMmaK][4];
  StageRing<1> q_at;
  StageRing<S::kStages> k_at, v_at;

  const auto take_turn = [&] {
    if constexpr (kTakeTurns) ptx::named_barrier(kFirstTurn + consumer, 2 * kWarpgroup);
  };
  const auto pass_turn = [&] {
    if constexpr (kTakeTurns) {
      ptx::named_barrier_arrive(kFirstTurn + (consumer + 1) % kConsumers, 2 * kWarpgroup);
    }
  };
  const auto release = [&](ptx::Barrier& empty) {
    if (thread == 0) ptx::barrier_arrive(empty);
  };

  const auto start_scores = [&] {  // scores = q k^T
    const uint64_t q = ptx::swizzled_tile(shared.q[0][consumer * kWarpgroupRows], 0);
    const uint64_t k = ptx::swizzled_tile(shared.k[k_at.stage], 0);
    ptx::wgmma_fence();
#pragma unroll
    for (int panel = 0; panel < kHeadSize / kLine; ++panel) {
#pragma unroll
      for (int step = 0; step < kLine / kMmaK; ++step) {
        ptx::wgmma<T, kKeys, true, true>(scores, q + panel * kQPanel + step * kLineStep,
                                         k + panel * kKPanel + step * kLineStep, panel + step > 0);
      }
    }
    ptx::wgmma_commit();
  };
  const auto start_sums = [&] {  // out += probabilities v
    const uint64_t v = ptx::swizzled_tile(shared.v[v_at.stage], sizeof(shared.v[0][0]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeys / kMmaK; ++step) {
      ptx::wgmma<T, kHeadSize, false>(out, probabilities[step], v + step * kTokenStep, true);
    }
    ptx::wgmma_commit();
  };
  const auto pack = [&] {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      probabilities[i / 4][i % 4] = ptx::pack<T>(scores[2 * i], scores[2 * i + 1]);
    }
  };

  if (consumer == kConsumers - 1) pass_turn();
  for_each_tile<S::kRows, kKeys>(problem, [&](const RowTile& tile) {
    const int warp_row = tile.row + row_in_tile, row = warp_row + thread % 32 / 4;
    Rows rows;
    for (int half = 0; half < 2; ++half) {
      const KeyRange keys = problem.keys(row + 8 * half);
      rows.begin[half] = keys.begin;
      rows.end[half] = keys.end;
    }
    rows.all_begin = problem.keys(warp_row + 15).begin;
    rows.all_end = problem.keys(warp_row).end;

    Softmax softmax;
    float rescale[2];
#pragma unroll
    for (float& x : out) x = 0;
    ptx::barrier_wait(shared.q_full, q_at.parity);
    q_at.advance();
    if (tile.first_block < tile.end_block) {
      ptx::barrier_wait(shared.k_full[k_at.stage], k_at.parity);
      start_scores();
      ptx::wgmma_wait<0>(scores);
      release(shared.k_empty[k_at.stage]);
      k_at.advance();
      mask<kKeys>(scores, rows, tile.first_block * kKeys);
      update(softmax, scores, problem.scale_log2, rescale);
      pack();
      for (int block = tile.first_block + 1; block < tile.end_block; ++block) {
        ptx::barrier_wait(shared.k_full[k_at.stage], k_at.parity);
        take_turn();
        start_scores();
        ptx::barrier_wait(shared.v_full[v_at.stage], v_at.parity);
        start_sums();
        pass_turn();
        ptx::wgmma_wait<1>(scores);
        release(shared.k_empty[k_at.stage]);
        k_at.advance();
        mask<kKeys>(scores, rows, block * kKeys);
        const bool grew = update(softmax, scores, problem.scale_log2, rescale);
        ptx::wgmma_wait<0>(out);
        release(shared.v_empty[v_at.stage]);
        v_at.advance();
        if (grew) {
#pragma unroll
          for (int i = 0; i < kHeadSize / 2; ++i) out[i] *= rescale[i / 2 % 2];
        }
        pack();
      }
      release(shared.q_empty);
      ptx::barrier_wait(shared.v_full[v_at.stage], v_at.parity);
      start_sums();
      ptx::wgmma_wait<0>(out);
      release(shared.v_empty[v_at.stage]);
      v_at.advance();
    } else {
      release(shared.q_empty);
    }
    store<T, kHeadSize>(problem, tile, row, out, softmax);
  });
}

template <class T, int kHeadSize>
__global__ void __launch_bounds__((1 + Shape<kHeadSize>::kConsumers) * kWarpgroup, 1)
    attention_cuda_v3_hopper_kernel(const __grid_constant__ CUtensorMap q_map,
                                    const __grid_constant__ CUtensorMap k_map,
                                    const __grid_constant__ CUtensorMap v_map,
                                    const __grid_constant__ Problem problem) {
#ifdef ROOFLAB_SM90A
  constexpr int kConsumers = Shape<kHeadSize>::kConsumers;
  extern __shared__ __align__(1024) unsigned char raw[];
  Shared<T, kHeadSize>& shared = *reinterpret_cast<Shared<T, kHeadSize>*>(raw);

  if (threadIdx.x == 0) {
    ptx::tensor_map_prefetch(q_map);
    ptx::tensor_map_prefetch(k_map);
    ptx::tensor_map_prefetch(v_map);
    ptx::barrier_init(shared.q_full, 1);
    ptx::barrier_init(shared.q_empty, kConsumers);
    for (int stage = 0; stage < Shape<kHeadSize>::kStages; ++stage) {
      ptx::barrier_init(shared.k_full[stage], 1);
      ptx::barrier_init(shared.v_full[stage], 1);
      ptx::barrier_init(shared.k_empty[stage], kConsumers);
      ptx::barrier_init(shared.v_empty[stage], kConsumers);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::registers_shrink_to<kConsumers == 2 ? 24 : 32>();
    if (threadIdx.x == 0) produce(shared, q_map, k_map, v_map, problem);
  } else {
    ptx::registers_grow_to<kConsumers == 2 ? 240 : 160>();
    consume(shared, warpgroup - 1, problem);
  }
#endif
}

template <class T, int kHeadSize>
void launch(const AttentionArgs& args, Stream stream) {
  using S = Shared<T, kHeadSize>;
  const cuda::Properties& device = [] {
    int index = 0;
    RL_CUDA_CHECK(cudaGetDevice(&index));
    return cuda::properties(index);
  }();
  const int64_t all_heads = args.batch * args.heads, row_tiles = (args.q_length + S::kRows - 1) / S::kRows;
  // As many heads as half the cache holds, but enough of them for four blocks each.
  const int64_t head_bytes = std::max<int64_t>(2 * args.kv_length * args.head_size * size_of(args.dtype), 1);
  const int64_t cached = device.l2_bytes / 2 / head_bytes * (args.heads / args.kv_heads);
  const int64_t section = std::min(all_heads, std::max<int64_t>(cached, device.sm_count / 4));

  const Problem problem{static_cast<int>(args.q_length),
                        static_cast<int>(args.kv_length),
                        static_cast<int>(std::min(args.window, args.q_length + args.kv_length)),
                        args.is_causal,
                        static_cast<int>(args.heads),
                        static_cast<int>(args.heads / args.kv_heads),
                        static_cast<int>(all_heads),
                        static_cast<int>(section),
                        static_cast<int>(row_tiles),
                        static_cast<int>(all_heads * row_tiles),
                        static_cast<int>(args.head_size),
                        args.scale,
                        args.scale * 1.44269504088896340736f,
                        args.out,
                        args.out_strides,
                        args.lse};
  const auto key_map = [&](const void* data, const AttentionStrides& strides) {
    const bool empty = args.kv_length == 0;  // no tile is read, but a map needs an address and a size
    return attention_map(empty ? args.q : data, strides, args.batch, args.kv_heads, empty ? 1 : args.kv_length,
                         args.head_size, args.dtype, S::kKeys);
  };
  constexpr auto kernel = attention_cuda_v3_hopper_kernel<T, kHeadSize>;
  RL_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(S)));
  const unsigned blocks = static_cast<unsigned>(std::min<int64_t>(problem.tiles, device.sm_count));
  kernel<<<blocks, (1 + S::kConsumers) * kWarpgroup, sizeof(S), static_cast<cudaStream_t>(stream.handle)>>>(
      attention_map(args.q, args.q_strides, args.batch, args.heads, args.q_length, args.head_size, args.dtype,
                    S::kRows),
      key_map(args.k, args.k_strides), key_map(args.v, args.v_strides), problem);
  cuda_check_launch("attention");
}

template <class T>
void launch(const AttentionArgs& args, Stream stream) {
  if (args.head_size <= 64) {
    launch<T, 64>(args, stream);
  } else if (args.head_size <= 128) {
    launch<T, 128>(args, stream);
  } else {
    launch<T, 256>(args, stream);
  }
}

}  // namespace

bool attention_cuda_v3_accepts(const AttentionArgs& args) {
  constexpr int64_t kMaxLength = int64_t{1} << 29, kMaxTiles = int64_t{1} << 30;
  if (args.dtype != DType::kFloat16 && args.dtype != DType::kBFloat16) return false;
  if (args.mask != nullptr || args.head_size % 8 != 0 || args.head_size < 8 || args.head_size > 256) return false;
  if (!(args.scale > 0) || args.q_length > kMaxLength || args.kv_length > kMaxLength) return false;
  if (args.batch * args.heads > kMaxTiles / (args.q_length / kWarpgroupRows + 1)) return false;
  const auto fits = [&](const void* data, const AttentionStrides& strides, int64_t heads, int64_t length) {
    return attention_map_fits(data, strides, args.batch, heads, length, args.dtype);
  };
  int device = 0;
  RL_CUDA_CHECK(cudaGetDevice(&device));
  return fits(args.q, args.q_strides, args.heads, args.q_length) &&
         fits(args.k, args.k_strides, args.kv_heads, args.kv_length) &&
         fits(args.v, args.v_strides, args.kv_heads, args.kv_length) &&
         fits(args.out, args.out_strides, args.heads, args.q_length) &&
         cuda::properties(device).compute_capability == 90;
}

void attention_cuda_v3_hopper(const AttentionArgs& args, Stream stream) {
  if (args.batch == 0 || args.heads == 0 || args.q_length == 0) return;
  args.dtype == DType::kFloat16 ? launch<__half>(args, stream) : launch<__nv_bfloat16>(args, stream);
}

}  // namespace rooflab::kernels
