// v1: a layer's decode step in one launch. One block a multiprocessor brings its share of all weights into shared
// memory as the kernel begins, and the same blocks then take the steps one after the other; what a step leaves for the
// others lies in the L2 cache, and between two steps all blocks wait for each other:
//
//   1  norm, then rows of qkv                          each block normalises x itself
//   2  norm and rope, append, a part of the keys       as attention's v4_split_kv
//   3  the parts combined, then o                      a block has 1/8 of o's columns, and combines only these
//   4  the slices of o added, residual, norm, gate and up, GeGLU
//   5  down                                            again 1/8 of the columns
//   6  the slices of down added, norm, residual        a block a text
//
// A product is mma.sync with 16 rows of the weight and up to 8 texts, so 8 texts cost as much time as one. All sums are
// float32 in a fixed order: the same bits on every run.
#include <cooperative_groups.h>

#include "kernels/attention/attention_split_tile.cuh"
#include "kernels/elementwise/functors.h"
#include "kernels/gemma3_decode/gemma3_decode_plan.h"
#include "kernels/rms_norm/rms_norm_tile.cuh"
#include "kernels/rope/rope.h"

namespace rooflab::kernels {
namespace {

constexpr int kThreads = kDecodeWarps * kWarp, kRows = kDecodeTileRows, kBatch = kDecodeBatch;
constexpr int kTeams = split_kv::kWarps;  // of warps that go through keys

// What the steps leave for each other, in global memory.
struct Between {
  float* parts;   // (B, H, parts, D_h): sums over a part of the keys
  float* qkv;     // (B, rows of qkv)
  float* o;       // (slices, B, D)
  float* down;    // (slices, B, D)
  void* active;   // (B, I)
  float2* stats;  // (B, H, parts): maximum in base 2, and sum
};

// A row of D numbers, four neighbours a lane and turn; beyond D they are 0.
struct Row {
  static constexpr int kTurns = kDecodeMaxModel / (4 * kWarp);
  Vector<float, 4> values[kTurns];

  template <class Body>
  static __device__ __forceinline__ void for_each(int d, Body&& body) {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int column = (turn * kWarp + static_cast<int>(threadIdx.x) % kWarp) * 4;
      if (column < d) body(turn, column);
    }
  }
  template <class T>
  static __device__ __forceinline__ Row load(const T* from, int d) {
    Row row{};
    for_each(d, [&](int turn, int column) { row.values[turn] = to_float(load_vector<4>(from + column)); });
    return row;
  }
  template <class T>
  __device__ __forceinline__ void store(T* to, int d) const {
    for_each(d, [&](int turn, int column) { store_vector(to + column, from_float<T>(values[turn])); });
  }

  // norm(row) (1 + weight)
  __device__ __forceinline__ Row normalised(const Row& weight, int d, double eps) const {
    const float scale = inverse_rms<true>(static_cast<float>(eps), [&](float unit) {
      float squares = 0;
#pragma unroll
      for (const auto& vector : values)
#pragma unroll
        for (int i = 0; i < 4; ++i) squares += vector[i] * unit * (vector[i] * unit);
      return warp_reduce(squares, Add{}) / d;
    });
    Row result;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
      for (int i = 0; i < 4; ++i) result.values[turn][i] = values[turn][i] * scale * (weight.values[turn][i] + 1.0f);
    return result;
  }
  __device__ __forceinline__ Row plus(const Row& other) const {
    Row result;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
      for (int i = 0; i < 4; ++i) result.values[turn][i] = values[turn][i] + other.values[turn][i];
    return result;
  }
};

template <class T, int kD>
class Decode {
 public:
  __device__ Decode(const Gemma3DecodeArgs& args, const DecodePlan& plan, const Between& between, unsigned char* shared)
      : args_(args),
        plan_(plan),
        between_(between),
        batch_(static_cast<int>(args.batch)),
        model_(static_cast<int>(args.model)),
        parts_(plan.parts),
        qkv_(reinterpret_cast<T*>(shared)),
        o_(qkv_ + plan.qkv.elements()),
        gate_up_(o_ + plan.o.elements()),
        down_(gate_up_ + plan.gate_up.elements()),
        step_(reinterpret_cast<unsigned char*>(down_ + plan.down.elements())),
        h_(reinterpret_cast<float*>(step_)),
        rows_(h_ + kBatch * model_),
        free_(reinterpret_cast<unsigned char*>(rows_ + kBatch * model_)) {}

