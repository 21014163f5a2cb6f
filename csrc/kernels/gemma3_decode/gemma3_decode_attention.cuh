// The steps of gemma3_decode's v1 that read keys and values: prefetch, attention to a part of them, and combining
// parts.
#pragma once

#include "kernels/gemma3_decode/gemma3_decode_steps.cuh"

namespace rooflab::kernels::gemma3_decode {

template <class T, int kD, bool kOneText>
__device__ __forceinline__ auto Decode<T, kD, kOneText>::prefetch_keys(int layer) const -> Keys {
  using split_kv::kStepKeys;
  const Gemma3DecodeLayer& own = args_.layers[layer];
  const int held = position_ >= 0 ? static_cast<int>(min(position_ + 1, own.capacity)) : 0;
  // As many parts as a text has steps of all teams, if there are blocks for them.
  const int parts = max(1, min(plan_.parts, (held + kDecodePartKeys - 1) / kDecodePartKeys));
  const int steps = (held + kStepKeys - 1) / kStepKeys;
  const int part_keys = (steps + parts - 1) / parts * kStepKeys;
  const bool has_work = key_text_ < batch_ && part_ < parts;
  const int begin = has_work ? min(part_ * part_keys, held) : 0, end = has_work ? min(begin + part_keys, held) : 0;
  const int capacity = static_cast<int>(own.capacity);
  const int place =
      position_ < INT_MAX ? static_cast<int>(position_) % capacity : static_cast<int>(position_ % capacity);
  SplitPlan split{};
  split.teams = kTeams;
  split.row_warps = 1;
  const Stream stream(ring_ + warp() % kTeams * Stream::kSlots, split, 0, kD);
  const T* k_cache = as<T>(own.k_cache) + key_text_ * own.k_strides.batch + key_head_ * own.k_strides.head;
  const T* v_cache = as<T>(own.v_cache) + key_text_ * own.v_strides.batch + key_head_ * own.v_strides.head;
  const int key = begin + warp() % kTeams * kStepKeys, keys = warp() < kTeams ? end - key : 0;
  Keys result{parts,
              begin,
              end,
              place,
              has_work,
              stream,
              stream.source(k_cache + key * own.k_strides.token, own.k_strides.token, keys),
              stream.source(v_cache + key * own.v_strides.token, own.v_strides.token, keys)};
  if (warp() < kTeams) result.stream.start(result.k, result.v);
  return result;
}

template <class T, int kD, bool kOneText>
__device__ __forceinline__ void Decode<T, kD, kOneText>::attend(int layer, Keys& keys) const {
  using namespace split_kv;
  if (!keys.has_work) return;
  const Gemma3DecodeLayer& own = args_.layers[layer];
  const Between between = this->between(layer);
  const int heads = static_cast<int>(args_.heads), kv_heads = static_cast<int>(args_.kv_heads);
  const int group = heads / kv_heads, wide = heads * kD, narrow = kv_heads * kD;
  const Slot* projected = between.qkv + key_text_ * (wide + 2 * narrow);

  // The new token goes into the cache. If its tile has been prefetched already, it goes into the tile too.
  const bool has_new = keys.has_new();
  const int step = (keys.place - keys.begin) / kStepKeys, turn = step / kTeams, row = keys.place % kStepKeys;
  Tile* const early = has_new && turn < Stream::kAhead ? ring_ + step % kTeams * Stream::kSlots + 2 * turn : nullptr;
  if (early) {
    ptx::copy_async_wait<0>();
    __syncthreads();
  }
#pragma unroll 1
  for (int job = warp(); job < group + (has_new ? 2 : 0); job += kDecodeWarps) {  // queries, the key, the value
    const bool is_q = job < group;
    const bool is_v = job > group;
    const AttentionStrides& strides = is_v ? own.v_strides : own.k_strides;
    T* const cache = static_cast<T*>(is_v ? own.v_cache : own.k_cache) + key_text_ * strides.batch +
                     key_head_ * strides.head + keys.place * strides.token;
    const auto store = [&](int column, const auto& values) {
      if (is_q) {
        store_vector(q_ + job * kStride + column, values);
      } else {
        store_vector(cache + column, values);
        if (early) store_vector(early[is_v].vector(row, column / kVector) + column % kVector, values);
      }
    };
    const Slot* from =
        projected + (is_q ? (key_head_ * group + job) * kD : wide + key_head_ * kD + (is_v ? narrow : 0));
    if (!is_v) {
      place_head(layer, from, is_q ? own.q_norm : own.k_norm, key_text_, store);
      continue;
    }
    Vector<float, 4> runs[kD / (4 * kWarp)];
    get(runs, from + 4 * lane(), 4 * kWarp, kD / (4 * kWarp), number_of(layer));
#pragma unroll
    for (int i = 0; i < kD / (4 * kWarp); ++i) store(4 * (lane() + i * kWarp), from_float<T>(runs[i]));
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
#pragma unroll 1
  for (int i = threadIdx.x; i < group * kD / 4; i += gemma3_decode::kThreads) {
    const int head = i / (kD / 4), column = i % (kD / 4) * 4;
    float max = -INFINITY, sum = 0;
    float4 sums{};
    for (int w = 0; w < kTeams; ++w) max = fmaxf(max, found.max[w][head]);
    for (int w = 0; w < kTeams; ++w) {
      const float weight = rescale(found.max[w][head], max);
      sum += weight * found.sum[w][head];
      add_weighted(sums, weight, *reinterpret_cast<const float4*>(&found.out[w][head][column]));
    }
    const int64_t index = (key_text_ * heads + key_head_ * group + head) * plan_.parts + part_;
    Slot* const to = between.parts + index * kD + column;
    put(to, sums.x, sums.y, number_of(layer));
    put(to + 2, sums.z, sums.w, number_of(layer));
    if (column == 0) put(between.stats + 2 * index, max, sum, number_of(layer));
  }
  __syncthreads();  // before combine_parts writes to the ring
}

template <class T, int kD, bool kOneText>
__device__ __forceinline__ void Decode<T, kD, kOneText>::combine_parts(int layer, int text, int first, int width,
                                                                       int parts) const {
  const Between between = this->between(layer);
  const int first_head = first / kD, heads = (first + width - 1) / kD + 1 - first_head;
  const int head_row = text * static_cast<int>(args_.heads) + first_head;
  float4* row_sums = reinterpret_cast<float4*>(sums_);
  float* weights = reinterpret_cast<float*>(ring_);  // the weight of each part, (heads, parts)

  // Each warp weighs the parts of a head.
  const auto weigh = [&] {
#pragma unroll 1
    for (int head = warp(); head < heads; head += kDecodeWarps) {
      constexpr int kEach = kDecodeMaxParts / kWarp;
      Vector<float, 2> stat[kEach];  // maximum and sum
      const Slot* const stats = between.stats + 2 * ((head_row + head) * plan_.parts + lane());
      get(stat, stats, 2 * kWarp, (parts - lane() + kWarp - 1) / kWarp, number_of(layer));
      float max = -INFINITY;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if (j * kWarp + lane() >= parts) stat[j][0] = -INFINITY;
        max = fmaxf(max, stat[j][0]);
      }
      max = warp_reduce(max, Larger{});
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        stat[j][0] = rescale(stat[j][0], max);
        sum += stat[j][0] * stat[j][1];
      }
      sum = warp_reduce(sum, Add{});
      const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (j * kWarp + lane() < parts) weights[head * kDecodeMaxParts + j * kWarp + lane()] = stat[j][0] * inverse;
    }
    __syncthreads();
  };

