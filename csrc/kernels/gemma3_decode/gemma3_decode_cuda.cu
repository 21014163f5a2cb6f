// v1: a layer's decode step in one launch. Each block (one a multiprocessor) orders its share of the weights, and its
// first keys and values, into shared memory some steps before they are needed. The blocks take the steps together; what
// a step leaves for the others lies in the L2 cache, and after each all blocks wait for each other:
//
//   1  norm, then rows of qkv                          each block normalises x itself
//   2  norm and rope, append, a part of the keys       as attention's v4_split_kv
//   3  the parts combined, then o                      a block has 1/8 of o's columns, and combines only these
//   4  the slices of o added, residual, norm, gate and up, GeGLU
//   5  down                                            again 1/8 of the columns
//   6  the slices of down added, norm, residual        a block a text
//
// A product is mma.sync with 16 rows of the weight and up to 8 texts, so 8 texts cost it no more than one. All sums are
// float32 in a fixed order: the same bits on every run.
#include <cooperative_groups.h>

#include <utility>

#include "kernels/attention/attention_split_tile.cuh"
#include "kernels/common/ptx_hopper.cuh"
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
  float* parts;       // (B, H, parts, D_h): sums over a part of the keys
  float* qkv;         // (B, rows of qkv)
  float* o;           // (slices, B, D)
  float* down;        // (slices, B, D)
  void* active;       // (B, I)
  float2* stats;      // (B, H, parts): maximum in base 2, and sum
  unsigned* arrived;  // blocks that have come to each meeting
};

// Where all blocks wait for each other, once. What does not depend on the others belongs between arrive() and wait().
// It takes 0.9 us, cooperative groups' barrier 1.05; that one comes first, so that the counters have been set to 0.
class Meeting {
 public:
  __device__ __forceinline__ explicit Meeting(unsigned* arrived) : arrived_(arrived) {}

  __device__ __forceinline__ void arrive() const {
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived_) : "memory");
  }
  __device__ __forceinline__ void wait() const {
    if (threadIdx.x == 0) {
      unsigned seen;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived_) : "memory");
      } while (seen < gridDim.x);
    }
    __syncthreads();
  }

 private:
  unsigned* const arrived_;
};

// The sum over the block of one number a thread, the same in all threads.
class BlockSum {
 public:
  struct Scratch {
    float of_warp[2][kDecodeWarps];
  };
  __device__ explicit BlockSum(Scratch& scratch) : scratch_(scratch) {}

  __device__ __forceinline__ float operator()(float value) {
    float(&of_warp)[kDecodeWarps] = scratch_.of_warp[half_];
    half_ ^= 1;  // none can overwrite what a slower thread still reads from the last
    value = warp_reduce(value, Add{});
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kDecodeWarps; ++w) sum += of_warp[w];
    return sum;
  }

 private:
  Scratch& scratch_;
  int half_ = 0;
};

// A row of D numbers, in the registers of a warp, or of the block where there is one text: four neighbours a thread and
// turn. Beyond D they are 0.
template <bool kOneText>
struct Row {
  static constexpr int kShared = kOneText ? kThreads : kWarp;  // threads that share a row
  static constexpr int kTurns = kDecodeMaxModel / (4 * kShared);
  Vector<float, 4> values[kTurns]{};

  static __device__ __forceinline__ int text() { return kOneText ? 0 : threadIdx.x / kWarp; }

