// attention_backward_cpu_v1_flash: the backward pass of FlashAttention-2 (Dao 2023, algorithm 2) in plain loops on one
// thread. Each tile of probabilities is recomputed from q, k and the saved log-sum-exp. The outer loop runs over keys,
// so dK and dV of a tile stay in cache while the queries pass by, and dQ accumulates a contribution from each tile of
// keys.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/attention/attention_backward.h"

namespace rooflab::kernels {
namespace {

constexpr int64_t kKeys = 32;

// The rung's scratch, in floats: D, the sums of dQ where dq cannot hold them, and one tile each of dK and dV.
struct Aside {
  int64_t delta, dq_sum, tile;

  explicit Aside(const AttentionBackwardArgs& args)
      : delta(args.forward.batch * args.forward.heads * attention_rounded_rows(args.forward.q_length)),
        dq_sum(args.forward.dtype == DType::kFloat32 ? 0 : delta * args.forward.head_size),
        tile(kKeys * args.forward.head_size) {}
  int64_t floats() const { return delta + dq_sum + 2 * tile; }
};

template <class T>
struct Backward {
  AttentionBackwardArgs args;
  const AttentionArgs& forward = args.forward;
  const int64_t d_h = forward.head_size, tile;
  float *dk, *dv;

  Backward(const AttentionBackwardArgs& all, Queue& queue) : args(all), tile(Aside(all).tile) {
    const Aside aside(args);
    args.delta = queue.scratch<float>(aside.floats());
    args.dq_sum = args.delta + aside.delta;
    dk = args.dq_sum + aside.dq_sum;
    dv = dk + tile;
  }

  template <class U>
  static U* at(U* p, const AttentionStrides& strides, int64_t b, int64_t head, int64_t token) {
    return p + b * strides.batch + head * strides.head + token * strides.token;
  }
  const T* row(const void* p, const AttentionStrides& strides, int64_t b, int64_t head, int64_t token) const {
    return at(static_cast<const T*>(p), strides, b, head, token);
  }
  static float dot(const T* x, const T* y, int64_t n) {
    float sum = 0;
    for (int64_t d = 0; d < n; ++d) sum += static_cast<float>(x[d]) * static_cast<float>(y[d]);
    return sum;
  }

  float& delta(int64_t b, int64_t h, int64_t i) const {
    return args.delta[(b * forward.heads + h) * attention_rounded_rows(forward.q_length) + i];
  }
  T* dq(int64_t b, int64_t h, int64_t i) const { return at(static_cast<T*>(args.dq), args.dq_strides, b, h, i); }
  // Where dQ is accumulated: in dq itself if that holds floats.
  float* dq_sum(int64_t b, int64_t h, int64_t i) const {
    if constexpr (std::is_same_v<T, float>)
      return dq(b, h, i);
    else
      return args.dq_sum + ((b * forward.heads + h) * attention_rounded_rows(forward.q_length) + i) * d_h;
  }

  // p[i, j] = exp(scale q[i] . k[j] + mask[i, j] - lse[i] - rest[i]), 0 where the key is hidden.
  float probability(int64_t b, int64_t h, int64_t i, int64_t j, const T* query, const T* key) const {
    const int64_t at = (b * forward.heads + h) * forward.q_length + i;
    const float lse = forward.lse[at], rest = forward.lse_rest ? forward.lse_rest[at] : 0;
    if (lse == -std::numeric_limits<float>::infinity()) return 0;
    float bias = 0;
    if (forward.mask) {
      const int64_t* strides = forward.mask_strides;
      const int64_t mask_at = b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3];
      if (!forward.mask_is_bool)
        bias = static_cast<float>(static_cast<const T*>(forward.mask)[mask_at]);
      else if (!static_cast<const bool*>(forward.mask)[mask_at])
        return 0;
    }
    const float score = forward.scale * dot(query, key, d_h) + bias;
    return std::exp(score - lse - rest);  // in this order: score - lse is exact where both are large
  }

  void run() {
    for (int64_t b = 0; b < forward.batch; ++b) {
      for (int64_t h = 0; h < forward.heads; ++h)
        for (int64_t i = 0; i < forward.q_length; ++i) {
          delta(b, h, i) =
              dot(row(args.dout, args.dout_strides, b, h, i), row(forward.out, forward.out_strides, b, h, i), d_h);
          std::fill_n(dq_sum(b, h, i), d_h, 0.0f);
        }
      for (int64_t kv_head = 0; kv_head < forward.kv_heads; ++kv_head)
        for (int64_t j0 = 0; j0 < forward.kv_length; j0 += kKeys)
          key_tile(b, kv_head, j0, std::min(j0 + kKeys, forward.kv_length));
      if constexpr (!std::is_same_v<T, float>)
        for (int64_t h = 0; h < forward.heads; ++h)
          for (int64_t i = 0; i < forward.q_length; ++i)
            for (int64_t d = 0; d < d_h; ++d) dq(b, h, i)[d] = T(dq_sum(b, h, i)[d]);
    }
  }

  // Computes dK and dV of the keys [begin, end), and adds what these keys contribute to dQ.
  void key_tile(int64_t b, int64_t kv_head, int64_t begin, int64_t end) {
    std::fill_n(dk, tile, 0.0f);
    std::fill_n(dv, tile, 0.0f);
    const int64_t group = forward.heads / forward.kv_heads;
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h)
      for (int64_t i = 0; i < forward.q_length; ++i) {
        const KeyRange seen = visible_keys(i, forward.q_length, forward.kv_length, forward.is_causal, forward.window);
        for (int64_t j = std::max(begin, seen.begin); j < std::min(end, seen.end); ++j)
          pair(b, h, kv_head, i, j, &dk[(j - begin) * d_h], &dv[(j - begin) * d_h]);
      }
    for (int64_t j = begin; j < end; ++j)
      for (int64_t d = 0; d < d_h; ++d) {
        at(static_cast<T*>(args.dk), args.dk_strides, b, kv_head, j)[d] = T(dk[(j - begin) * d_h + d]);
        at(static_cast<T*>(args.dv), args.dv_strides, b, kv_head, j)[d] = T(dv[(j - begin) * d_h + d]);
      }
  }

  void pair(int64_t b, int64_t h, int64_t kv_head, int64_t i, int64_t j, float* dk_row, float* dv_row) {
    const T* query = row(forward.q, forward.q_strides, b, h, i);
    const T* dout = row(args.dout, args.dout_strides, b, h, i);
    const T* key = row(forward.k, forward.k_strides, b, kv_head, j);
    const T* value = row(forward.v, forward.v_strides, b, kv_head, j);
    const float p = probability(b, h, i, j, query, key);
    if (p == 0) return;
    const float ds = forward.scale * p * (dot(dout, value, d_h) - delta(b, h, i));
    float* dq_row = dq_sum(b, h, i);
    for (int64_t d = 0; d < d_h; ++d) {
      dv_row[d] += p * static_cast<float>(dout[d]);
      dk_row[d] += ds * static_cast<float>(query[d]);
      dq_row[d] += ds * static_cast<float>(key[d]);
    }
  }
};

}  // namespace

void attention_backward_cpu_v1_flash(const AttentionBackwardArgs& args, Queue& queue) {
  dispatch_float(args.forward.dtype, "attention_backward", [&]<class T>() { Backward<T>(args, queue).run(); });
}

Footprint attention_backward_cpu_v1_footprint(const AttentionBackwardArgs& args, const Target&) {
  return {.scratch_bytes = Aside(args).floats() * 4};
}

}  // namespace rooflab::kernels
