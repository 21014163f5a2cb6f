// attention_cpu_v3_split_kv: few queries over many keys, as when a model generates token by token. K and V are read
// once and hardly reused, so memory bandwidth binds. The keys are split over the threads, and the query heads that
// share a key head form one block of rows, which uses each tile of K and V while that is in cache. Each part leaves its
// sums, its maximum and its sum of exponentials in args.partial. A second pass combines the parts of a row:
//
//   m = max m_p    l = sum_p l_p e^(m_p - m)    out = sum_p o_p e^(m_p - m) / l
//
// K and V are read in their original layout: a score is a dot product along D_h, and the scores of one register's worth
// of keys are summed at a time. Summing across lanes costs as much for a short head as for a long one. Where many rows
// share the keys of a short head, a tile of K is transposed instead, and S = Q K^T runs on the register tile, as
// O (rows x D_h) += P V always does.
#include "kernels/attention/attention_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <int... kLane>
struct LaneIndices {};
template <int kCount, int... kLane>
struct MakeLaneIndices : MakeLaneIndices<kCount - 1, kCount - 1, kLane...> {};
template <int... kLane>
struct MakeLaneIndices<0, kLane...> {
  using type = LaneIndices<kLane...>;
};

// Adds lanes l and l ^ kHalf: from a where l & kHalf is 0, from b elsewhere.
template <int kHalf, int... kLane>
ROOFLAB_INLINE NativeFloat fold(NativeFloat a, NativeFloat b, LaneIndices<kLane...>) {
  constexpr int kB = static_cast<int>(kLanes);
  return shuffle<(kLane & kHalf ? kB + kLane : kLane)...>(a, b) +
         shuffle<(kLane & kHalf ? kB + kLane - kHalf : kLane + kHalf)...>(a, b);
}
// Lane l of the result is the sum of x[l].
template <int kHalf = 1>
ROOFLAB_INLINE NativeFloat sum_each(NativeFloat* x) {
  if constexpr (kHalf == kLanes) {
    return x[0];
  } else {
    for (int n = 0; n < kLanes; n += 2 * kHalf)
      x[n] = fold<kHalf>(x[n], x[n + kHalf], typename MakeLaneIndices<static_cast<int>(kLanes)>::type{});
    return sum_each<2 * kHalf>(x);
  }
}