  template <class Body>
  static __device__ __forceinline__ void for_each(int d, Body&& body) {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int column = (turn * kShared + static_cast<int>(threadIdx.x) % kShared) * 4;
      if (column < d) body(turn, column);
    }
  }
  template <class T>
  static __device__ __forceinline__ Row load(const T* from, int d) {
    Row row;
    for_each(d, [&](int turn, int column) { row.values[turn] = to_float(load_vector<4>(from + column)); });
    return row;
  }
  // The sum of rows that lie `stride` apart.
  static __device__ __forceinline__ Row sum(const float* from, int rows, int64_t stride, int d) {
    Row total;
#pragma unroll 8 / kTurns> 1 ? 8 / kTurns : 2
    for (int r = 0; r < rows; ++r) {
      const Row row = load(from + r * stride, d);
      total = total.plus(row);
    }
    return total;
  }
  template <class T>
  __device__ __forceinline__ void store(T* to, int d) const {
    for_each(d, [&](int turn, int column) { store_vector(to + column, from_float<T>(values[turn])); });
  }

  // norm(row) (1 + weight)
  __device__ __forceinline__ Row normalised(const Row& weight, int d, double eps, BlockSum& block_sum) const {
    const float scale = inverse_rms<!kOneText>(static_cast<float>(eps), [&](float unit) {
      float squares = 0;
#pragma unroll
      for (const auto& vector : values)
#pragma unroll
        for (int i = 0; i < 4; ++i) squares += vector[i] * unit * (vector[i] * unit);
      return (kOneText ? block_sum(squares) : warp_reduce(squares, Add{})) / d;
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

// A block's place in a product: consecutive blocks have the slices of one group of rows.
struct Place {
  bool has_work;
  int slice, group, first_column, columns, first_row;

  __device__ __forceinline__ explicit Place(const DecodeShare& share)
      : has_work(static_cast<int>(blockIdx.x) < share.blocks()),
        slice(blockIdx.x & (share.slices() - 1)),
        group(blockIdx.x >> share.slices_log2),
        first_column(slice * share.slice_columns),
        columns(min(share.slice_columns, share.columns - first_column)),
        first_row(group * share.tiles * kRows) {}
};

// Orders a block's part of a weight into shared memory, each row by one thread. Lanes of a warp take turns there, so
// all warps from `first_warp` on take part. With a `second` row, tiles come in pairs: one from the rows on, one from
// `second` on. Rows behind the last are left as they are: their sums go nowhere.
template <class T>
__device__ __forceinline__ void bring(const DecodeShare& share, const T* weight, int second, T* to,
                                      ptx::Barrier& barrier, int first_warp) {
  const Place place(share);
  if (!place.has_work) return;
  const int sides = second ? 2 : 1, bytes = place.columns * static_cast<int>(sizeof(T));
  const int rows = share.tiles * kRows / sides, first = place.group * rows;
  const int inside = min(rows, (second ? second : share.rows) - first);
  const int warp = threadIdx.x / kWarp - first_warp, lane = threadIdx.x % kWarp, warps = kDecodeWarps - first_warp;
  if (warp == 0 && lane == 0) ptx::barrier_expect(barrier, sides * inside * bytes);
  for (int row = warp + warps * lane; row < sides * rows; row += warps * kWarp) {
    const int side = row >= rows, r = row - side * rows, tile = r / kRows * sides + side;
    const T* from = weight + int64_t{side * second + first + r} * share.columns + place.first_column;
    if (r < inside) ptx::copy_row(to + (tile * kRows + r % kRows) * share.stride(), from, bytes, barrier);
  }
}

// Each warp's sums over its steps of 16 columns, (warps, tiles, 16, 8), once all are there.
template <int kTiles, class T>
__device__ __noinline__ void multiply(int columns, int stride, const T* weights, const T* activations, float* sums) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  float acc[kTiles][4]{};
#pragma unroll 2
  for (int step = warp; step < columns / kRows; step += kDecodeWarps) {
    // Texts that are not there have what lies in memory: it stays in columns of the tile that nobody reads.
    const T* b = activations + lane / 4 * stride + step * kRows + lane % 4 * 2;
    const uint32_t b0 = *reinterpret_cast<const uint32_t*>(b), b1 = *reinterpret_cast<const uint32_t*>(b + 8);
    uint32_t a[kTiles][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
      ptx::load_matrices<false>(a[tile], weights + (tile * kRows + lane % 16) * stride + step * kRows + lane / 16 * 8);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) ptx::mma_m16n8k16<T>(acc[tile], a[tile], b0, b1);
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float* to = sums + ((warp * kTiles + tile) * kRows + lane / 4 + 8 * r) * kBatch + lane % 4 * 2;
      *reinterpret_cast<float2*>(to) = make_float2(acc[tile][2 * r], acc[tile][2 * r + 1]);
    }
  __syncthreads();
}

template <class T>
__device__ __forceinline__ void multiply(const DecodeShare& share, int columns, const T* weights, const T* activations,
                                         float* sums) {
  switch (share.tiles) {
    case 1: return multiply<1>(columns, share.stride(), weights, activations, sums);
    case 2: return multiply<2>(columns, share.stride(), weights, activations, sums);
    case 3: return multiply<3>(columns, share.stride(), weights, activations, sums);
    default: return multiply<kDecodeMaxTiles>(columns, share.stride(), weights, activations, sums);
  }
}

__device__ __forceinline__ float sum_of_warps(int tiles, const float* sums, int row, int text) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kDecodeWarps; ++w) sum += sums[(w * tiles * kRows + row) * kBatch + text];
  return sum;
}