  __device__ __forceinline__ void bring_weights() const {
    bring(plan_.qkv, qkv_, args_.qkv, 0);
    bring(plan_.o, o_, args_.o, 0);
    bring(plan_.gate_up, gate_up_, args_.gate_up, static_cast<int>(args_.intermediate));
    bring(plan_.down, down_, args_.down, 0);
  }

  __device__ __forceinline__ void project() const {
    if (!has_work(plan_.qkv)) return;
    T* act = activations();
    if (warp() < batch_) {
      const Row x = Row::load(as<T>(args_.x) + warp() * model_, model_);
      const Row weight = Row::load(as<T>(args_.input_norm), model_);
      x.normalised(weight, model_, args_.eps).store(act + warp() * plan_.qkv.stride(), model_);
    }
    ptx::copy_async_wait<3>();
    __syncthreads();
    const float* sums = multiply(plan_.qkv, qkv_, act);
    write_sums(plan_.qkv, sums, between_.qkv);
  }

  __device__ __forceinline__ void attend() const;

  __device__ __forceinline__ void project_heads() const {
    if (!has_work(plan_.o)) return;
    combine_parts(plan_.o);
    ptx::copy_async_wait<0>();
    __syncthreads();
    write_sums(plan_.o, multiply(plan_.o, o_, activations()), between_.o);
  }

  __device__ __forceinline__ void gate() const {
    // All blocks, those without rows of gate too: each keeps h.
    T* act = activations();
    Row x, post, pre;
    if (warp() < batch_) {
      x = Row::load(as<T>(args_.x) + warp() * model_, model_);
      post = Row::load(as<T>(args_.post_attention_norm), model_);
      pre = Row::load(as<T>(args_.pre_feedforward_norm), model_);
    }
    add_slices(plan_.o.slices, between_.o, 0, batch_);
    __syncthreads();
    if (warp() < batch_) {
      const Row y = Row::load(rows_ + warp() * model_, model_);
      const Row h = x.plus(y.normalised(post, model_, args_.eps));
      h.store(h_ + warp() * model_, model_);
      h.normalised(pre, model_, args_.eps).store(act + warp() * plan_.gate_up.stride(), model_);
    }
    __syncthreads();
    if (!has_work(plan_.gate_up)) return;
    const float* sums = multiply(plan_.gate_up, gate_up_, act);
    const int first = static_cast<int>(blockIdx.x) * plan_.gate_up.tiles / 2 * kRows;
    for (int i = threadIdx.x; i < plan_.gate_up.tiles / 2 * kRows * kBatch; i += kThreads) {
      const int text = i % kBatch, row = i / kBatch, pair = row / kRows, at = first + row;
      if (text >= batch_ || at >= args_.intermediate) continue;
      const int tile_row = 2 * pair * kRows + row % kRows;
      const float g = warp_sum(plan_.gate_up, sums, tile_row, text);
      const float u = warp_sum(plan_.gate_up, sums, tile_row + kRows, text);
      static_cast<T*>(between_.active)[text * args_.intermediate + at] = from_float<T>(gelu_of(g) * u);
    }
  }

  __device__ __forceinline__ void down() const {
    if (!has_work(plan_.down)) return;
    const DecodeShare& share = plan_.down;
    const int first = slice(share) * share.slice_columns, columns = columns_of(share);
    T* act = activations();
    if (warp() < batch_) {
      const T* from = as<T>(between_.active) + warp() * args_.intermediate + first;
      for (int c = lane() * 8; c < columns; c += kWarp * 8)
        store_vector(act + warp() * share.stride() + c, load_vector<8>(from + c));
    }
    __syncthreads();
    write_sums(share, multiply(share, down_, act), between_.down);
  }

  __device__ __forceinline__ void finish() const {
    const int text = blockIdx.x;
    if (text >= batch_) return;
    Row weight;
    if (warp() == 0) weight = Row::load(as<T>(args_.post_feedforward_norm), model_);
    add_slices(plan_.down.slices, between_.down, text, text + 1);
    __syncthreads();
    if (warp() > 0) return;
    const Row y = Row::load(rows_ + text * model_, model_).normalised(weight, model_, args_.eps);
    y.plus(Row::load(h_ + text * model_, model_)).store(static_cast<T*>(args_.y) + text * model_, model_);
  }