template <class T>
class SplitAttention {
 public:
  static void run(AttentionArgs args, Queue& queue) {
    const Deal deal(args, queue.target());
    args.partial = queue.scratch<float>(deal.scratch_floats());
    args.kv_length = held_keys(args);
    float* scratch = args.partial + deal.partial_floats;
    queue.parallel(deal.heads * deal.parts, 1, deal.threads, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t task = begin; task < end; ++task)
        SplitAttention(args, scratch + worker * deal.floats).part(task / deal.parts, task % deal.parts, deal.parts);
    });
    const SplitAttention joiner(args, nullptr);
    queue.parallel(deal.rows, parts_of(deal.rows, deal.threads), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) joiner.join(row, deal.parts);
    });
  }

  static Footprint footprint(const AttentionArgs& args, const Target& target) {
    return {.scratch_bytes = Deal(args, target).scratch_floats() * 4};
  }

 private:
  struct Deal {
    int64_t heads, rows, threads, parts, partial_floats, floats;  // the last: scratch per thread

    Deal(const AttentionArgs& args, const Target& target) {
      heads = args.batch * args.kv_heads;
      rows = args.batch * args.heads * args.q_length;
      const int64_t bytes = 2 * heads * args.kv_length * args.head_size * static_cast<int64_t>(sizeof(T));
      threads = larger(1, smaller(target.threads, bytes >> 17));  // a thread is worth waking for 128 KiB
      parts = smaller(attention_splits(args), larger(1, parts_of(4 * threads, heads)));
      partial_floats = round_up(parts * rows * (args.head_size + 2), 16);
      floats = SplitAttention(args, nullptr).scratch_.floats;
    }
    int64_t scratch_floats() const { return partial_floats + threads * floats; }
  };

  static constexpr int64_t kKeys = 64, kPitch = kKeys + 16;
  static constexpr int64_t kRowsToTranspose = 12;  // times the rows: the longest head whose keys are transposed

  SplitAttention(const AttentionArgs& args, float* scratch)
      : args_(args),
        d_h_(args.head_size),
        d_pitch_(round_up(d_h_, kWidth) + 16),
        group_(args.heads / args.kv_heads),
        rows_(group_ * args.q_length),
        scratch_{scratch} {
    q_ = scratch_.take(rows_ * d_pitch_);
    o_ = scratch_.take(rows_ * d_pitch_);
    v_ = scratch_.take(kKeys * d_pitch_);
    k_ = scratch_.take(transposes() ? d_h_ * kPitch : 0);
    p_ = scratch_.take(rows_ * kPitch);
    maximum_ = scratch_.take(rows_);
    sum_ = scratch_.take(rows_);
  }

  bool transposes() const { return kRowsToTranspose * rows_ >= d_h_; }

  // Row r of a key head: query r % L_q of the group's query head r / L_q.
  int64_t query(int64_t r) const { return r % args_.q_length; }
  KeyRange visible(int64_t i) const {
    return visible_keys(i, args_.q_length, args_.kv_length, args_.is_causal, args_.window);
  }
  float* partial(int64_t part, int64_t row) const {
    const int64_t all = args_.batch * args_.heads * args_.q_length;
    return args_.partial + (part * all + row) * (d_h_ + 2);
  }

  void part(int64_t kv_head, int64_t part, int64_t parts) {
    const int64_t b = kv_head / args_.kv_heads, g = kv_head % args_.kv_heads;
    const auto at = [&](const void* p, const AttentionStrides& strides, int64_t head, int64_t token) {
      return static_cast<const T*>(p) + b * strides.batch + head * strides.head + token * strides.token;
    };
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t h = g * group_ + r / args_.q_length;
      convert_row(q_ + r * d_pitch_, at(args_.q, args_.q_strides, h, query(r)), d_h_, args_.scale);
      maximum_[r] = -kInfinity;
      sum_[r] = 0;
    }
    __builtin_memset(o_, 0, rows_ * d_pitch_ * 4);

    const int64_t first = visible(0).begin, keys = larger(visible(args_.q_length - 1).end - first, 0);
    const int64_t end = first + keys * (part + 1) / parts;
    for (int64_t j = first + keys * part / parts; j < end; j += kKeys) {
      const int64_t count = smaller(kKeys, end - j);
      tile(b, g, at(args_.k, args_.k_strides, g, j), at(args_.v, args_.v_strides, g, j), j, count, end - j - count);
    }
    for (int64_t r = 0; r < rows_; ++r) {
      float* out = partial(part, (b * args_.heads + g * group_) * args_.q_length + r);
      convert_row(out, o_ + r * d_pitch_, d_h_);
      out[d_h_] = maximum_[r];
      out[d_h_ + 1] = sum_[r];
    }
  }

  // Processes the rows with the keys from j0 on; `more` keys of the part come after these.
  void tile(int64_t b, int64_t g, const T* k, const T* v, int64_t j0, int64_t keys, int64_t more) {
    const int64_t d_h = d_h_;
    for (int64_t j = 0; j < keys; j += kLanes) {
      for (int64_t n = j + keys; n < smaller(j + kLanes + keys, keys + more); ++n) {  // prefetched during the work
        prefetch_row(k + n * args_.k_strides.token, d_h);
        prefetch_row(v + n * args_.v_strides.token, d_h);
      }
      if (!transposes()) dots(k + j * args_.k_strides.token, smaller(kLanes, keys - j), p_ + j);
    }
    if (transposes()) products(k, keys);
    for (int64_t r = 0; r < rows_; ++r) {
      mask(b, g, r, j0, keys);
      softmax(r, round_up(keys, kLanes));
    }

    const int64_t v_step = args_.v_strides.token;
    bool hides = args_.mask != nullptr;
    for (int64_t r = 0; r < rows_; ++r) hides |= sees_part(visible(query(r)), j0, keys);
    const bool has_to_choose = hides && !all_finite(v, v_step, keys, d_h);
    if (d_h % kWidth == 0 && (sizeof(T) == 4 || rows_ <= kTileRows) && !has_to_choose)  // each is read in place, once
      return add_products(keys, p_, kPitch, v, v_step, d_h, o_, d_pitch_, Accumulate{});
    convert(v, v_step, keys);
    if (has_to_choose) return add_seen(b, g, j0, keys);
    add_products(keys, p_, kPitch, v_, d_pitch_, d_h, o_, d_pitch_, Accumulate{});
  }

  // Copies rows of K or V into v_, as floats.
  void convert(const T* x, int64_t step, int64_t rows) const {
    for (int64_t j = 0; j < rows; ++j) convert_row(v_ + j * d_pitch_, x + j * step, d_h_);
  }

  // c (rows x columns) = a (rows x depth) b (depth x columns), added to what `old` makes of c.
  template <class B, class Old>
  void add_products(int64_t depth, const float* a, int64_t a_step, const B* b, int64_t b_step, int64_t columns,
                    float* c, int64_t c_step, Old old) const {
    for_row_groups(
        rows_, [&]<int kRows>(int64_t r) __attribute__((always_inline)) {
          for (int64_t d = 0; d < columns; d += kWidth)
            register_tile<kRows, false>(depth, a + r * a_step, a_step, b + d, b_step, c + r * c_step + d, c_step, old);
        });
  }

  // Scores of all rows with all keys of a tile, whose transpose is (D_h, kPitch).
  void products(const T* k, int64_t keys) const {
    const int64_t step = args_.k_strides.token;
    if constexpr (sizeof(T) == 4) {
      transpose(k_, kPitch, reinterpret_cast<const float*>(k), step, d_h_, keys);
    } else {
      convert(k, step, keys);
      transpose(k_, kPitch, v_, d_pitch_, d_h_, keys);
    }
    add_products(d_h_, q_, d_pitch_, k_, kPitch, round_up(keys, kLanes), p_, kPitch, Overwrite{});
  }

  // Scores of all rows with one register's worth of keys. Where there are fewer keys, the last one fills the other
  // lanes.
  void dots(const T* k, int64_t keys, float* scores) const {
    const T* rows[kLanes];
    for (int64_t n = 0; n < kLanes; ++n) rows[n] = k + smaller(n, keys - 1) * args_.k_strides.token;
    for (int64_t r = 0; r < rows_; ++r) {
      const float* q = q_ + r * d_pitch_;
      NativeFloat sums[kLanes] = {}, query, key;
      int64_t d = 0;
      for (; d + kLanes <= d_h_; d += kLanes) {
        read(q + d, query);
        for (int64_t n = 0; n < kLanes; ++n) {
          read(rows[n] + d, key);
          sums[n] = native_fma(key, query, sums[n]);
        }
      }
      if (d < d_h_) {
        query = load<float>(q + d, d_h_ - d).part[0];
        for (int64_t n = 0; n < kLanes; ++n)
          sums[n] = native_fma(load<T>(rows[n] + d, d_h_ - d).part[0], query, sums[n]);
      }
      write(scores + r * kPitch, sum_each(sums));
    }
  }

  static bool sees_part(KeyRange seen, int64_t j0, int64_t keys) { return seen.begin > j0 || seen.end < j0 + keys; }

  // O += P V over the visible pairs, with V in v_. The others are skipped, because 0 times a NaN in V is NaN.
  void add_seen(int64_t b, int64_t g, int64_t j0, int64_t keys) {
    for (int64_t r = 0; r < rows_; ++r) {
      float *p = p_ + r * kPitch, *o = o_ + r * d_pitch_, bias[kKeys] = {};
      if (args_.mask) load_bias(b, g, r, j0, keys, bias);
      hide_masked(p, bias, keys);
      hide_unseen(r, j0, keys);
      for (int64_t j = 0; j < keys; ++j)
        if (p[j] != -kInfinity)
          for (int64_t d = 0; d < d_h_; ++d) o[d] += p[j] * v_[j * d_pitch_ + d];
    }
  }

  void load_bias(int64_t b, int64_t g, int64_t r, int64_t j0, int64_t keys, float* bias) const {
    const int64_t *strides = args_.mask_strides, h = g * group_ + r / args_.q_length;
    load_mask<T>(args_, b * strides[0] + h * strides[1] + query(r) * strides[2] + j0 * strides[3], keys, bias);
  }
  void hide_unseen(int64_t r, int64_t j0, int64_t keys) {
    const int64_t i = query(r);
    if (sees_part(visible(i), j0, keys))
      for (int64_t j = 0; j < keys; j += kWidth)
        hide(args_, p_ + r * kPitch + j, i + args_.kv_length - args_.q_length - j0 - j, -1);
  }

  // Hides the keys of the tile that row r may not see, and the lanes past the last key.
  void mask(int64_t b, int64_t g, int64_t r, int64_t j0, int64_t keys) {
    float* scores = p_ + r * kPitch;
    if (args_.mask) {
      float bias[kKeys] = {};
      load_bias(b, g, r, j0, keys, bias);
      for (int64_t j = 0; j < keys; j += kLanes) {
        NativeFloat score, more;
        read(scores + j, score);
        read(bias + j, more);
        write(scores + j, masked(score, more));
      }
    }
    hide_unseen(r, j0, keys);
    for (int64_t j = keys; j < round_up(keys, kLanes); ++j) scores[j] = -kInfinity;
  }

  // Turns a row of scores into probabilities and scales down the row's sums so far. Where no key was seen the maximum
  // is -inf, and all exponentials must be 0.
  void softmax(int64_t r, int64_t lanes) {
    const Exp2 exp2;
    float *scores = p_ + r * kPitch, *o = o_ + r * d_pitch_;
    NativeFloat score, best = NativeFloat{} + maximum_[r], total = {};
    for (int64_t j = 0; j < lanes; j += kLanes) {
      read(scores + j, score);
      best = score > best ? score : best;
    }
    float maximum = best[0];
    for (int i = 1; i < kLanes; ++i) maximum = best[i] > maximum ? best[i] : maximum;
    const float shift = maximum == -kInfinity ? 0.0f : maximum;
    for (int64_t j = 0; j < lanes; j += kLanes) {
      read(scores + j, score);
      score = exp_difference(exp2, score, NativeFloat{} + shift);
      write(scores + j, score);
      total += score;
    }
    const float alpha = exp_difference(exp2, NativeFloat{} + maximum_[r], NativeFloat{} + shift)[0];
    sum_[r] *= alpha;
    for (int i = 0; i < kLanes; ++i) sum_[r] += total[i];
    if (alpha != 1) convert_row(o, o, d_h_, alpha);
    maximum_[r] = maximum;
  }

  // One row of the result. The sums of all parts are accumulated into those of the first part.
  void join(int64_t row, int64_t parts) const {
    const Exp2 exp2;
    float maximum = -kInfinity, sum = 0;
    for (int64_t n = 0; n < parts; ++n) {
      const float m = partial(n, row)[d_h_];
      maximum = m > maximum ? m : maximum;
    }
    const float shift = maximum == -kInfinity ? 0.0f : maximum;
    float* total = partial(0, row);
    for (int64_t n = 0; n < parts; ++n) {
      const float* sums = partial(n, row);
      const float weight = exp_difference(exp2, NativeFloat{} + sums[d_h_], NativeFloat{} + shift)[0];
      sum += weight * sums[d_h_ + 1];
      for (int64_t d = 0; d < d_h_; ++d) total[d] = (n ? total[d] : 0.0f) + weight * sums[d];
    }
    const int64_t head = row / args_.q_length, b = head / args_.heads, h = head % args_.heads, i = row % args_.q_length;
    const AttentionStrides& strides = args_.out_strides;
    convert_row(static_cast<T*>(args_.out) + b * strides.batch + h * strides.head + i * strides.token, total, d_h_,
                sum == 0 ? 0.0f : 1 / sum);
    if (args_.lse) attention_store_lse(args_, row, maximum, native_log(NativeFloat{} + sum)[0]);
  }

  const AttentionArgs& args_;
  const int64_t d_h_, d_pitch_, group_, rows_;
  Scratch scratch_;
  float *q_, *o_;  // with a row pitch of d_pitch_
  float* v_;       // a tile of V, or of K to transpose, with a row pitch of d_pitch_
  float* k_;       // a tile of K, transposed, with a row pitch of kPitch
  float* p_;       // scores, with a row pitch of kPitch
  float *maximum_, *sum_;
};

}  // namespace

void attention_cpu_v3_split_kv(const AttentionArgs& args, Queue& queue) {
  with_float_element(args.dtype, [&]<class T>() { SplitAttention<T>::run(args, queue); });
}

Footprint attention_cpu_v3_footprint(const AttentionArgs& args, const Target& target) {
  return with_float_element(args.dtype, [&]<class T>() { return SplitAttention<T>::footprint(args, target); });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
