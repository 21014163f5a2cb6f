// The steps of gemma3_decode's v1 except those that read keys and values: see gemma3_decode_attention.cuh.
#pragma once

#include "kernels/attention/attention_split_tile.cuh"
#include "kernels/elementwise/functors.h"
#include "kernels/gemma3_decode/gemma3_decode_product.cuh"
#include "kernels/gemma3_decode/gemma3_decode_row.cuh"
#include "kernels/rope/rope.h"

namespace rooflab::kernels::gemma3_decode {

constexpr int kTeams = split_kv::kWarps;  // teams of warps that walk over keys

// What the steps pass on to each other, in global memory.
struct Between {
  float* parts;       // (B, H, parts, D_h): sums over a part of the keys
  float* qkv;         // (B, rows of qkv)
  float* o;           // (slices, B, D)
  float* down;        // (slices, B, D)
  void* active;       // (B, I)
  float2* stats;      // (B, H, parts): maximum in base 2, and sum
  unsigned* arrived;  // blocks that have come to each grid_barrier
};

template <class T, int kD, bool kOneText>
class Decode {
 public:
  using TextRow = Row<kOneText>;
  using Stream = split_kv::TileStream<T, kD>;
  using Tile = split_kv::Tile<T, kD>;
  static_assert(kTeams * Stream::kSlots * sizeof(Tile) == attention_ring_bytes(kD));

  __device__ Decode(const Gemma3DecodeArgs& args, const DecodePlan& plan, const Between& between, unsigned char* shared,
                    ptx::Barrier (&barriers)[4], BlockSum& block_sum)
      : args_(args),
        plan_(plan),
        between_(between),
        barriers_(barriers),
        block_sum_(block_sum),
        batch_(kOneText ? 1 : static_cast<int>(args.batch)),
        model_(static_cast<int>(args.model)),
        has_row_(TextRow::text() < batch_),
        qkv_(reinterpret_cast<T*>(shared)),
        o_(qkv_ + plan.qkv.elements()),
        gate_up_(o_ + plan.o.elements()),
        down_(gate_up_ + plan.gate_up.elements()),
        ring_(reinterpret_cast<Tile*>(down_ + plan.down.elements())),
        q_(reinterpret_cast<T*>(ring_ + kTeams * Stream::kSlots)),
        act_(q_ + kRows * kStride),
        sums_(reinterpret_cast<float*>(act_ + kBatch * plan.max_stride)) {}

  // The warps that stream no keys prefetch the weights, while the block waits at a barrier.
  static __device__ __forceinline__ bool prefetches() { return threadIdx.x / kWarp >= kTeams; }
  __device__ __forceinline__ void prefetch_qkv() const {
    if (threadIdx.x == kTeams * kWarp) {
      for (auto& barrier : barriers_) ptx::barrier_init(barrier, 1);
      ptx::barrier_init_fence();
    }
    ptx::named_barrier(1, kThreads - kTeams * kWarp);
    prefetch(plan_.qkv, as<T>(args_.qkv), 0, qkv_, barriers_[0], kTeams);
  }
  __device__ __forceinline__ void prefetch_o() const { prefetch(plan_.o, as<T>(args_.o), 0, o_, barriers_[1], kTeams); }
  __device__ __forceinline__ void prefetch_gate_up() const {
    const int rows_of_gate = static_cast<int>(args_.intermediate);
    prefetch(plan_.gate_up, as<T>(args_.gate_up), rows_of_gate, gate_up_, barriers_[2], kTeams);
  }
  __device__ __forceinline__ void prefetch_down() const {
    prefetch(plan_.down, as<T>(args_.down), 0, down_, barriers_[3], kTeams);
  }

  // The keys of a block, and how many of them its teams have begun to load.
  struct Keys {
    int text, kv_head, part;
    T *k_cache, *v_cache;
    int begin, end, place;  // place: of the new token
    Stream stream;
    typename Stream::Source k, v;

    __device__ __forceinline__ bool has_new() const { return place >= begin && place < end; }
  };
  __device__ __forceinline__ Keys prefetch_keys(int64_t position) const;

  __device__ __forceinline__ void project(const TextRow& x, const TextRow& weight) const {
    const DecodeShare& share = plan_.qkv;
    const TextRow normal = x.normalised(weight, model_, args_.eps, block_sum_);
    if (has_row_) normal.store(act_ + TextRow::text() * share.stride(), model_);
    __syncthreads();
    product(share, qkv_, 0, between_.qkv);
  }

  __device__ __forceinline__ void attend(Keys& keys) const;

  __device__ __forceinline__ void project_heads() const {
    const Place place(plan_.o);
    if (!place.has_work) return;
    combine_parts(place);
    __syncthreads();
    product(plan_.o, o_, 1, between_.o);
  }

  // Returns h, the residual stream after attention: the thread's part of its row.
  __device__ __forceinline__ TextRow gate(const TextRow& x, const TextRow& post, const TextRow& pre) const {
    const DecodeShare& share = plan_.gate_up;
    TextRow y;
    if (has_row_) y = slices(plan_.o, between_.o);
    const TextRow h = x.plus(y.normalised(post, model_, args_.eps, block_sum_));
    const TextRow normal = h.normalised(pre, model_, args_.eps, block_sum_);
    if (has_row_) normal.store(act_ + TextRow::text() * share.stride(), model_);
    __syncthreads();
    const Place place(share);
    if (!place.has_work) return h;
    ptx::barrier_wait(barriers_[2], 0);
    multiply(share, place.columns, gate_up_, act_, sums_);
    for (int i = threadIdx.x; i < share.tiles / 2 * kRows * kBatch; i += kThreads) {
      const int text = i % kBatch, row = i / kBatch, at = place.first_row / 2 + row;
      if (text >= batch_ || at >= args_.intermediate) continue;
      const int tile_row = row / kRows * 2 * kRows + row % kRows;
      const float g = sum_of_warps(share.tiles, sums_, tile_row, text);
      const float u = sum_of_warps(share.tiles, sums_, tile_row + kRows, text);
      static_cast<T*>(between_.active)[text * args_.intermediate + at] = from_float<T>(gelu_of(g) * u);
    }
    return h;
  }