 private:
  template <class U>
  static __device__ __forceinline__ const U* as(const void* pointer) {
    return static_cast<const U*>(pointer);
  }
  static __device__ __forceinline__ int warp() { return threadIdx.x / kWarp; }
  static __device__ __forceinline__ int lane() { return threadIdx.x % kWarp; }

  // A block's place in a product: consecutive blocks have the slices of one group of rows.
  static __device__ __forceinline__ bool has_work(const DecodeShare& share) {
    return static_cast<int>(blockIdx.x) < share.blocks();
  }
  static __device__ __forceinline__ int slice(const DecodeShare& share) { return blockIdx.x % share.slices; }
  static __device__ __forceinline__ int group(const DecodeShare& share) { return blockIdx.x / share.slices; }
  static __device__ __forceinline__ int columns_of(const DecodeShare& share) {
    return min(share.slice_columns, share.columns - slice(share) * share.slice_columns);
  }

  // The activations of a product, (8, stride), and behind them the warps' sums.
  __device__ __forceinline__ T* activations() const { return reinterpret_cast<T*>(free_); }

  // With a `second` row, tiles come in pairs: one from the rows on, one from `second` on.
  __device__ __forceinline__ void bring(const DecodeShare& share, T* to, const void* weight, int second) const {
    if (has_work(share)) {
      const int first_column = slice(share) * share.slice_columns, columns = columns_of(share);
      const int end = second ? second : share.rows;
      for (int r = warp(); r < share.tiles * kRows; r += kDecodeWarps) {
        const int tile = r / kRows, of_block = second ? tile / 2 : tile;
        const int row = (group(share) * (second ? share.tiles / 2 : share.tiles) + of_block) * kRows + r % kRows;
        const bool inside = row < end;
        const int64_t from = inside ? row + (second && tile % 2 ? second : 0) : 0;
        const T* source = as<T>(weight) + from * share.columns + first_column;
        for (int c = lane() * 8; c < columns; c += kWarp * 8)
          ptx::copy_async<16>(to + r * share.stride() + c, source + c, inside ? 16 : 0);
      }
    }
    ptx::copy_async_commit();
  }

  // Each warp's sums over its steps of 16 columns, (warps, tiles, 16, 8), once all are there.
  __device__ __forceinline__ float* multiply(const DecodeShare& share, const T* weights, const T* act) const {
    float acc[kDecodeMaxTiles][4]{};
    const int steps = columns_of(share) / kRows, stride = share.stride();
    for (int step = warp(); step < steps; step += kDecodeWarps) {
      // Texts that are not there have what lies in memory: it stays in columns of the tile that nobody reads.
      const T* b = act + lane() / 4 * stride + step * kRows + lane() % 4 * 2;
      const uint32_t b0 = *reinterpret_cast<const uint32_t*>(b), b1 = *reinterpret_cast<const uint32_t*>(b + 8);
#pragma unroll
      for (int tile = 0; tile < kDecodeMaxTiles; ++tile) {
        if (tile >= share.tiles) break;
        uint32_t a[4];
        ptx::load_matrices<false>(a, weights + (tile * kRows + lane() % 16) * stride + step * kRows + lane() / 16 * 8);
        ptx::mma_m16n8k16<T>(acc[tile], a, b0, b1);
      }
    }
    float* sums = reinterpret_cast<float*>(activations() + kBatch * stride);
#pragma unroll
    for (int tile = 0; tile < kDecodeMaxTiles; ++tile) {
      if (tile >= share.tiles) break;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float* to = sums + ((warp() * share.tiles + tile) * kRows + lane() / 4 + 8 * r) * kBatch + lane() % 4 * 2;
        *reinterpret_cast<float2*>(to) = make_float2(acc[tile][2 * r], acc[tile][2 * r + 1]);
      }
    }
    __syncthreads();
    return sums;
  }