template <class T, int kD, bool kOneText>
class Decode {
 public:
  using TextRow = Row<kOneText>;
  using Stream = split_kv::TileStream<T, kD>;
  using Tile = split_kv::Tile<T, kD>;

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

  // Weights are brought by the warps behind the teams, which order no keys, at times when the block waits.
  static __device__ __forceinline__ bool brings() { return threadIdx.x / kWarp >= kTeams; }
  __device__ __forceinline__ void bring_qkv() const {
    if (threadIdx.x == kTeams * kWarp) {
      for (auto& barrier : barriers_) ptx::barrier_init(barrier, 1);
      ptx::barrier_init_fence();
    }
    ptx::named_barrier(1, kThreads - kTeams * kWarp);
    bring(plan_.qkv, as<T>(args_.qkv), 0, qkv_, barriers_[0], kTeams);
  }
  __device__ __forceinline__ void bring_o() const { bring(plan_.o, as<T>(args_.o), 0, o_, barriers_[1], kTeams); }
  __device__ __forceinline__ void bring_gate_up() const {
    const int rows_of_gate = static_cast<int>(args_.intermediate);
    bring(plan_.gate_up, as<T>(args_.gate_up), rows_of_gate, gate_up_, barriers_[2], kTeams);
  }
  __device__ __forceinline__ void bring_down() const {
    bring(plan_.down, as<T>(args_.down), 0, down_, barriers_[3], kTeams);
  }

  // The keys of a block, and how far its teams have ordered them.
  struct Keys {
    int text, kv_head, part;
    T *k_cache, *v_cache;
    int begin, end, place;  // place: of the new token
    Stream stream;
    typename Stream::Source k, v;

    __device__ __forceinline__ bool has_new() const { return place >= begin && place < end; }
  };
  __device__ __forceinline__ Keys order_keys(int64_t position) const;

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

  // Gives h of the thread's row.
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