  __device__ __forceinline__ void down() const {
    const DecodeShare& share = plan_.down;
    const Place place(share);
    if (!place.has_work) return;
    if (warp() < batch_) {
      const T* from = as<T>(between_.active) + warp() * args_.intermediate + place.first_column;
      for (int c = lane() * 8; c < place.columns; c += kWarp * 8)
        store_vector(act_ + warp() * share.stride() + c, load_vector<8>(from + c));
    }
    __syncthreads();
    product(share, down_, 3, between_.down);
  }

  __device__ __forceinline__ void finish(const TextRow& h, const TextRow& weight) const {
    const bool is_mine = TextRow::text() == static_cast<int>(blockIdx.x);
    TextRow y;
    if (is_mine) y = slices(plan_.down, between_.down);
    y = h.plus(y.normalised(weight, model_, args_.eps, block_sum_));
    if (is_mine) y.store(static_cast<T*>(args_.y) + TextRow::text() * model_, model_);
  }

  // The thread's part of a vector of D numbers.
  __device__ __forceinline__ TextRow parameter(const void* vector) const {
    return has_row_ ? TextRow::load(as<T>(vector), model_) : TextRow{};
  }
  __device__ __forceinline__ TextRow residual() const { return parameter(as<T>(args_.x) + TextRow::text() * model_); }

 private:
  static constexpr int kStride = kD + kDecodePad;  // of q_

  template <class U>
  static __device__ __forceinline__ const U* as(const void* pointer) {
    return static_cast<const U*>(pointer);
  }
  static __device__ __forceinline__ int warp() { return threadIdx.x / kWarp; }
  static __device__ __forceinline__ int lane() { return threadIdx.x % kWarp; }

  // The activations in act_ times a weight, to (slices, B, rows).
  __device__ __forceinline__ void product(const DecodeShare& share, const T* weights, int barrier, float* to) const {
    const Place place(share);
    if (!place.has_work) return;
    ptx::barrier_wait(barriers_[barrier], 0);
    multiply(share, place.columns, weights, act_, sums_);
    const int rows = share.tiles * kRows;
    for (int i = threadIdx.x; i < rows * batch_; i += kThreads) {
      const int text = kOneText ? 0 : i / rows, row = kOneText ? i : i % rows;
      if (place.first_row + row < share.rows)
        to[(place.slice * batch_ + text) * share.rows + place.first_row + row] =
            sum_of_warps(share.tiles, sums_, row, text);
    }
  }

  __device__ __forceinline__ TextRow slices(const DecodeShare& share, const float* from) const {
    return TextRow::sum(from + TextRow::text() * model_, share.slices(), int64_t{batch_} * model_, model_);
  }

  // Norm and rope of one head by a warp; store(column, values) takes neighbouring numbers.
  template <class Store>
  __device__ __forceinline__ void place_head(const float* from, const void* weight, int text, Store&& store) const {
    constexpr int kHalf = kD / 2, kPer = kHalf / kWarp;
    const int i = lane() * kPer;
    const auto both = [&](const auto* p) {
      struct {
        Vector<float, kPer> a, b;
      } pair{to_float(load_vector<kPer>(p + i)), to_float(load_vector<kPer>(p + kHalf + i))};
      return pair;
    };
    const auto x = both(from);
    const auto gain = both(as<T>(weight)), cos = both(as<T>(args_.cos) + text * args_.angle_stride),
               sin = both(as<T>(args_.sin) + text * args_.angle_stride);
    const float scale = inverse_rms<true>(static_cast<float>(args_.eps), [&](float unit) {
      float squares = 0;
#pragma unroll
      for (int j = 0; j < kPer; ++j) squares += x.a[j] * unit * (x.a[j] * unit) + x.b[j] * unit * (x.b[j] * unit);
      return warp_reduce(squares, Add{}) / kD;
    });
    Vector<float, kPer> first, second;
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const auto point = rope_point(x.a[j] * scale * (gain.a[j] + 1.0f), x.b[j] * scale * (gain.b[j] + 1.0f), cos.a[j],
                                    cos.b[j], sin.a[j], sin.b[j], false);
      first[j] = point.first;
      second[j] = point.second;
    }
    store(i, from_float<T>(first));
    store(kHalf + i, from_float<T>(second));
  }

  // The block's columns of the attention's result into act_, (B, columns), from its parts.
  __device__ __forceinline__ void combine_parts(const Place& place) const;

  const Gemma3DecodeArgs& args_;
  const DecodePlan& plan_;
  const Between& between_;
  ptx::Barrier (&barriers_)[4];
  BlockSum& block_sum_;
  const int batch_, model_;
  const bool has_row_;
  T *const qkv_, *const o_, *const gate_up_, *const down_;  // the block's weights
  Tile* const ring_;
  T *const q_, *const act_;  // (16, kStride), (8, stride of the product)
  float* const sums_;        // of the warps
};

}  // namespace rooflab::kernels::gemma3_decode