  // An item is four columns. A row of threads has all items, or as many as there are threads, and the rows take the
  // parts in turn.
  constexpr int kFetch = 8;
  const int items = width / 4, side = 1 << plan_.items_log2, rows = kThreads >> plan_.items_log2;
  const int row = threadIdx.x >> plan_.items_log2;
#pragma unroll 1
  for (int begin = 0; begin < items; begin += side) {
    const int item = begin + (threadIdx.x & (side - 1)), column = first + item * 4, head = column / kD - first_head;
    const Slot* const from = between.parts + ((head_row + head) * plan_.parts + row) * kD + column % kD;
    float4 sum{};
#pragma unroll 1
    for (int part = 0; part < parts; part += kFetch * rows) {
      Vector<float, 4> runs[kFetch];
      const int mine = item < items ? (parts - part - row + rows - 1) / rows : 0;
      get(runs, from + part * kD, rows * kD, mine, number_of(layer));
      if (begin == 0 && part == 0) weigh();  // after the first numbers, so that it seldom waits
      const float* const weight = weights + head * kDecodeMaxParts + part + row;
#pragma unroll
      for (int i = 0; i < kFetch; ++i)
        if (i < mine) add_weighted(sum, weight[i * rows], make_float4(runs[i][0], runs[i][1], runs[i][2], runs[i][3]));
    }
    if (rows > 1) {
      row_sums[threadIdx.x] = sum;
      __syncthreads();
#pragma unroll 1
      for (int r = 1; r < (row == 0 ? rows : 0); ++r) add_weighted(sum, 1.0f, row_sums[r * side + threadIdx.x]);
    }
    if (row > 0 || item >= items) continue;
    const Vector<float, 4> result{sum.x, sum.y, sum.z, sum.w};
    if constexpr (kOneText) {
      store_vector(act_ + item * 4, from_float<T>(result));
    } else {
      put_as<T>(between.heads + (head_row * kD + item * 4) / 2, result, number_of(layer));
    }
  }
  __syncthreads();
}

}  // namespace rooflab::kernels::gemma3_decode
