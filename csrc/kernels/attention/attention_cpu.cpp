// attention_cpu_v1_flash: the forward pass of FlashAttention-2 (Dao 2023, algorithm 1) in plain loops on one thread.
// Only one tile of scores exists at a time. Besides it, each query keeps its running maximum m, the sum l of exp(score
// - m) and the weighted sum O of values. Tiles that no query of the block may see are skipped.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dispatch.h"
#include "kernels/attention/attention.h"

namespace rooflab::kernels {
namespace {

constexpr int64_t kQueries = 32, kKeys = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One head of one batch.
template <class T>
struct Head {
  const T *q, *k, *v, *mask;
  const bool* mask_bits;
  T* out;

  Head(const AttentionArgs& args, int64_t b, int64_t h) {
    const auto at = [&](const void* p, const AttentionStrides& strides, int64_t head) {
      return static_cast<const T*>(p) + b * strides.batch + head * strides.head;
    };
    const int64_t kv_head = h / (args.heads / args.kv_heads),
                  mask_at = b * args.mask_strides[0] + h * args.mask_strides[1];
    q = at(args.q, args.q_strides, h);
    k = at(args.k, args.k_strides, kv_head);
    v = at(args.v, args.v_strides, kv_head);
    out = static_cast<T*>(args.out) + b * args.out_strides.batch + h * args.out_strides.head;
    mask = args.mask && !args.mask_is_bool ? static_cast<const T*>(args.mask) + mask_at : nullptr;
    mask_bits = args.mask && args.mask_is_bool ? static_cast<const bool*>(args.mask) + mask_at : nullptr;
  }
};

// scale q[i] . k[j] + mask[i, j], or -inf for a key that is hidden.
template <class T>
float score(const AttentionArgs& args, const Head<T>& head, const float* query, int64_t i, int64_t j) {
  const KeyRange seen = visible_keys(i, args.q_length, args.kv_length, args.is_causal, args.window);
  if (j < seen.begin || j >= seen.end) return -kInfinity;
  const int64_t mask_at = i * args.mask_strides[2] + j * args.mask_strides[3];
  if (head.mask_bits && !head.mask_bits[mask_at]) return -kInfinity;
  const float bias = head.mask ? static_cast<float>(head.mask[mask_at]) : 0.0f;
  if (bias == -kInfinity) return bias;  // whatever the key holds
  const T* key = head.k + j * args.k_strides.token;
  float dot = 0;
  for (int64_t d = 0; d < args.head_size; ++d) dot += query[d] * static_cast<float>(key[d]);
  return args.scale * dot + bias;
}

// Holds a block of queries, its weighted sums, and what one tile adds to a row of them.
int64_t scratch_floats(const AttentionArgs& args) { return (2 * kQueries + 1) * args.head_size; }

template <class T>
void flash(const AttentionArgs& args, Queue& queue) {
  const int64_t d_h = args.head_size;
  float *q = queue.scratch<float>(scratch_floats(args)), *o = q + kQueries * d_h, *row = o + kQueries * d_h;
  float p[kKeys], m[kQueries], l[kQueries];
  for (int64_t b = 0; b < args.batch; ++b)
    for (int64_t h = 0; h < args.heads; ++h) {
      const Head<T> head(args, b, h);
      for (int64_t i0 = 0; i0 < args.q_length; i0 += kQueries) {
        const int64_t queries = std::min(kQueries, args.q_length - i0);
        for (int64_t i = 0; i < queries; ++i)
          for (int64_t d = 0; d < d_h; ++d)
            q[i * d_h + d] = static_cast<float>(head.q[(i0 + i) * args.q_strides.token + d]);
        std::fill_n(o, kQueries * d_h, 0.0f);
        std::fill_n(m, kQueries, -kInfinity);
        std::fill_n(l, kQueries, 0.0f);

        const auto visible = [&](int64_t i) {
          return visible_keys(i, args.q_length, args.kv_length, args.is_causal, args.window);
        };
        const int64_t end = visible(i0 + queries - 1).end;
        for (int64_t j0 = visible(i0).begin; j0 < end; j0 += kKeys) {
          const int64_t keys = std::min(kKeys, end - j0);
          for (int64_t i = 0; i < queries; ++i) {
            const float last = m[i];
            for (int64_t j = 0; j < keys; ++j) {
              p[j] = score(args, head, &q[i * d_h], i0 + i, j0 + j);
              m[i] = std::max(m[i], p[j]);
            }
            const float shift = m[i] == -kInfinity ? 0.0f : m[i];  // no key seen so far: all exponentials are 0
            const float alpha = std::exp(last - shift);
            float weight = 0;  // of these keys alone, as `row`, so that the sums take one addition for each tile
            std::fill_n(row, d_h, 0.0f);
            for (int64_t j = 0; j < keys; ++j) {
              if (p[j] == -kInfinity) continue;
              const T* value = head.v + (j0 + j) * args.v_strides.token;
              p[j] = std::exp(p[j] - shift);
              weight += p[j];
              for (int64_t d = 0; d < d_h; ++d) row[d] += p[j] * static_cast<float>(value[d]);
            }
            l[i] = l[i] * alpha + weight;
            for (int64_t d = 0; d < d_h; ++d) o[i * d_h + d] = o[i * d_h + d] * alpha + row[d];
          }
        }

        for (int64_t i = 0; i < queries; ++i) {
          const float inverse = l[i] == 0 ? 0.0f : 1 / l[i];
          for (int64_t d = 0; d < d_h; ++d)
            head.out[(i0 + i) * args.out_strides.token + d] = T(o[i * d_h + d] * inverse);
          if (args.lse) attention_store_lse(args, (b * args.heads + h) * args.q_length + i0 + i, m[i], std::log(l[i]));
        }
      }
    }
}

}  // namespace

int64_t attention_splits(const AttentionArgs& args, int64_t at_a_time) {
  const auto range = [&](int64_t query) {
    return visible_keys(query, args.q_length, args.kv_length, args.is_causal, args.window);
  };
  const int64_t keys = range(args.q_length - 1).end - range(0).begin, most = keys / kAttentionSplitKeys;
  const int64_t sharing = std::max<int64_t>(attention_tiles(args), 1);
  // With several tiles of rows, splitting pays only where the other rungs would leave much of the GPU idle for long. A
  // mask slows these down. By estimates from an H100's times, they catch up at 35 to 44 tiles, with a mask at 72 or
  // more.
  const int64_t most_tiles = args.mask == nullptr ? 32 : 64;
  const int64_t fewest_keys = std::max<int64_t>(size_of(args.dtype) == 2 ? 2048 : 128, 2 * args.q_length);
  if (attention_rows(args) > kAttentionSplitRows && (sharing > most_tiles || keys < fewest_keys)) return 1;
  // As many parts as can run at a time, or a few more where the last wave would otherwise leave over an eighth of all
  // slots empty.
  const auto wasteful = [&](int64_t splits) {
    const int64_t room = (sharing * splits + at_a_time - 1) / at_a_time * at_a_time;
    return sharing * splits < room - room / 8;
  };
  int64_t splits = std::max<int64_t>(at_a_time / sharing, 1);
  while (splits < most && wasteful(splits)) ++splits;
  return std::max<int64_t>(std::min(splits, most), 1);
}

void attention_cpu_v1_flash(const AttentionArgs& call, Queue& queue) {
  const AttentionArgs args = with_held_keys(call);
  dispatch_float(args.dtype, "attention", [&]<class T>() { flash<T>(args, queue); });
}

Footprint attention_cpu_v1_footprint(const AttentionArgs& args, const Target&) {
  return {.scratch_bytes = scratch_floats(args) * 4};
}

}  // namespace rooflab::kernels
