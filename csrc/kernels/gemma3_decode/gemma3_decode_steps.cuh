// The steps of gemma3_decode's v1 except those that read keys and values: see gemma3_decode_attention.cuh.
//
// What several steps do is one loop or a function that is not inlined: a layer's code runs once in each layer, and all
// of it should stay in the instruction caches.
#pragma once

#include "kernels/attention/attention_split_tile.cuh"
#include "kernels/common/out_of_range.cuh"
#include "kernels/elementwise/functors.h"
#include "kernels/gemma3_decode/gemma3_decode_row.cuh"
#include "kernels/kv_append/kv_append.h"
#include "kernels/rope/rope.h"

namespace rooflab::kernels::gemma3_decode {

constexpr int kTeams = split_kv::kWarps;  // teams of warps that walk over keys

// Shared memory of a fixed size.
struct Fixed {
  Product qkv, o, gate_up, down;
  BlockSum::Scratch block_sum;
};

template <class T, int kD, bool kOneText>
class Decode {
 public:
  using Stream = split_kv::TileStream<T, kD>;
  using Tile = split_kv::Tile<T, kD>;
  static_assert(kTeams * Stream::kSlots * sizeof(Tile) == attention_ring_bytes(kD));

  __device__ Decode(const Gemma3DecodeArgs& args, const DecodePlan& plan, Slot* slots, unsigned char* shared,
                    Fixed& fixed)
      : args_(args),
        plan_(plan),
        fixed_(fixed),
        block_sum_(fixed.block_sum),
        slots_(slots),
        batch_(kOneText ? 1 : static_cast<int>(args.batch)),
        model_(static_cast<int>(args.model)),
        text_(kOneText ? 0 : blockIdx.x),
        eps_(static_cast<float>(args.eps)),
        position_(*args.position),
        part_(blockIdx.x % plan.parts),
        key_text_(blockIdx.x / plan.parts / static_cast<int>(args.kv_heads)),
        key_head_(blockIdx.x / plan.parts % static_cast<int>(args.kv_heads)),
        ring_(reinterpret_cast<Tile*>(shared)),
        q_(reinterpret_cast<T*>(ring_ + kTeams * Stream::kSlots)),
        act_(q_),
        sums_(reinterpret_cast<float*>(act_ + plan.activation_elements)) {
    if (threadIdx.x == 0) {
      T* weights = reinterpret_cast<T*>(shared + plan.shared_bytes - 2 * plan.weight_elements);
      fixed.qkv.place(plan.qkv, weights, 0);
      fixed.o.place(plan.o, weights += plan.qkv.elements(), 0);
      fixed.gate_up.place(plan.gate_up, weights += plan.o.elements(), args.intermediate);
      fixed.down.place(plan.down, weights += plan.gate_up.elements(), 0);
      ptx::barrier_init_fence();
      if (position_ < 0 && blockIdx.x == 0) report(args.report, out_of_range(position_));
    }
    __syncthreads();
  }

  // Starts to load the first layer's weights.
  __device__ __forceinline__ void start() const {
    const Gemma3DecodeLayer& layer = args_.layers[0];
    if (fixed_.qkv.has_work) prefetch(fixed_.qkv, as<T>(layer.qkv));
    if (fixed_.o.has_work) prefetch(fixed_.o, as<T>(layer.o));
    if (fixed_.gate_up.has_work) prefetch(fixed_.gate_up, as<T>(layer.gate_up));
    if (fixed_.down.has_work) prefetch(fixed_.down, as<T>(layer.down));
  }

  // The keys of a block, and how many of them its teams have begun to load.
  struct Keys {
    int parts;
    int begin, end, place;  // place: of the new token
    bool has_work;
    Stream stream;
    typename Stream::Source k, v;

    __device__ __forceinline__ bool has_new() const { return place >= begin && place < end; }
  };
  __device__ __forceinline__ Keys prefetch_keys(int layer) const;

  // Whether the block follows the residual stream of a text, `text_`. With one text, each block that multiplies
  // normalised rows does. With several, each text has a block, which passes the normalised rows on.
  __device__ __forceinline__ bool has_row() const {
    return kOneText ? fixed_.qkv.has_work || fixed_.gate_up.has_work : text_ < batch_;
  }
  __device__ __forceinline__ Row begin() {
    const Row x = parameter(as<T>(args_.x) + text_ * model_);
    normalise(0, false, x, parameter(args_.layers[0].input_norm));
    return x;
  }
  __device__ __forceinline__ void store(const Row& y) const {
    if (static_cast<int>(blockIdx.x) == text_ && Row::column() < model_)
      store_vector(static_cast<T*>(args_.y) + text_ * model_ + Row::column(), from_float<T>(y.values));
  }

