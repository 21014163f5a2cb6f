// The CUDA rung of rms_norm_rope_append: see rms_norm_rope_append.h for what it computes.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/out_of_range.cuh"
#include "kernels/rms_norm/rms_norm_tile.cuh"
#include "kernels/rms_norm_rope_append/rms_norm_rope_append.h"

namespace rooflab::kernels {
namespace {

constexpr int kWarps = 4;  // of a block, each with a row

// The vectors of a lane in a row, one in each half. A row has at most 64 of them; lanes past a half's end have zeros.
template <class T>
struct Halves {
  static constexpr int kWidth = kVectorWidth<T>;
  Vector<T, kWidth> a, b;

  __device__ __forceinline__ static int place() { return static_cast<int>(threadIdx.x % kWarp) * kWidth; }
  __device__ __forceinline__ static Halves load(const T* row, int half) {
    if (place() >= half) return {};
    return {load_vector<kWidth>(row + place()), load_vector<kWidth>(row + half + place())};
  }
  __device__ __forceinline__ void store(T* row, int half) const {
    if (place() >= half) return;
    store_vector(row + place(), a);
    store_vector(row + half + place(), b);
  }
};

template <class T>
__device__ __forceinline__ Halves<T> normalised_and_turned(const Halves<T>& x, const Halves<T>& weight,
                                                           const Halves<T>& cos, const Halves<T>& sin, int half,
                                                           float eps, float offset) {
  constexpr int kWidth = Halves<T>::kWidth;
  const Vector<float, kWidth> a = to_float(x.a), b = to_float(x.b);
  const float scale = inverse_rms<false>(eps, [&](float unit) {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) squares += a[j] * unit * (a[j] * unit) + b[j] * unit * (b[j] * unit);
    return warp_reduce(squares, Add{}, kWarp) / (2 * half);
  });
  Vector<float, kWidth> first, second;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    const auto normal = [&](float x, T gain) { return x * scale * (to_float(gain) + offset); };
    const auto point = rope_point(normal(a[j], weight.a[j]), normal(b[j], weight.b[j]), to_float(cos.a[j]),
                                  to_float(cos.b[j]), to_float(sin.a[j]), to_float(sin.b[j]), false);
    first[j] = point.first;
    second[j] = point.second;
  }
  return {from_float<T>(first), from_float<T>(second)};
}

// A warp has one head of one token: of the queries, or behind them of the keys, or of the values. Blocks are counted as
// (heads, token, text). A warp requests all that it reads at once: few rows do not hide a second wait for memory.
template <class T>
__global__ void __launch_bounds__(kWarps* kWarp)
    rms_norm_rope_append_cuda_v1_warp_per_row_kernel(const __grid_constant__ RmsNormRopeAppendArgs args) {
  overlap_launches();
  const RopeArgs& q = args.q.rope;
  const KvAppendArgs& append = args.append;
  const int64_t heads = q.heads, kv_heads = append.heads, token = blockIdx.y, b = blockIdx.z;
  const int64_t row = blockIdx.x * int64_t{kWarps} + threadIdx.x / kWarp;
  const bool is_query = row < heads, is_key = !is_query && row < heads + kv_heads;
  const int64_t head = is_query ? row : is_key ? row - heads : row - heads - kv_heads;
  if (head >= (is_query ? heads : kv_heads)) return;

  const int half = static_cast<int>(q.head_size / 2);
  const auto offset = [&](const AttentionStrides& strides, int64_t place) {
    return b * strides.batch + head * strides.head + place * strides.token;
  };
  const auto load = [&](const void* x, const AttentionStrides& strides) {
    return Halves<T>::load(static_cast<const T*>(x) + offset(strides, token), half);
  };
  const int64_t position = is_query ? 0 : *append.position;
  Halves<T> x = is_query ? load(q.x, q.x_strides)
                : is_key ? load(append.k, append.k_strides)
                         : load(append.v, append.v_strides);
  if (is_query || is_key) {
    const auto weight = Halves<T>::load(static_cast<const T*>(is_query ? args.q.weight : args.k_weight), half);
    x = normalised_and_turned(x, weight, load(q.cos, q.cos_strides), load(q.sin, q.sin_strides), half,
                              static_cast<float>(args.q.eps), args.q.zero_centered);
  }
  if (is_query) return x.store(static_cast<T*>(q.y) + offset(q.y_strides, token), half);
  if (position < 0) {
    if (is_key && threadIdx.x % kWarp == 0) report(append.report, out_of_range(position));
    return;
  }
  const int64_t place = (position % append.capacity + token) % append.capacity;
  if (is_key)
    x.store(static_cast<T*>(append.k_cache) + offset(append.k_cache_strides, place), half);
  else
    x.store(static_cast<T*>(append.v_cache) + offset(append.v_cache_strides, place), half);
}

}  // namespace

void rms_norm_rope_append_cuda_v1_warp_per_row(const RmsNormRopeAppendArgs& args, Queue& queue) {
  dispatch_tile_type(args.append.dtype, [&]<class T>() {
    const RopeArgs& q = args.q.rope;
    const int64_t rows = q.heads + 2 * args.append.heads;
    const LaunchShape shape{{(rows + kWarps - 1) / kWarps, q.length, q.batch}, kWarps * kWarp};
    queue.launch(rms_norm_rope_append_cuda_v1_warp_per_row_kernel<T>, early(shape, queue), args);
  });
}

}  // namespace rooflab::kernels