  static __device__ __forceinline__ float warp_sum(const DecodeShare& share, const float* sums, int row, int text) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kDecodeWarps; ++w) sum += sums[(w * share.tiles * kRows + row) * kBatch + text];
    return sum;
  }

  // to (slices, B, rows)
  __device__ __forceinline__ void write_sums(const DecodeShare& share, const float* sums, float* to) const {
    const int first = group(share) * share.tiles * kRows;
    for (int i = threadIdx.x; i < share.tiles * kRows * kBatch; i += kThreads) {
      const int text = i / (share.tiles * kRows), row = i % (share.tiles * kRows);
      if (text < batch_ && first + row < share.rows)
        to[(slice(share) * batch_ + text) * share.rows + first + row] = warp_sum(share, sums, row, text);
    }
  }

  // rows_ of the texts [begin, end) = the sums over slices of from (slices, B, D)
  __device__ __forceinline__ void add_slices(int slices, const float* from, int begin, int end) const {
    const int64_t slice_size = int64_t{batch_} * model_;
    for (int i = begin * model_ + threadIdx.x * 4; i < end * model_; i += kThreads * 4) {
      Vector<float, 4> sum{};
#pragma unroll 8
      for (int s = 0; s < slices; ++s) {
        const auto more = load_vector<4>(from + s * slice_size + i);
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[j] += more[j];
      }
      store_vector(rows_ + i, sum);
    }
  }

  // Norm and rope of one head by a warp.
  __device__ __forceinline__ void place_head(const float* from, const void* weight, int text, T* to) const {
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
    store_vector(to + i, from_float<T>(first));
    store_vector(to + kHalf + i, from_float<T>(second));
  }

  // The block's columns of the attention's result, (B, columns), from its parts.
  __device__ __forceinline__ void combine_parts(const DecodeShare& share) const {
    const int first = slice(share) * share.slice_columns, columns = columns_of(share), wide = columns / 4;
    const int first_head = first / kD, heads = (first + columns - 1) / kD + 1 - first_head;
    const int all_heads = static_cast<int>(args_.heads);
    T* act = activations();
    float4* layer_sums = reinterpret_cast<float4*>(act + kBatch * share.stride());
    float* weights = reinterpret_cast<float*>(layer_sums + kThreads);
    const int items = batch_ * wide, side = min(items, kThreads), layers = kThreads / side;
    const int layer = threadIdx.x / side;
    constexpr int kFetch = 8;
    Vector<float, 4> fetched[kFetch];
    const auto place = [&](int item) {
      const int text = item / wide, column = first + item % wide * 4;
      return between_.parts + (int64_t{text * all_heads + column / kD} * parts_) * kD + column % kD;
    };
    const auto fetch = [&](int item, int part) {
      const float* from = place(item);
#pragma unroll
      for (int i = 0; i < kFetch; ++i) {
        const int p = part + i * layers;
        fetched[i] = p < parts_ ? load_vector<4>(from + p * kD) : Vector<float, 4>{};
      }
    };
    if (layer < layers) fetch(threadIdx.x % side, layer);  // under way while the weights are found

    for (int i = warp(); i < batch_ * heads; i += kDecodeWarps) {
      const float2* stats = between_.stats + (i / heads * all_heads + first_head + i % heads) * parts_;
      constexpr int kEach = kDecodeMaxParts / kWarp;
      float2 stat[kEach];
      float max = -INFINITY;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int part = j * kWarp + lane();
        stat[j] = part < parts_ ? stats[part] : make_float2(-INFINITY, 0.0f);
        max = fmaxf(max, stat[j].x);
      }
      max = warp_reduce(max, Larger{});
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        stat[j].x = rescale(stat[j].x, max);
        sum += stat[j].x * stat[j].y;
      }
      sum = warp_reduce(sum, Add{});
      const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (j * kWarp + lane() < parts_) weights[i * kDecodeMaxParts + j * kWarp + lane()] = stat[j].x * inverse;
    }
    __syncthreads();

    for (int begin = 0; begin < items; begin += side) {
      const int item = begin + threadIdx.x % side;
      Vector<float, 4> sum{};
      if (layer < layers && item < items) {
        const int column = first + item % wide * 4;
        const float* weight = weights + (item / wide * heads + column / kD - first_head) * kDecodeMaxParts;
        for (int part = layer; part < parts_; part += kFetch * layers) {
          if (begin > 0 || part > layer) fetch(item, part);
#pragma unroll
          for (int i = 0; i < kFetch; ++i) {
            const int p = part + i * layers;
            if (p >= parts_) continue;
#pragma unroll
            for (int j = 0; j < 4; ++j) sum[j] += weight[p] * fetched[i][j];
          }
        }
      }
      if (layers > 1) {
        layer_sums[threadIdx.x] = make_float4(sum[0], sum[1], sum[2], sum[3]);
        __syncthreads();
        for (int l = 1; layer == 0 && l < layers; ++l) {
          const float4 more = layer_sums[l * side + threadIdx.x];
          sum[0] += more.x, sum[1] += more.y, sum[2] += more.z, sum[3] += more.w;
        }
      }
      if (layer == 0 && item < items)
        store_vector(act + item / wide * share.stride() + item % wide * 4, from_float<T>(sum));
    }
  }

  const Gemma3DecodeArgs& args_;
  const DecodePlan& plan_;
  const Between& between_;
  const int batch_, model_, parts_;
  T *const qkv_, *const o_, *const gate_up_, *const down_;  // the block's weights
  unsigned char* const step_;                               // memory of the step
  float *const h_, *const rows_;                            // (8, D); not while keys are read
  unsigned char* const free_;
};

