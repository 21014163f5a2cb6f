// The steps of gemma3_decode's v1 that read keys and values: prefetch, attention to a part of them, and combining
// parts.
#pragma once

#include "kernels/gemma3_decode/gemma3_decode_steps.cuh"

namespace rooflab::kernels::gemma3_decode {

template <class T, int kD, bool kOneText>
__device__ __forceinline__ auto Decode<T, kD, kOneText>::prefetch_keys(int64_t position) const -> Keys {
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

  // The new token goes into the cache. If its tile has been prefetched already, it goes into the tile too.
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
  float* weights = reinterpret_cast<float*>(ring_);  // the weight of each part, (B, heads, parts)
  // An item is four columns of a text. A layer of threads has all items, and the layers take the parts in turn.
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
  if (mine < items) fetch(mine, layer);  // loaded while the weights are computed

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

}  // namespace rooflab::kernels::gemma3_decode
