// Keeps the values of hidden keys out of the rows that do not see them, forward and backward, on tensor cores.
//
// The rungs on tensor cores multiply whole tiles of weights and values. A hidden pair has weight 0, but if the value is
// NaN or infinite, the product is NaN all the same. So a warp looks again at each finished row that holds a NaN. Where
// a hidden value may be the cause, it sums these columns again, over the visible pairs alone. A row without a NaN costs
// one comparison per element.
#pragma once

#include "kernels/attention/attention_tile.cuh"
#include "kernels/common/reduce.cuh"

namespace rooflab::kernels {

// Up to kColumns columns of a row, from `first` on. One warp sums those again that hold a NaN.
template <int kColumns>
class NanColumns {
 public:
  // `element(column)` is the row's element.
  template <class Element>
  __device__ __forceinline__ NanColumns(int first, int columns, Element&& element) : first_(first), columns_(columns) {
    for_own([&](int i, int column) { nan_ |= (isnan(to_float(element(column))) ? 1u : 0u) << i; });
  }

  __device__ __forceinline__ bool any() const { return __any_sync(0xffffffff, nan_); }

  // Looks at a value whose weight was 0.
  template <class T>
  __device__ __forceinline__ void add_hidden(const T* value) {
    for_own([&](int i, int column) { not_finite_ |= (isfinite(to_float(value[column])) ? 0u : 1u) << i; });
  }
  // Whether a hidden value may have made a NaN.
  __device__ __forceinline__ bool are_wrong() const { return __any_sync(0xffffffff, nan_ & not_finite_); }

  // Adds a weighted value to the sums so far times `rescale`.
  template <class T>
  __device__ __forceinline__ void add_visible(float weight, const T* value, float rescale = 1) {
    for_own([&](int i, int column) { sum_[i] = sum_[i] * rescale + weight * to_float(value[column]); });
  }
  // Whether visible values have made a NaN of every sum.
  __device__ __forceinline__ bool are_nan() const {
    bool all = true;
    for_own([&](int i, int) { all &= isnan(sum_[i]) || !(nan_ >> i & 1); });
    return __all_sync(0xffffffff, all);
  }

  template <class Element>
  __device__ __forceinline__ void store(Element&& element, float factor = 1) const {
    for_own([&](int i, int column) {
      if (nan_ >> i & 1)
        element(column) = from_float<std::remove_reference_t<decltype(element(column))>>(sum_[i] * factor);
    });
  }

 private:
  static constexpr int kOwn = (kColumns + 31) / 32;

  // Calls f(i, column) for this lane's columns.
  template <class F>
  __device__ __forceinline__ void for_own(F&& f) const {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int within = threadIdx.x % 32 + 32 * i, column = first_ + within;
      if (within < kColumns && column < columns_) f(i, column);
    }
  }

  int first_, columns_;
  unsigned nan_ = 0, not_finite_ = 0;  // a bit for each of this lane's columns
  float sum_[kOwn] = {};
};

template <class T>
__device__ __forceinline__ const T* head_row(const void* tensor, const AttentionStrides& strides, int64_t batch,
                                             int64_t head, int64_t token) {
  return static_cast<const T*>(tensor) + batch * strides.batch + head * strides.head + token * strides.token;
}

// The product of two rows, by a warp.
template <class T>
__device__ __forceinline__ float dot(const T* a, const T* b, int columns) {
  float sum = 0;
  for (int column = threadIdx.x % 32; column < columns; column += 32) sum += to_float(a[column]) * to_float(b[column]);
  return warp_reduce(sum, Add{});
}

// Mends a row of out by one warp, if it holds a NaN. `multiplied` are the keys of the tiles that were multiplied.
// Stores the weighted sums times factor(maximum, total), where the weights are exp(score - maximum) and add up to
// `total`.
template <class T, int kColumns, class Out, class Factor>
__device__ __forceinline__ void leave_out_hidden_keys(const AttentionArgs& args, int64_t batch, int64_t head, int query,
                                                      Visibility::Range multiplied, Out* out, Factor&& factor) {
  const Visibility::Range seen = Visibility(args).keys(query);
  const ExplicitMask<T> mask(args, batch, head);
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const int head_size = static_cast<int>(args.head_size);
  const auto hides = [&](int key) {
    return key < seen.begin || key >= seen.end || mask.apply(0, query, key) == -INFINITY;
  };
  const auto element = [&](int column) -> Out& { return out[column]; };

  NanColumns<kColumns> columns(0, head_size, element);
  if (!columns.any()) return;
  for (int key = multiplied.begin; key < multiplied.end; ++key) {
    if (hides(key)) {
      columns.add_hidden(head_row<T>(args.v, args.v_strides, batch, kv_head, key));
    } else if (!mask.exists()) {
      key = seen.end - 1;
    }
  }
  if (!columns.are_wrong()) return;

  const T* q = head_row<T>(args.q, args.q_strides, batch, head, query);
  float maximum = -INFINITY, total = 0;
  for (int key = multiplied.begin; key < multiplied.end && !columns.are_nan(); ++key) {
    if (hides(key)) continue;
    const float product = dot(q, head_row<T>(args.k, args.k_strides, batch, kv_head, key), head_size);
    const float score = mask.apply(scaled(product, args.scale), query, key), largest = fmaxf(maximum, score);
    const float rescale = exp_difference(maximum, largest), weight = exp_difference(score, largest);
    maximum = largest;
    total = total * rescale + weight;
    columns.add_visible(weight, head_row<T>(args.v, args.v_strides, batch, kv_head, key), rescale);
  }
  columns.store(element, total == 0 ? 0 : factor(maximum, total));
}

// Mends `count` rows of out, from `first` on, by the warp that has stored them, because one of them holds a NaN. They
// belong to a tile of queries that took the keys in tiles of kTileKeys. This is a call, because inlined code would cost
// the kernels' loops registers.
template <class T, int kColumns, int kTileKeys>
__device__ __noinline__ void leave_out_hidden_keys(const AttentionArgs& args, int64_t batch, int64_t head, int first,
                                                   int count, int first_of_tile, int tile_rows) {
  __syncwarp();
  const Visibility visibility(args);
  const Visibility::Range keys = visibility.keys_of_tile(first_of_tile, tile_rows);
  const Visibility::Range multiplied{keys.begin / kTileKeys * kTileKeys,
                                     min((keys.end + kTileKeys - 1) / kTileKeys * kTileKeys, visibility.kv_length)};
  const AttentionStrides& strides = args.out_strides;
  T* out = static_cast<T*>(args.out) + batch * strides.batch + head * strides.head;
  for (int query = first; query < min(first + count, visibility.q_length); ++query) {
    leave_out_hidden_keys<T, kColumns>(args, batch, head, query, multiplied, out + query * strides.token,
                                       [](float, float total) { return 1 / total; });
  }
}

}  // namespace rooflab::kernels
