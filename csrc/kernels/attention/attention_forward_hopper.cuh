// The parts of the Hopper forward rungs: which tiles of queries a block of the grid takes and which keys they see, the
// running softmax of their scores, and the store of the result.
#pragma once

#include "core/target.h"
#include "kernels/attention/attention_hidden.cuh"
#include "kernels/attention/attention_hopper.cuh"

namespace rooflab::kernels {

struct ForwardProblem {
  int q_length, kv_length, window;
  bool is_causal;
  int heads, queries_per_key;  // query heads, and how many of them share a key head
  int all_heads;               // of all batches
  int section;                 // how many of these are worked on at a time
  int row_tiles, tiles;
  int batches, head_size;
  float scale, scale_log2;
  AttentionArgs args;
  const uint32_t* mask_bits = nullptr;  // v3a: see attention_mask_rows.cuh

  __device__ __forceinline__ KeyRange keys(int row) const {
    return visible_keys(row, q_length, kv_length, is_causal, window);
  }
};

// A tile of query rows, and the blocks of keys that some row of it sees.
struct QueryTile {
  int row, head, batch;
  int first_block, end_block;
  bool is_last;  // the last tile of this block of the grid
};

// The tiles that this block takes, one after another. Tiles are ordered by section: a section is a few heads whose keys
// and values stay in the L2 cache. Within a section the last rows come first, because causality gives them the most
// keys. Every other round runs backwards, so that no block always gets the longer tiles.
template <int kRows, int kKeys>
class QuerySchedule {
 public:
  __device__ __forceinline__ QueryTile next(const ForwardProblem& problem) {
    const int index = this->index();
    ++round_;
    QueryTile tile;
    tile.is_last = this->index() >= problem.tiles;
    const int first_head = index / (problem.section * problem.row_tiles) * problem.section;
    const int within = index - first_head * problem.row_tiles;
    const int heads = min(problem.section, problem.all_heads - first_head);
    const int head = first_head + within % heads;
    tile.head = head % problem.heads;
    tile.batch = head / problem.heads;
    tile.row = (problem.row_tiles - 1 - within / heads) * kRows;
    tile.first_block = problem.keys(tile.row).begin / kKeys;
    tile.end_block = (problem.keys(min(tile.row + kRows, problem.q_length) - 1).end + kKeys - 1) / kKeys;
    if (tile.first_block >= tile.end_block) {  // a block past the end: all zeros, and hidden from every row
      tile.first_block = max(problem.kv_length - 1, 0) / kKeys + 1;
      tile.end_block = tile.first_block + 1;
    }
    return tile;
  }

 private:
  __device__ __forceinline__ int index() const {
    const int blocks = gridDim.x, block = blockIdx.x;
    return round_ * blocks + (round_ % 2 == 0 ? block : blocks - 1 - block);
  }

