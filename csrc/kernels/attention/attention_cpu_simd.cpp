// attention_cpu_v2_flash_simd: FlashAttention-2 around a register tile. Blocks of queries are distributed over the
// threads. Each block processes the keys one tile at a time, in panels of kWidth queries that lie across the vector
// lanes:
//
//   S^T (keys x kWidth)  = K Q^T     Q^T of the panel in L1, rows of K broadcast
//   P^T = e^(S^T - m)                maxima, sums and masks for kWidth queries at once: no reduction crosses lanes
//   O^T (D_h x kWidth)   = O^T e^(m_old - m) + V^T P^T     P^T in L1, columns of V broadcast
//
// So every FMA combines a broadcast element of K or V with a vector of queries, and nothing is transposed except Q and
// O, once per block. A panel takes part in a tile only from its first visible key to its last.
#include "kernels/attention/attention_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <class T>
class FlashForward {
 public:
  static void run(const AttentionArgs& args, Queue& queue) {
    const Deal deal(args, queue.target());
    const AttentionArgs held = with_held_keys(args);
    const int64_t queries = deal.queries, blocks = parts_of(args.q_length, queries);
    float* scratch = queue.scratch<float>(deal.threads * deal.floats);
    queue.parallel(args.batch * args.heads * blocks, 1, deal.threads, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t task = begin; task < end; ++task) {
        // Under a causal mask the last blocks see the most keys. They go first, so that the threads finish together.
        const int64_t head = task / blocks, i0 = (blocks - 1 - task % blocks) * queries;
        FlashForward(held, queries, scratch + worker * deal.floats)
            .block(head / args.heads, head % args.heads, i0, smaller(queries, args.q_length - i0));
      }
    });
  }

  static Footprint footprint(const AttentionArgs& args, const Target& target) {
    const Deal deal(args, target);
    return {.scratch_bytes = deal.threads * deal.floats * 4};
  }

 private:
  struct Deal {
    int64_t threads, queries = kQueries, floats;  // queries per block, scratch per thread

    Deal(const AttentionArgs& args, const Target& target) {
      // Waking a thread takes microseconds, so it should get about 2^20 multiplications or more.
      const int64_t heads = args.batch * args.heads;
      const int64_t work = 2 * heads * args.q_length * args.kv_length * args.head_size;
      threads = larger(1, smaller(target.threads, work >> 20));
      while (queries > kWidth && heads * parts_of(args.q_length, queries) < 4 * threads) queries /= 2;
      floats = FlashForward(args, queries, nullptr).scratch_.floats;
    }
  };

  static constexpr int64_t kRunOfKeys = 32;
  static constexpr int64_t kQueries = kNativeBytes == 64 ? 256 : 128, kKeys = kQueries;

  FlashForward(const AttentionArgs& args, int64_t queries, float* scratch)
      : args_(args), d_h_(args.head_size), d_pitch_(round_up(d_h_, 16) + 16), scratch_{scratch} {
    q_ = scratch_.take(queries * d_h_);
    o_ = scratch_.take(queries * d_h_);
    k_ = scratch_.take(kKeys * d_pitch_);
    v_ = scratch_.take(kKeys * d_pitch_);
    rows_ = scratch_.take(kWidth * d_h_);
    scores_ = scratch_.take(kKeys * kWidth);
    bias_ = scratch_.take(args.mask ? kKeys * kWidth : 0);
    bias_rows_ = scratch_.take(args.mask ? kKeys * kWidth : 0);
    maximum_ = scratch_.take(queries);
    sum_ = scratch_.take(queries);
  }

  KeyRange visible(int64_t i) const {
    return visible_keys(i, args_.q_length, args_.kv_length, args_.is_causal, args_.window);
  }

  // Queries [i0, i0 + queries) of one head.
  void block(int64_t b, int64_t h, int64_t i0, int64_t queries) {
    const int64_t kv_head = h / (args_.heads / args_.kv_heads);
    const auto at = [&](const void* p, const AttentionStrides& strides, int64_t head) {
      return static_cast<const T*>(p) + b * strides.batch + head * strides.head;
    };
    const T* k = at(args_.k, args_.k_strides, kv_head);
    const T* v = at(args_.v, args_.v_strides, kv_head);
    mask_at_ = b * args_.mask_strides[0] + h * args_.mask_strides[1];
    start(at(args_.q, args_.q_strides, h) + i0 * args_.q_strides.token, queries);
    const KeyRange first = visible(i0), last = visible(i0 + queries - 1);
    const int64_t end = last.end;
    for (int64_t j0 = first.begin; j0 < end; j0 += kKeys) {
      const int64_t keys = smaller(kKeys, end - j0);
      load_tile(k + j0 * args_.k_strides.token, v + j0 * args_.v_strides.token, keys);
      const bool hides = args_.mask || j0 < last.begin || j0 + keys > first.end;
      has_to_choose_ = hides && !all_finite(v_, d_pitch_, keys, d_h_);
      for (int64_t i = 0; i < queries; i += kWidth) attend(i0 + i, smaller(kWidth, queries - i), i / kWidth, j0, keys);
    }
    T* out = static_cast<T*>(args_.out) + b * args_.out_strides.batch + h * args_.out_strides.head;
    finish(out + i0 * args_.out_strides.token, (b * args_.heads + h) * args_.q_length + i0, queries);
  }

  // Stores Q^T, scaled, in panels of kWidth columns, and clears the sums.
  void start(const T* q, int64_t queries) {
    for (int64_t i = 0; i < queries; i += kWidth) {
      const int64_t width = smaller(kWidth, queries - i);
      for (int64_t r = 0; r < width; ++r)
        convert_row(rows_ + r * d_h_, q + (i + r) * args_.q_strides.token, d_h_, args_.scale);
      if (width < kWidth) __builtin_memset(q_ + i * d_h_, 0, d_h_ * kWidth * 4);
      transpose(q_ + i * d_h_, kWidth, rows_, d_h_, d_h_, width);
    }
    const int64_t rounded = round_up(queries, kWidth);
    __builtin_memset(o_, 0, rounded * d_h_ * 4);
    for (int64_t i = 0; i < rounded; ++i) {
      maximum_[i] = -kInfinity;
      sum_[i] = 0;
    }
  }

  // Loads K and V as floats, with a row pitch that is not a power of two, so that rows do not share their cache sets.
  void load_tile(const T* k, const T* v, int64_t keys) {
    for (int64_t j = 0; j < keys; ++j) {
      convert_row(k_ + j * d_pitch_, k + j * args_.k_strides.token, d_h_);
      convert_row(v_ + j * d_pitch_, v + j * args_.v_strides.token, d_h_);
    }
  }

  // Processes one panel of queries, from i0 on, with the tile of keys from j0 on.
  void attend(int64_t i0, int64_t width, int64_t panel, int64_t j0, int64_t keys) {
    const KeyRange first = visible(i0), last = visible(i0 + width - 1);
    const int64_t begin = larger(first.begin, j0) - j0, end = smaller(last.end, j0 + keys) - j0;
    if (begin >= end) return;
    const float* q = q_ + panel * kWidth * d_h_;
    const int64_t d_h = d_h_, d_pitch = d_pitch_;
    const float *keys_begin = k_ + begin * d_pitch, *values = v_ + begin * d_pitch;
    float* scores = scores_;
    for_row_groups(
        end - begin, [&]<int kRows>(int64_t j) __attribute__((always_inline)) {
          register_tile<kRows, false>(d_h, keys_begin + j * d_pitch, d_pitch, q, kWidth, scores + j * kWidth, kWidth,
                                      Overwrite{});
        });
    if (args_.mask) add_mask(i0, width, j0 + begin, end - begin);
    const auto hide_unseen = [&] {
      for (int64_t j = begin; j < end; ++j)  // keys that the whole panel sees need no check
        if (j0 + j < last.begin || j0 + j >= first.end)
          hide(args_, scores + (j - begin) * kWidth, i0 + args_.kv_length - args_.q_length - j0 - j, 1);
    };
    hide_unseen();

    const Row alpha = softmax(scores, end - begin, maximum_ + panel * kWidth, sum_ + panel * kWidth);
    float* o = o_ + panel * kWidth * d_h;
    if (has_to_choose_) {
      hide_unseen();
      if (args_.mask) hide_masked(scores, bias_, (end - begin) * kWidth);
      return add_seen(end - begin, values, alpha, o);
    }
    for_row_groups(
        d_h, [&]<int kRows>(int64_t d) __attribute__((always_inline)) {
          register_tile<kRows, true>(end - begin, values + d, d_pitch, scores, kWidth, o + d * kWidth, kWidth,
                                     Rescale{alpha});
        });
  }

  // O^T = O^T alpha + V^T P^T over the visible pairs. The others are -inf in P^T and are skipped, because 0 times a NaN
  // in V is NaN.
  void add_seen(int64_t keys, const float* values, Row alpha, float* o) const {
    for (int64_t d = 0; d < d_h_; ++d)
      for (int v = 0; v < kVectors; ++v) {
        NativeFloat sum, weight;
        read(o + d * kWidth + v * kLanes, sum);
        sum *= alpha[v];
        for (int64_t j = 0; j < keys; ++j) {
          read(scores_ + j * kWidth + v * kLanes, weight);
          sum = weight == -kInfinity ? sum : sum + weight * values[j * d_pitch_ + d];
        }
        write(o + d * kWidth + v * kLanes, sum);
      }
  }

  // Turns the panel's scores into probabilities and returns the factor for the sums so far. Where no key was seen the
  // maximum is -inf, and all exponentials must be 0.
  static Row softmax(float* scores, int64_t keys, float* maximum, float* sum) {
    const Exp2 exp2;
    Row last, best, shift, total;
    for (int v = 0; v < kVectors; ++v) {
      read(maximum + v * kLanes, last[v]);
      read(sum + v * kLanes, total[v]);
      best[v] = last[v];
    }
    for (int64_t j = 0; j < keys; ++j)
      for (int v = 0; v < kVectors; ++v) {
        NativeFloat score;
        read(scores + j * kWidth + v * kLanes, score);
        best[v] = score > best[v] ? score : best[v];  // ignores NaN, which the exponentials will carry
      }
    Row alpha;
    for (int v = 0; v < kVectors; ++v) {
      shift[v] = best[v] == -kInfinity ? NativeFloat{} : best[v];
      alpha[v] = exp_difference(exp2, last[v], shift[v]);
      total[v] *= alpha[v];
    }
    for (int64_t begin = 0; begin < keys; begin += kRunOfKeys) {
      Row run = {};  // so that `total` takes few additions
      for (int64_t j = begin; j < smaller(begin + kRunOfKeys, keys); ++j)
        for (int v = 0; v < kVectors; ++v) {
          NativeFloat score;
          read(scores + j * kWidth + v * kLanes, score);
          score = exp_difference(exp2, score, shift[v]);
          write(scores + j * kWidth + v * kLanes, score);
          run[v] += score;
        }
      for (int v = 0; v < kVectors; ++v) total[v] += run[v];
    }
    for (int v = 0; v < kVectors; ++v) {
      write(maximum + v * kLanes, best[v]);
      write(sum + v * kLanes, total[v]);
    }
    return alpha;
  }

  // Adds the mask for `width` queries from i0 on and `keys` keys from j0 on.
  void add_mask(int64_t i0, int64_t width, int64_t j0, int64_t keys) {
    __builtin_memset(bias_, 0, keys * kWidth * 4);
    for (int64_t i = 0; i < width; ++i)
      load_mask<T>(args_, mask_at_ + (i0 + i) * args_.mask_strides[2] + j0 * args_.mask_strides[3], keys,
                   bias_rows_ + i * kKeys);
    transpose(bias_, kWidth, bias_rows_, kKeys, keys, width);
    for (int64_t n = 0; n < keys * kWidth; n += kLanes) {
      NativeFloat score, bias;
      read(scores_ + n, score);
      read(bias_ + n, bias);
      write(scores_ + n, masked(score, bias));
    }
  }

  // Stores the results of a block; `row` is that of its first query among those of all heads.
  void finish(T* out, int64_t row, int64_t queries) {
    for (int64_t i = 0; i < queries; i += kWidth) {
      const int64_t width = smaller(kWidth, queries - i);
      float* o = o_ + i * d_h_;
      for (int v = 0; v < kVectors; ++v) {
        NativeFloat sum, values;
        read(sum_ + i + v * kLanes, sum);
        const NativeFloat inverse = sum == 0.0f ? NativeFloat{} : 1.0f / sum;
        for (int64_t d = 0; d < d_h_; ++d) {
          read(o + d * kWidth + v * kLanes, values);
          write(o + d * kWidth + v * kLanes, values * inverse);
        }
        write(sum_ + i + v * kLanes, native_log(sum));
      }
      transpose(rows_, d_h_, o, kWidth, width, d_h_);
      for (int64_t r = 0; r < width; ++r) {
        convert_row(out + (i + r) * args_.out_strides.token, rows_ + r * d_h_, d_h_);
      }
      if (!args_.lse) continue;
      for (int64_t r = i; r < i + width; ++r) attention_store_lse(args_, row + r, maximum_[r], sum_[r]);
    }
  }

  const AttentionArgs& args_;
  const int64_t d_h_, d_pitch_;
  Scratch scratch_;
  float *q_, *o_;  // panels: (D_h, kWidth) each
  float *k_, *v_;  // one tile, with a row pitch of d_pitch_
  float* rows_;    // a panel's rows while they are copied in or out
  float *scores_, *bias_, *bias_rows_;
  float *maximum_, *sum_;
  int64_t mask_at_ = 0;
  bool has_to_choose_ = false;  // the tile has hidden pairs, and not all of V is finite
};

}  // namespace

void attention_cpu_v2_flash_simd(const AttentionArgs& args, Queue& queue) {
  with_float_element(args.dtype, [&]<class T>() { FlashForward<T>::run(args, queue); });
}

Footprint attention_cpu_v2_footprint(const AttentionArgs& args, const Target& target) {
  return with_float_element(args.dtype, [&]<class T>() { return FlashForward<T>::footprint(args, target); });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