  // A vector of D numbers, or the row of x: what the thread has of it.
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

template <class T, int kD, bool kOneText>
__device__ __forceinline__ auto Decode<T, kD, kOneText>::order_keys(int64_t position) const -> Keys {
  using split_kv::kStepKeys;
  const unsigned parts = plan_.parts, kv_heads = static_cast<unsigned>(args_.kv_heads), item = blockIdx.x / parts;
  const int text = item / kv_heads, kv_head = item % kv_heads, part = blockIdx.x % parts;
  const bool has_work = text < batch_ && position >= 0;
  const int held = has_work ? static_cast<int>(min(position + 1, args_.capacity)) : 0;
  const int steps = (held + kStepKeys - 1) / kStepKeys;
  const int part_keys = static_cast<int>((steps + parts - 1) / parts) * kStepKeys;
  const int begin = min(part * part_keys, held), end = min(begin + part_keys, held);
  const int64_t around = position < args_.capacity ? position : position % args_.capacity;
  const int place = has_work ? static_cast<int>(around) : -1;
  SplitPlan split{};
  split.teams = kTeams;
  split.row_warps = 1;
  const Stream stream(ring_ + warp() % kTeams * Stream::kSlots, split, 0, kD);
  T* k_cache = static_cast<T*>(args_.k_cache) + text * args_.k_strides.batch + kv_head * args_.k_strides.head;
  T* v_cache = static_cast<T*>(args_.v_cache) + text * args_.v_strides.batch + kv_head * args_.v_strides.head;
  const int key = begin + warp() % kTeams * kStepKeys, keys = warp() < kTeams ? end - key : 0;
  Keys result{text,
              kv_head,
              part,
              k_cache,
              v_cache,
              begin,
              end,
              place,
              stream,
              stream.source(k_cache + key * args_.k_strides.token, args_.k_strides.token, keys),
              stream.source(v_cache + key * args_.v_strides.token, args_.v_strides.token, keys)};
  if (warp() < kTeams) result.stream.start(result.k, result.v);
  return result;
}

template <class T, int kD, bool kOneText>
__device__ __forceinline__ void Decode<T, kD, kOneText>::attend(Keys& keys) const {
  using namespace split_kv;
  if (keys.text >= batch_) return;
  const int heads = static_cast<int>(args_.heads), kv_heads = static_cast<int>(args_.kv_heads);
  const int group = heads / kv_heads, wide = heads * kD, narrow = kv_heads * kD;
  const float* projected = between_.qkv + keys.text * (wide + 2 * narrow);

  // The new token goes into the cache, and into the tile where that has been read before.
  const bool has_new = keys.has_new();
  const int step = (keys.place - keys.begin) / kStepKeys, turn = step / kTeams, row = keys.place % kStepKeys;
  Tile* const early = has_new && turn < Stream::kAhead ? ring_ + step % kTeams * Stream::kSlots + 2 * turn : nullptr;
  if (early) {
    ptx::copy_async_wait<0>();
    __syncthreads();
  }
  for (int job = warp(); job < group + (has_new ? 2 : 0); job += kDecodeWarps) {
    if (job < group) {
      place_head(projected + (keys.kv_head * group + job) * kD, args_.q_norm, keys.text,
                 [&](int column, const auto& values) { store_vector(q_ + job * kStride + column, values); });
      continue;
    }
    const bool is_v = job > group;
    T* to =
        is_v ? keys.v_cache + keys.place * args_.v_strides.token : keys.k_cache + keys.place * args_.k_strides.token;
    const auto store = [&](int column, const auto& values) {
      store_vector(to + column, values);
      if (early) store_vector(early[is_v].vector(row, column / kVector) + column % kVector, values);
    };
    const float* from = projected + wide + keys.kv_head * kD + (is_v ? narrow : 0);
    if (is_v) {
      for (int c = 2 * lane(); c < kD; c += 2 * kWarp) store(c, from_float<T>(load_vector<2>(from + c)));
    } else {
      place_head(from, args_.k_norm, keys.text, store);
    }
  }
  __syncthreads();

  WarpState<T, kD> state;
  if (warp() < kTeams) {
    uint32_t q[kD / 16][4];
#pragma unroll
    for (int j = 0; j < kD / 16; ++j)
      ptx::load_matrices<false>(q[j], q_ + lane() % 16 * kStride + j * 16 + lane() / 16 * 8);
    const float scale = static_cast<float>(args_.scale) * kLog2E;
    const int first_key[2] = {0, 0}, last_key[2] = {keys.end - 1, keys.end - 1};
    int key = keys.begin + warp() * kStepKeys;
    for (int first = keys.begin; first < keys.end; first += kTeams * kStepKeys, key += kTeams * kStepKeys) {
      float score[2][4];
      const Tile& k_tile = keys.stream.next(keys.k);
      if (key < keys.end) {
        split_kv::multiply<T, kD>(score, q, k_tile, scale);
        if (key + kStepKeys > keys.end) hide(score, key, first_key, last_key);
      }
      const Tile& v_tile = keys.stream.next(keys.v);
      if (key < keys.end) state.add_step(score, v_tile);
    }
    ptx::copy_async_wait<0>();
  }
  __syncthreads();

  Found<kD>& found = *reinterpret_cast<Found<kD>*>(ring_);
  static_assert(sizeof(found) <= kTeams * Stream::kSlots * sizeof(Tile));
  if (warp() < kTeams) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int head = r * 8 + lane() / 4;
      state.sum[r] = warp_reduce(state.sum[r], Add{}, 4);
      if (head >= group) continue;
      if (lane() % 4 == 0) {
        found.max[warp()][head] = state.max[r];
        found.sum[warp()][head] = state.sum[r];
      }
#pragma unroll
      for (int j = 0; j < kD / 8; ++j)
        *reinterpret_cast<float2*>(&found.out[warp()][head][j * 8 + lane() % 4 * 2]) =
            make_float2(state.out[j][2 * r], state.out[j][2 * r + 1]);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < group * kD / 4; i += kDecodeWarps * kWarp) {
    const int head = i / (kD / 4), column = i % (kD / 4) * 4;
    float max = -INFINITY, sum = 0;
    float4 sums{};
    for (int w = 0; w < kTeams; ++w) max = fmaxf(max, found.max[w][head]);
    for (int w = 0; w < kTeams; ++w) {
      const float weight = rescale(found.max[w][head], max);
      sum += weight * found.sum[w][head];
      add_weighted(sums, weight, *reinterpret_cast<const float4*>(&found.out[w][head][column]));
    }
    const int64_t index = (keys.text * heads + keys.kv_head * group + head) * plan_.parts + keys.part;
    *reinterpret_cast<float4*>(between_.parts + index * kD + column) = sums;
    if (column == 0) between_.stats[index] = make_float2(max, sum);
  }
}