  int round_ = 0;
};

// The shape of a block's tiles: kConsumers times 64 query rows, and kKeys keys at a time. An operand may come in
// several parts, one after another along the batch of its tensor map.
template <int kHeadSize_, int kConsumers_, int kKeys_, int kStages_, int kQStages_, int kParts_ = 1>
struct ForwardShape {
  static constexpr int kHeadSize = kHeadSize_, kConsumers = kConsumers_, kKeys = kKeys_;
  static constexpr int kStages = kStages_, kQStages = kQStages_, kParts = kParts_;
  static constexpr int kRows = kConsumers * kWarpgroupRows, kThreads = (1 + kConsumers) * kWarpgroup;
};

template <class T, class S>
struct ForwardShared {
  alignas(1024) TokenTile<T, kWarpgroupRows, S::kHeadSize> q[S::kQStages][S::kConsumers][S::kParts];
  alignas(1024) TokenTile<T, S::kKeys, S::kHeadSize> k[S::kStages][S::kParts];
  alignas(1024) TokenTile<T, S::kKeys, S::kHeadSize> v[S::kStages][S::kParts];
  QueryTile tile[S::kQStages][S::kConsumers];  // loaded with q
  ptx::Barrier q_full[S::kQStages][S::kConsumers], q_empty[S::kQStages][S::kConsumers];
  ptx::Barrier k_full[S::kStages], k_empty[S::kStages], v_full[S::kStages], v_empty[S::kStages];
};

// Called by all threads before anything else.
template <class T, class S>
__device__ __forceinline__ void prepare(ForwardShared<T, S>& shared, const CUtensorMap& q_map, const CUtensorMap& k_map,
                                        const CUtensorMap& v_map) {
  if (threadIdx.x == 0) {
    ptx::tensor_map_prefetch(q_map);
    ptx::tensor_map_prefetch(k_map);
    ptx::tensor_map_prefetch(v_map);
    for (int consumer = 0; consumer < S::kConsumers; ++consumer) {
      for (int stage = 0; stage < S::kQStages; ++stage) {
        ptx::barrier_init(shared.q_full[stage][consumer], S::kParts);
        ptx::barrier_init(shared.q_empty[stage][consumer], kWarpgroup / 32);
      }
    }
    for (int stage = 0; stage < S::kStages; ++stage) {
      ptx::barrier_init(shared.k_full[stage], S::kParts);
      ptx::barrier_init(shared.v_full[stage], S::kParts);
      ptx::barrier_init(shared.k_empty[stage], S::kConsumers * kWarpgroup / 32);
      ptx::barrier_init(shared.v_empty[stage], S::kConsumers * kWarpgroup / 32);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();
}

// Issues the copies of all tiles, by one thread, in the order of their use.
template <class T, class S>
__device__ __forceinline__ void produce(ForwardShared<T, S>& shared, const CUtensorMap& q_map, const CUtensorMap& k_map,
                                        const CUtensorMap& v_map, const ForwardProblem& problem) {
  StageRing<S::kQStages> q_at;
  StageRing<S::kStages> k_at, v_at;
  QuerySchedule<S::kRows, S::kKeys> schedule;
  QueryTile tile{};
  int kv_head = 0;
  const auto load = [&](auto& parts, const CUtensorMap& map, ptx::Barrier& full, int token, int head) {
    for (int part = 0; part < S::kParts; ++part)
      load_tokens(parts[part], map, full, token, head, tile.batch + part * problem.batches);
  };
  const auto load_keys = [&](int token) {
    ptx::barrier_wait(shared.k_empty[k_at.stage], k_at.parity ^ 1);
    load(shared.k[k_at.stage], k_map, shared.k_full[k_at.stage], token, kv_head);
    k_at.advance();
  };
  const auto load_values = [&](int token) {
    ptx::barrier_wait(shared.v_empty[v_at.stage], v_at.parity ^ 1);
    load(shared.v[v_at.stage], v_map, shared.v_full[v_at.stage], token, kv_head);
    v_at.advance();
  };
  do {
    tile = schedule.next(problem);  // every block of the grid has at least one tile
    kv_head = tile.head / problem.queries_per_key;
    const int first = tile.first_block * S::kKeys, last = (tile.end_block - 1) * S::kKeys;
    load_keys(first);
    for (int consumer = 0; consumer < S::kConsumers; ++consumer) {
      ptx::barrier_wait(shared.q_empty[q_at.stage][consumer], q_at.parity ^ 1);
      shared.tile[q_at.stage][consumer] = tile;
      load(shared.q[q_at.stage][consumer], q_map, shared.q_full[q_at.stage][consumer],
           tile.row + consumer * kWarpgroupRows, tile.head);
    }
    q_at.advance();
    for (int token = first; token < last; token += S::kKeys) {
      load_keys(token + S::kKeys);
      load_values(token);
    }
    load_values(last);
  } while (!tile.is_last);
}

// Which keys a lane's two rows, eight apart, may see, and which all 16 rows of its warp may see.
struct VisibleKeys {
  int begin[2], end[2], all_begin, all_end;

  __device__ __forceinline__ VisibleKeys(const ForwardProblem& problem, int warp_row, int row) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const KeyRange keys = problem.keys(row + 8 * half);
      begin[half] = keys.begin;
      end[half] = keys.end;
    }
    all_begin = problem.keys(warp_row + 15).begin;
    all_end = problem.keys(warp_row).end;
  }
};

// Hides keys in the scores of a block of keys whose first key is `key`.
template <int kKeys>
__device__ __forceinline__ void mask(float (&scores)[kKeys / 2], const VisibleKeys& visible, int key) {
  if (visible.all_begin <= key && key + kKeys <= visible.all_end) return;
  const int first = key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int skip = visible.begin[half] - first;
    const unsigned count = visible.end[half] - visible.begin[half];
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

// For the lane's two rows: the reference, and this lane's share of the sum of exp(score - reference) so far.
struct Softmax {
  float reference[2] = {-INFINITY, -INFINITY}, sum[2] = {};
};

__device__ __forceinline__ float finite(float reference) { return reference == -INFINITY ? 0.f : reference; }

// Turns scores into probabilities relative to the reference, which follows the rows' maxima. The reference may lag by a
// factor of 2^8 in probability, because only a larger step is worth rescaling all sums, by `rescale`.
// Returns whether they must be rescaled.
template <int kCount>
__device__ __forceinline__ bool update(Softmax& softmax, float (&scores)[kCount], float scale_log2,
                                       float (&rescale)[2]) {
  constexpr float kLag = 8;
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
  if (__any_sync(0xffffffff, fmaxf(fabsf(shift[0]), fabsf(shift[1])) > kLargeShift)) {  // subtract before scaling
#pragma unroll
    for (int i = 0; i < kCount; ++i) scores[i] -= base[i / 2 % 2];
    shift[0] = shift[1] = 0;
  }
  float added[2] = {};  // summed up first, so that softmax.sum takes one addition for each block of keys
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    scores[i] = exp2_approximate(fmaf(scores[i], scale_log2, -shift[i / 2 % 2]));
    added[i / 2 % 2] += scores[i];
  }
  softmax.sum[0] += added[0];
  softmax.sum[1] += added[1];
  return grew;
}

// The four lanes of a row each hold two neighbouring elements of four chunks of eight; afterwards lane i holds chunk i.
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

// The reciprocal of a row's sum of exponentials, 0 for a row that sees no key; also stores the row's lse.
__device__ __forceinline__ float finish_row(const ForwardProblem& problem, const QueryTile& tile, int row, int half,
                                            const Softmax& softmax) {
  const float sum = row_sum(softmax.sum[half]);
  if (problem.args.lse != nullptr && row < problem.q_length && threadIdx.x % 4 == 0) {
    const float reference = softmax.reference[half];
    store_lse(problem.args, (int64_t{tile.batch} * problem.heads + tile.head) * problem.q_length + row, reference,
              problem.scale, logf(sum) - rounding_of_shift(reference, problem.scale_log2));
  }
  return sum == 0 ? 0.f : 1 / sum;
}

template <class T>
__device__ __forceinline__ T* row_of_out(const ForwardProblem& problem, const QueryTile& tile, int row) {
  const AttentionStrides& strides = problem.args.out_strides;
  return static_cast<T*>(problem.args.out) + tile.batch * strides.batch + tile.head * strides.head +
         row * strides.token;
}

// Mends the rows that a warp of a consumer has stored, because one of them holds a NaN (see attention_hidden.cuh). This
// comes after the loop over tiles, because a branch within it would keep the compiler from using uniform registers.
template <class T, class S>
__device__ __noinline__ void leave_out_hidden_keys(const ForwardProblem& problem, int consumer) {
  QuerySchedule<S::kRows, S::kKeys> schedule;
  QueryTile tile;
  do {
    tile = schedule.next(problem);
    const int warp_row = tile.row + consumer * kWarpgroupRows + threadIdx.x % kWarpgroup / 32 * 16;
    leave_out_hidden_keys<T, S::kHeadSize, S::kKeys>(problem.args, tile.batch, tile.head, warp_row, 16, tile.row,
                                                     S::kRows);
  } while (!tile.is_last);
}

template <class T, int kHeadSize>
__device__ __forceinline__ void store(const ForwardProblem& problem, const QueryTile& tile, int row,
                                      const float (&out)[kHeadSize / 2], const Softmax& softmax) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half, row += 8) {
    const float inverse = finish_row(problem, tile, row, half, softmax);
    const bool inside = row < problem.q_length;
    T* to = row_of_out<T>(problem, tile, row);
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

inline ForwardProblem forward_problem(const AttentionArgs& args, int rows, const Target& target) {
  const int64_t all_heads = args.batch * args.heads, row_tiles = (args.q_length + rows - 1) / rows;
  // As many heads as fit in half of the cache, but at least one for every four multiprocessors.
  const int64_t head_bytes = std::max<int64_t>(2 * args.kv_length * args.head_size * size_of(args.dtype), 1);
  const int64_t cached = target.cache_bytes / 2 / head_bytes * (args.heads / args.kv_heads);
  const int64_t section = std::min(all_heads, std::max<int64_t>(cached, target.sm_count / 4));
  return {static_cast<int>(args.q_length),
          static_cast<int>(args.kv_length),
          static_cast<int>(std::min(args.window, args.q_length + args.kv_length)),
          args.is_causal,
          static_cast<int>(args.heads),
          static_cast<int>(args.heads / args.kv_heads),
          static_cast<int>(all_heads),
          static_cast<int>(section),
          static_cast<int>(row_tiles),
          static_cast<int>(all_heads * row_tiles),
          static_cast<int>(args.batch),
          static_cast<int>(args.head_size),
          args.scale,
          args.scale * kLog2E,
          args};
}

// Tiles of keys or values. If there are none, nothing is read, but a tensor map needs an address and a size.
inline CUtensorMap key_map(const AttentionArgs& args, const void* data, const AttentionStrides& strides, int64_t batch,
                           int rows) {
  const bool empty = args.kv_length == 0;
  return attention_map(empty ? args.q : data, strides, batch, args.kv_heads, empty ? 1 : args.kv_length, args.head_size,
                       args.dtype, rows);
}

}  // namespace rooflab::kernels