  // norm(x) for qkv, or for gate and up, of a layer.
  __device__ __forceinline__ void normalise(int layer, bool for_mlp, const Row& x, const Row& weight) {
    const Row normal = x.normalised(weight, 1.0f / model_, eps_, block_sum_);
    const int column = Row::column();
    if constexpr (kOneText) {
      if (column < model_) store_vector(act_ + column, from_float<T>(normal.values));
      __syncthreads();
    } else if (column < model_) {
      Slot* const to = for_mlp ? between(layer).for_gate : between(layer).for_qkv;
      put_as<T>(to + (text_ * model_ + column) / 2, normal.values, number_of(layer));
    }
  }
  // The residual stream after the attention or the MLP of a layer: adds the norm of the slices that were put, and
  // normalises the sum for what comes next.
  __device__ __forceinline__ Row add(int layer, bool is_mlp, const Row& x) {
    const Gemma3DecodeLayer& own = args_.layers[layer];
    const Between between = this->between(layer);
    const int next = is_mlp ? layer + 1 : layer;
    const bool is_last = next == args_.count;
    const Row norm = parameter(is_mlp ? own.post_feedforward_norm : own.post_attention_norm);
    const Row next_norm =
        is_last ? Row{} : parameter(is_mlp ? args_.layers[next].input_norm : own.pre_feedforward_norm);
    const Row y = Row::sum((is_mlp ? between.down : between.o) + text_ * model_,
                           is_mlp ? plan_.down.slices : plan_.o.slices, batch_ * model_, model_, number_of(layer));
    const Row h = x.plus(y.normalised(norm, 1.0f / model_, eps_, block_sum_));
    if (!is_last) normalise(next, !is_mlp, h, next_norm);
    return h;
  }

  __device__ __forceinline__ void project(int layer) const {
    Product& p = fixed_.qkv;
    if (!p.has_work) return;
    if (!kOneText) load(p, between(layer).for_qkv, model_, layer);
    product(p, layer, batch_, act_, sums_, between(layer).qkv, after(layer, &Gemma3DecodeLayer::qkv));
  }

  __device__ __forceinline__ void attend(int layer, Keys& keys) const;

  __device__ __forceinline__ void project_heads(int layer, int parts) const {
    Product& p = fixed_.o;
    const int heads = static_cast<int>(args_.heads);
    if constexpr (kOneText) {
      if (!p.has_work) return;
      combine_parts(layer, 0, p.first_column, p.width, parts);
    } else {
#pragma unroll 1
      for (int head = blockIdx.x; head < batch_ * heads; head += gridDim.x)
        combine_parts(layer, head / heads, head % heads * kD, kD, parts);
      if (!p.has_work) return;
      load(p, between(layer).heads, heads * kD, layer);
    }
    product(p, layer, batch_, act_, sums_, between(layer).o, after(layer, &Gemma3DecodeLayer::o));
  }

  __device__ __forceinline__ void gate(int layer) const {
    Product& p = fixed_.gate_up;
    if (!p.has_work) return;
    if (!kOneText) load(p, between(layer).for_gate, model_, layer);
    Slot* const active = between(layer).active;
#pragma unroll 1
    for (int first = 0; first < batch_; first += kBatch) {
      if (first > 0) __syncthreads();  // the sums before have been read
      multiply(p, layer, act_ + first * p.stride, sums_);
#pragma unroll 1
      for (int i = threadIdx.x; i < p.tiles / 2 * kRows * kBatch; i += kThreads) {
        const int column = i % kBatch, text = first + column, row = i / kBatch, at = p.first_row / 2 + row;
        const int tile_row = row / kRows * 2 * kRows + row % kRows;
        const float g = sum_of_warps(p.tiles, sums_, tile_row, column);
        const float u = sum_of_warps(p.tiles, sums_, tile_row + kRows, column);
        const float value = gelu_of(g) * u, next_row = __shfl_down_sync(~0u, value, kBatch);
        if (row % 2 == 0 && text < batch_ && at < args_.intermediate)
          put_bits(active + (text * args_.intermediate + at) / 2, ptx::pack<T>(value, next_row), number_of(layer));
      }
    }
    if (const T* weight = after(layer, &Gemma3DecodeLayer::gate_up)) prefetch(p, weight);
  }

