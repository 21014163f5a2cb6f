// Decode on tensor cores: a team of warps loads tiles of 16 keys a few steps ahead, and each warp multiplies its 16
// rows of Q with them. The queries of the heads that share a key head are neighbouring rows.
#pragma once

#include "kernels/attention/attention_split.cuh"
#include "kernels/common/ptx_ampere.cuh"

namespace rooflab::kernels::split_kv {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kTileRows = 16, kStepKeys = 16;
constexpr int kBlockRows = kWarps * kTileRows;  // the most rows of a block
static_assert(kAttentionSplitRows == kBlockRows);

// 16 rows of K or V. The 16-byte vectors of a row are permuted by xor, so that the eight that ldmatrix reads at a time
// lie in different banks.
template <class T, int kD>
struct Tile {
  T data[kStepKeys][kD];

  __device__ __forceinline__ T* vector(int key, int index) { return &data[key][(index ^ key % 8) * kVector]; }
  __device__ __forceinline__ const T* vector(int key, int index) const {
    return &data[key][(index ^ key % 8) * kVector];
  }
};

// The K and V tiles of a team's steps, in the order K, V, K, V. The ring holds the tile in use and 2 kAhead tiles in
// flight.
template <class T, int kD>
class TileStream {
 public:
  static constexpr int kAhead = 256 / kD, kSlots = 2 * kAhead + 1;

  // The rows of a tensor in the team's tiles that are still to be loaded.
  struct Source {
    const T* next;  // this lane's first element
    int64_t stride;
    int keys;  // keys left, from the next tile on
  };

  __device__ TileStream(Tile<T, kD>* ring, const SplitPlan& plan, int row_warp, int head_size)
      : ring_(ring),
        row_warp_(row_warp),
        row_warps_(plan.row_warps),
        stride_keys_(plan.teams * kStepKeys),
        bytes_(lane_column() < head_size ? 16 : 0) {}

  // `first` is the first of the team's `keys` keys.
  __device__ __forceinline__ Source source(const T* first, int64_t stride, int keys) const {
    return {first + first_key() * stride + lane_column(), stride, keys};
  }

  __device__ __forceinline__ void start(Source& k, Source& v) {
#pragma unroll
    for (int step = 0; step < kAhead; ++step) {
      order(k, ring_[2 * step]);
      order(v, ring_[2 * step + 1]);
    }
  }

  // Waits for the next tile, and starts the copy of the one kAhead steps after it of the same tensor. All warps of the
  // block must call this equally often, even those of teams that have run out of keys.
  __device__ __forceinline__ const Tile<T, kD>& next(Source& source) {
    ptx::copy_async_wait<kSlots - 2>();
    if (row_warps_ == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
    const int current = slot_;
    order(source, ring_[current == 0 ? kSlots - 1 : current - 1]);  // the whole team is done with that tile
    slot_ = current + 1 == kSlots ? 0 : current + 1;
    return ring_[current];
  }

 private:
  static constexpr int kWide = kD / kVector;       // lanes per key
  static constexpr int kPassKeys = kWarp / kWide;  // keys that one copy of a warp covers
  static constexpr int kShareKeys = 4;             // keys that a warp loads before the team's next warp takes over

  __device__ __forceinline__ int first_key() const { return row_warp_ * kShareKeys + threadIdx.x % kWarp / kWide; }
  static __device__ __forceinline__ int lane_column() { return threadIdx.x % kWide * kVector; }

  __device__ __forceinline__ void order(Source& source, Tile<T, kD>& tile) const {
    if (source.keys > 0) {
      const T* from = source.next;
      const int64_t pass_stride = kPassKeys * source.stride, skipped = (row_warps_ - 1) * kShareKeys * source.stride;
      const int lane_key = threadIdx.x % kWarp / kWide, lane_index = threadIdx.x % kWide;
#pragma unroll 1
      for (int share = row_warp_; share < kStepKeys / kShareKeys; share += row_warps_, from += skipped) {
#pragma unroll
        for (int pass = 0; pass < kShareKeys; pass += kPassKeys, from += pass_stride) {
          const int key = share * kShareKeys + pass + lane_key;
          ptx::copy_async<16>(tile.vector(key, lane_index), from, key < source.keys ? bytes_ : 0);
        }
      }
      source.next += stride_keys_ * source.stride;
      source.keys -= stride_keys_;
    }
    ptx::copy_async_commit();
  }

  Tile<T, kD>* ring_;
  int row_warp_, row_warps_, stride_keys_, bytes_;
  int slot_ = 0;
};

// What one warp has accumulated for its 16 rows. A lane holds two neighbouring columns of each eight, in row lane / 4
// and in the row eight below.
template <class T, int kD>
struct WarpState {
  float max[2] = {-INFINITY, -INFINITY};  // largest score so far
  float sum[2] = {};                      // this lane's share of the sum of weights exp2((score - max) to_base_2)
  float out[kD / 8][4] = {};              // weighted sum of v