template <class T, int kD>
__device__ __forceinline__ void Decode<T, kD>::attend() const {
  using namespace split_kv;
  const int kv_heads = static_cast<int>(args_.kv_heads), group = static_cast<int>(args_.heads) / kv_heads;
  const int item = blockIdx.x / parts_, part = blockIdx.x % parts_;
  const int text = item / kv_heads, kv_head = item % kv_heads;
  if (text >= batch_) return;
  const int64_t position = *args_.position;
  const int held = position < 0 ? 0 : static_cast<int>(min(position + 1, args_.capacity));
  const int steps = (held + kStepKeys - 1) / kStepKeys, part_keys = (steps + parts_ - 1) / parts_ * kStepKeys;
  const int part_begin = min(part * part_keys, held), part_end = min(part_begin + part_keys, held);

  constexpr int kRing = kTeams * TileStream<T, kD>::kSlots;
  auto* ring = reinterpret_cast<Tile<T, kD>*>(step_);
  T* q_rows = reinterpret_cast<T*>(ring + kRing);
  constexpr int kStride = kD + kDecodePad;
  const int wide = static_cast<int>(args_.heads) * kD, narrow = kv_heads * kD;
  const float* projected = between_.qkv + text * (wide + 2 * narrow);
  T* const k_cache = static_cast<T*>(args_.k_cache) + text * args_.k_strides.batch + kv_head * args_.k_strides.head;
  T* const v_cache = static_cast<T*>(args_.v_cache) + text * args_.v_strides.batch + kv_head * args_.v_strides.head;

  // The new token comes into the cache before the part that has its place is read.
  const int place = position < 0 ? -1 : static_cast<int>(position % args_.capacity);
  const bool has_new = place >= part_begin && place < part_end;
  for (int row = warp(); row < kRows + 2; row += kDecodeWarps) {
    if (row < group) {
      place_head(projected + (kv_head * group + row) * kD, args_.q_norm, text, q_rows + row * kStride);
    } else if (row < kRows) {
      for (int c = lane(); c < kD; c += kWarp) q_rows[row * kStride + c] = from_float<T>(0.0f);
    } else if (has_new && row == kRows) {
      place_head(projected + wide + kv_head * kD, args_.k_norm, text, k_cache + place * args_.k_strides.token);
    } else if (has_new) {
      const float* from = projected + wide + narrow + kv_head * kD;
      for (int c = lane(); c < kD; c += kWarp) v_cache[place * args_.v_strides.token + c] = from_float<T>(from[c]);
    }
  }
  __syncthreads();

  WarpState<T, kD> state;
  if (warp() < kTeams) {
    SplitPlan split{};
    split.teams = kTeams;
    split.row_warps = 1;
    TileStream<T, kD> stream(ring + warp() * TileStream<T, kD>::kSlots, split, 0, kD);
    int key = part_begin + warp() * kStepKeys;
    auto k = stream.source(k_cache + key * args_.k_strides.token, args_.k_strides.token, part_end - key);
    auto v = stream.source(v_cache + key * args_.v_strides.token, args_.v_strides.token, part_end - key);
    stream.start(k, v);
    uint32_t q[kD / 16][4];
#pragma unroll
    for (int j = 0; j < kD / 16; ++j)
      ptx::load_matrices<false>(q[j], q_rows + lane() % 16 * kStride + j * 16 + lane() / 16 * 8);
    const float scale = static_cast<float>(args_.scale) * kLog2E;
    const int first_key[2] = {0, 0}, last_key[2] = {part_end - 1, part_end - 1};
    for (int turn = part_begin; turn < part_end; turn += kTeams * kStepKeys, key += kTeams * kStepKeys) {
      float score[2][4];
      const Tile<T, kD>& k_tile = stream.next(k);
      if (key < part_end) {
        split_kv::multiply<T, kD>(score, q, k_tile, scale);
        if (key + kStepKeys > part_end) hide(score, key, first_key, last_key);
      }
      const Tile<T, kD>& v_tile = stream.next(v);
      if (key < part_end) state.add_step(score, v_tile);
    }
    ptx::copy_async_wait<0>();
  }
  __syncthreads();

  Found<kD>& found = *reinterpret_cast<Found<kD>*>(ring);
  static_assert(sizeof(found) <= kRing * sizeof(Tile<T, kD>));
  if (warp() < kTeams) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = r * 8 + lane() / 4;
      state.sum[r] = warp_reduce(state.sum[r], Add{}, 4);
      if (row >= group) continue;
      if (lane() % 4 == 0) {
        found.max[warp()][row] = state.max[r];
        found.sum[warp()][row] = state.sum[r];
      }
#pragma unroll
      for (int j = 0; j < kD / 8; ++j)
        *reinterpret_cast<float2*>(&found.out[warp()][row][j * 8 + lane() % 4 * 2]) =
            make_float2(state.out[j][2 * r], state.out[j][2 * r + 1]);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < group * kD / 4; i += ::rooflab::kernels::kThreads) {
    const int row = i / (kD / 4), column = i % (kD / 4) * 4;
    float max = -INFINITY, sum = 0;
    float4 sums{};
    for (int w = 0; w < kTeams; ++w) max = fmaxf(max, found.max[w][row]);
    for (int w = 0; w < kTeams; ++w) {
      const float weight = rescale(found.max[w][row], max);
      sum += weight * found.sum[w][row];
      add_weighted(sums, weight, *reinterpret_cast<const float4*>(&found.out[w][row][column]));
    }
    const int64_t index = (text * args_.heads + kv_head * group + row) * parts_ + part;
    *reinterpret_cast<float4*>(between_.parts + index * kD + column) = sums;
    if (column == 0) between_.stats[index] = make_float2(max, sum);
  }
}