  __device__ __forceinline__ void down(int layer) const {
    Product& p = fixed_.down;
    if (!p.has_work) return;
    load(p, between(layer).active, static_cast<int>(args_.intermediate), layer);
    product(p, layer, batch_, act_, sums_, between(layer).down, after(layer, &Gemma3DecodeLayer::down));
  }

 private:
  static constexpr int kStride = kD + kDecodePad;  // of q_

  template <class U>
  static __device__ __forceinline__ const U* as(const void* pointer) {
    return static_cast<const U*>(pointer);
  }
  static __device__ __forceinline__ int warp() { return threadIdx.x / kWarp; }
  static __device__ __forceinline__ int lane() { return threadIdx.x % kWarp; }
  static __device__ __forceinline__ unsigned number_of(int layer) { return layer + 1; }  // slots begin with 0

  __device__ __forceinline__ Between between(int layer) const { return Between(slots_, plan_, number_of(layer)); }

  // The thread's part of a vector of D numbers.
  __device__ __forceinline__ Row parameter(const void* vector) const { return Row::load(as<T>(vector), model_); }

  // The columns that a product needs of rows of `row` numbers, for all texts, into act_.
  __device__ __forceinline__ void load(const Product& p, const Slot* from, int row, int layer) const {
    load_activations<kOneText>(act_, p.stride, from + p.first_column / 2, row / 2, p.width, batch_, number_of(layer));
  }

  // A weight of the layer after this one, or null.
  __device__ __forceinline__ const T* after(int layer, const void* Gemma3DecodeLayer::*weight) const {
    return layer + 1 < args_.count ? as<T>(args_.layers[layer + 1].*weight) : nullptr;
  }

  // Norm and rope of one head by a warp; store(column, values) takes neighbouring numbers.
  template <class Store>
  __device__ __forceinline__ void place_head(int layer, const Slot* from, const void* weight, int text,
                                             Store&& store) const {
    constexpr int kHalf = kD / 2, kPer = kHalf / kWarp;
    const int i = lane() * kPer;
    struct Pair {
      Vector<float, kPer> a, b;
    };
    const auto both = [&](const T* p) {
      return Pair{to_float(load_vector<kPer>(p + i)), to_float(load_vector<kPer>(p + kHalf + i))};
    };
    const Gemma3DecodeLayer& own = args_.layers[layer];
    const Pair gain = both(as<T>(weight)), cos = both(as<T>(own.cos) + text * own.angle_stride),
               sin = both(as<T>(own.sin) + text * own.angle_stride);
    Vector<float, kPer> x[2];
    get(x, from + i, kHalf, 2, number_of(layer));
    const float scale = inverse_rms_of(eps_, [&](float unit) {
      float squares = 0;
#pragma unroll
      for (int j = 0; j < kPer; ++j) squares += x[0][j] * unit * (x[0][j] * unit) + x[1][j] * unit * (x[1][j] * unit);
      return warp_reduce(squares, Add{}) * (1.0f / kD);
    });
    Vector<float, kPer> first, second;
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const auto point = rope_point(x[0][j] * scale * (gain.a[j] + 1.0f), x[1][j] * scale * (gain.b[j] + 1.0f),
                                    cos.a[j], cos.b[j], sin.a[j], sin.b[j], false);
      first[j] = point.first;
      second[j] = point.second;
    }
    store(i, from_float<T>(first));
    store(kHalf + i, from_float<T>(second));
  }

  // Columns of a text's attention, from its parts. They go into act_, or with several texts to the other blocks.
  __device__ __forceinline__ void combine_parts(int layer, int text, int first, int width, int parts) const;

  const Gemma3DecodeArgs& args_;
  const DecodePlan& plan_;
  Fixed& fixed_;
  BlockSum block_sum_;
  Slot* const slots_;
  const int batch_, model_, text_;
  const float eps_;
  const int64_t position_;
  const int part_, key_text_, key_head_;  // the keys that the block attends to
  Tile* const ring_;
  T *const q_, *const act_;  // (16, kStride), and in its place (texts, stride of the product)
  float* const sums_;        // of the warps
};

}  // namespace rooflab::kernels::gemma3_decode