template <class T, int kD, bool kOneText>
__device__ __forceinline__ void Decode<T, kD, kOneText>::combine_parts(const Place& place) const {
  const int first = place.first_column, wide = place.columns / 4, parts = plan_.parts;
  const int first_head = first / kD, heads = (first + place.columns - 1) / kD + 1 - first_head;
  const int all_heads = static_cast<int>(args_.heads);
  float4* layer_sums = reinterpret_cast<float4*>(sums_);
  float* weights = reinterpret_cast<float*>(ring_);  // (B, heads, parts): what a part counts for
  // Threads side by side have the items, four columns of a text; layers of threads have the parts in turn.
  const int items = batch_ * wide, side = 1 << plan_.items_log2, layers = kThreads >> plan_.items_log2;
  const int layer = threadIdx.x >> plan_.items_log2, mine = threadIdx.x & (side - 1);
  constexpr int kFetch = 8;
  Vector<float, 4> fetched[kFetch];
  const auto fetch = [&](int item, int part) {
    const int text = kOneText ? 0 : item / wide, column = first + (kOneText ? item : item % wide) * 4;
    const float* from = between_.parts + (int64_t{text * all_heads + column / kD} * parts) * kD + column % kD;
#pragma unroll
    for (int i = 0; i < kFetch; ++i) {
      const int p = part + i * layers;
      fetched[i] = p < parts ? load_vector<4>(from + p * kD) : Vector<float, 4>{};
    }
  };
  if (mine < items) fetch(mine, layer);  // under way while the weights are found

  for (int i = warp(); i < batch_ * heads; i += kDecodeWarps) {
    const int text = kOneText ? 0 : i / heads, head = first_head + i - text * heads;
    const float2* stats = between_.stats + (text * all_heads + head) * parts;
    constexpr int kEach = kDecodeMaxParts / kWarp;
    float2 stat[kEach];
    float max = -INFINITY;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int part = j * kWarp + lane();
      stat[j] = part < parts ? stats[part] : make_float2(-INFINITY, 0.0f);
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
      if (j * kWarp + lane() < parts) weights[i * kDecodeMaxParts + j * kWarp + lane()] = stat[j].x * inverse;
  }
  __syncthreads();

  for (int begin = 0; begin < items; begin += side) {
    const int item = begin + mine, text = kOneText ? 0 : item / wide, column = (kOneText ? item : item % wide) * 4;
    Vector<float, 4> sum{};
    if (item < items) {
      const float* weight = weights + (text * heads + (first + column) / kD - first_head) * kDecodeMaxParts;
      for (int part = layer; part < parts; part += kFetch * layers) {
        if (begin > 0 || part > layer) fetch(item, part);
#pragma unroll
        for (int i = 0; i < kFetch; ++i) {
          const int p = part + i * layers;
          if (p >= parts) continue;
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[j] += weight[p] * fetched[i][j];
        }
      }
    }
    if (layers > 1) {
      layer_sums[threadIdx.x] = make_float4(sum[0], sum[1], sum[2], sum[3]);
      __syncthreads();
#pragma unroll 7
      for (int l = 1; l < (layer == 0 ? layers : 0); ++l) {
        const float4 more = layer_sums[l * side + threadIdx.x];
        sum[0] += more.x, sum[1] += more.y, sum[2] += more.z, sum[3] += more.w;
      }
    }
    if (layer == 0 && item < items) store_vector(act_ + text * plan_.o.stride() + column, from_float<T>(sum));
  }
}