template <class T, int kD>
__global__ void __launch_bounds__(kThreads, 1)
    gemma3_decode_cuda_v1_one_launch_kernel(const __grid_constant__ Gemma3DecodeArgs args,
                                            const __grid_constant__ DecodePlan plan,
                                            const __grid_constant__ Between between) {
#ifdef ROOFLAB_SM80
  extern __shared__ __align__(1024) unsigned char shared[];
  const auto all_blocks = cooperative_groups::this_grid();
  const Decode<T, kD> decode(args, plan, between, shared);
  decode.bring_weights();
  decode.project();
  all_blocks.sync();
  decode.attend();
  all_blocks.sync();
  decode.project_heads();
  all_blocks.sync();
  decode.gate();
  all_blocks.sync();
  decode.down();
  all_blocks.sync();
  decode.finish();
#endif
}

Between between(const DecodePlan& plan, Queue& queue) {
  float* next = static_cast<float*>(queue.scratch_bytes(plan.scratch_bytes()));
  const auto take = [&](int64_t floats) { return std::exchange(next, next + floats); };
  Between result{};
  result.parts = take(plan.part_floats);
  result.qkv = take(plan.qkv_floats);
  result.o = take(plan.o_floats);
  result.down = take(plan.down_floats);
  result.active = take(plan.active_elements / 2);
  result.stats = reinterpret_cast<float2*>(take(plan.stat_floats));
  return result;
}

template <class T>
void launch(const Gemma3DecodeArgs& args, Queue& queue) {
  const DecodePlan plan = decode_plan(args, queue.target());
  const auto start = [&](auto kernel) {
    queue.launch(kernel, {.grid = plan.blocks, .block = kThreads, .shared_bytes = plan.shared_bytes, .together = true},
                 args, plan, between(plan, queue));
  };
  if (args.head_size == 64) return start(gemma3_decode_cuda_v1_one_launch_kernel<T, 64>);
  if (args.head_size == 128) return start(gemma3_decode_cuda_v1_one_launch_kernel<T, 128>);
  start(gemma3_decode_cuda_v1_one_launch_kernel<T, 256>);
}

}  // namespace

void gemma3_decode_cuda_v1_one_launch(const Gemma3DecodeArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