  __device__ __forceinline__ void add_step(float (&score)[2][4], const Tile<T, kD>& v, float to_base_2 = 1) {
    float scale[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float most =
          fmaxf(fmaxf(score[0][2 * r], score[0][2 * r + 1]), fmaxf(score[1][2 * r], score[1][2 * r + 1]));
      const float new_max = fmaxf(max[r], warp_reduce(most, Larger{}, 4));
      const float base = new_max == -INFINITY ? 0.0f : new_max;
      scale[r] = exp2_approximate((max[r] - base) * to_base_2);
      max[r] = new_max;
      float added = 0;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
#pragma unroll
        for (int e = 2 * r; e < 2 * r + 2; ++e) {
          score[j][e] = exp2_approximate((score[j][e] - base) * to_base_2);
          added += score[j][e];
        }
      }
      sum[r] = sum[r] * scale[r] + added;
    }
    if (__any_sync(0xffffffff, scale[0] != 1.0f || scale[1] != 1.0f)) {
#pragma unroll
      for (auto& column : out) {
#pragma unroll
        for (int e = 0; e < 4; ++e) column[e] *= scale[e / 2];
      }
    }
    const uint32_t p[4] = {ptx::pack<T>(score[0][0], score[0][1]), ptx::pack<T>(score[0][2], score[0][3]),
                           ptx::pack<T>(score[1][0], score[1][1]), ptx::pack<T>(score[1][2], score[1][3])};
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int j = 0; j < kD / 8; j += 2) {
      uint32_t pair[4];  // 16 keys by 16 columns
      ptx::load_matrices<true>(pair, v.vector(lane % 16, j + lane / 16));
      ptx::mma_m16n8k16<T>(out[j], p, pair[0], pair[1]);
      ptx::mma_m16n8k16<T>(out[j + 1], p, pair[2], pair[3]);
    }
  }
};

// The scaled scores of a warp's 16 rows and a tile of 16 keys, laid out as WarpState::out is.
template <class T, int kD>
__device__ __forceinline__ void multiply(float (&score)[2][4], const uint32_t (&q)[kD / 16][4], const Tile<T, kD>& k,
                                         float scale) {
  const int lane = threadIdx.x % kWarp;
  float chains[2][2][4] = {};
#pragma unroll
  for (int j = 0; j < kD / 16; ++j) {
    uint32_t pair[4];  // 16 keys by 16 columns
    ptx::load_matrices<false>(pair, k.vector(lane / 16 * 8 + lane % 8, 2 * j + lane / 8 % 2));
    ptx::mma_m16n8k16<T>(chains[j % 2][0], q[j], pair[0], pair[1]);
    ptx::mma_m16n8k16<T>(chains[j % 2][1], q[j], pair[2], pair[3]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) score[j][e] = (chains[0][j][e] + chains[1][j][e]) * scale;
  }
}

// Hides from each of the warp's rows the keys outside [first_key, last_key].
__device__ __forceinline__ void hide(float (&score)[2][4], int key, const int (&first_key)[2],
                                     const int (&last_key)[2]) {
#pragma unroll
  for (int j = 0; j < 2; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int at = key + j * 8 + threadIdx.x % 4 * 2 + e % 2;
      if (at < first_key[e / 2] || at > last_key[e / 2]) score[j][e] = -INFINITY;
    }
  }
}

// The results of the warps of a block, in the memory of their tiles.
template <int kD, int kBlockWarps = kWarps>
struct Found {
  float out[kBlockWarps][kTileRows][kD + 8];  // the extra 8 keep a warp's writes in different banks
  float max[kBlockWarps][kTileRows], sum[kBlockWarps][kTileRows];
};

template <class T, int kD, int kBlockWarps>
constexpr int kSharedBytes = kBlockWarps* TileStream<T, kD>::kSlots * sizeof(Tile<T, kD>);

}  // namespace rooflab::kernels::split_kv