template <class T, int kD, bool kOneText>
__global__ void __launch_bounds__(kThreads, 1)
    gemma3_decode_cuda_v1_one_launch_kernel(const __grid_constant__ Gemma3DecodeArgs args,
                                            const __grid_constant__ DecodePlan plan,
                                            const __grid_constant__ Between between) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ ptx::Barrier barriers[4];
  __shared__ BlockSum::Scratch scratch;
  BlockSum block_sum(scratch);
  const auto all_blocks = cooperative_groups::this_grid();
  const Decode<T, kD, kOneText> decode(args, plan, between, shared, barriers, block_sum);
  const int64_t position = *args.position;
  const auto x = decode.residual(), input_norm = decode.parameter(args.input_norm);
  if (decode.brings()) decode.bring_qkv();
  const bool is_last = blockIdx.x == gridDim.x - 1;
  if (is_last && threadIdx.x < kDecodeBarriers) between.arrived[threadIdx.x * kDecodeBarrierStride] = 0;
  decode.project(x, input_norm);
  auto arrived = all_blocks.barrier_arrive();
  auto keys = decode.order_keys(position);
  if (decode.brings()) decode.bring_o();
  all_blocks.barrier_wait(std::move(arrived));

  const auto meeting = [&](int i) { return Meeting(between.arrived + i * kDecodeBarrierStride); };
  decode.attend(keys);
  meeting(0).arrive();
  if (decode.brings()) decode.bring_gate_up();
  meeting(0).wait();
  decode.project_heads();
  meeting(1).arrive();
  if (decode.brings()) decode.bring_down();
  const auto post_norm = decode.parameter(args.post_attention_norm);
  const auto pre_norm = decode.parameter(args.pre_feedforward_norm);
  meeting(1).wait();
  const auto h = decode.gate(x, post_norm, pre_norm);
  meeting(2).arrive();
  meeting(2).wait();
  decode.down();
  meeting(3).arrive();
  if (blockIdx.x >= args.batch) return;
  const auto last_norm = decode.parameter(args.post_feedforward_norm);
  meeting(3).wait();
  decode.finish(h, last_norm);
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
  result.arrived = reinterpret_cast<unsigned*>(take(plan.barrier_floats));
  return result;
}

template <class T>
void launch(const Gemma3DecodeArgs& args, Queue& queue) {
  const DecodePlan plan = decode_plan(args, queue.target());
  const auto start = [&](auto kernel) {
    queue.launch(kernel, {.grid = plan.blocks, .block = kThreads, .shared_bytes = plan.shared_bytes, .together = true},
                 args, plan, between(plan, queue));
  };
  const auto start_for = [&]<int kD>() {
    args.batch == 1 ? start(gemma3_decode_cuda_v1_one_launch_kernel<T, kD, true>)
                    : start(gemma3_decode_cuda_v1_one_launch_kernel<T, kD, false>);
  };
  args.head_size == 128 ? start_for.template operator()<128>() : start_for.template operator()<256>();
}

}  // namespace

void gemma3_decode_cuda_v1_one_launch(const Gemma3DecodeArgs& args, Queue& queue) {
  args.dtype == DType::kFloat16 ? launch<__half>(args, queue) : launch<__nv_bfloat16>(args, queue);
}

}  // namespace rooflab::kernels
