// attention_backward_cpu_v2_flash_simd: all five products run on the register tile of the forward pass. A block of keys
// lies across the vector lanes, in panels of kWidth, and tiles of queries pass by as rows:
//
//   S (rows x kWidth) = Q K^T      dP = dO V^T         K^T, V^T packed once per block; Q and dO broadcast
//   P = e^(S - lse)                dS = P (dP - D)     lse and D of a row are scalars: no reduction is needed
//   dV^T (D_h x kWidth) += dO^T P  dK^T += Q^T dS      dO and Q broadcast again, a column at a time
//   dQ (rows x D_h) += dS K                            after all panels: the depth is the whole block
//
// Here Q in S and dK, and K in dQ, are scaled. So S has the bits of the forward pass, and dS needs no factor.
//
// One thread works on one key head, so each sum has a fixed order. Where there are fewer heads than threads, several
// threads share the key blocks of a head and accumulate dQ separately. These partial sums are then added, always in the
// same order.
#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// The products of a tile are functions outside the class: they do not depend on the element type, and their many
// register tiles take most of the time to compile.

// c (rows x kWidth) = a (rows x depth) panel (depth x kWidth).
[[gnu::noinline]] void multiply_rows(int64_t rows, int64_t depth, const float* a, int64_t a_step, const float* panel,
                                     float* c, int64_t c_step) {
  for_row_groups(
      rows, [&]<int kGroup>(int64_t r) __attribute__((always_inline)) {
        register_tile<kGroup, false>(depth, a + r * a_step, a_step, panel, kWidth, c + r * c_step, c_step, Overwrite{});
      });
}

// panel (columns x kWidth) += a^T b, where a is (depth x columns) and b is (depth x kWidth).
[[gnu::noinline]] void add_transposed(int64_t columns, int64_t depth, const float* a, int64_t a_step, const float* b,
                                      int64_t b_step, float* panel) {
  for_row_groups(
      columns, [&]<int kGroup>(int64_t d) __attribute__((always_inline)) {
        register_tile<kGroup, true>(depth, a + d, a_step, b, b_step, panel + d * kWidth, kWidth, Accumulate{});
      });
}

// c (kRows x columns) += a (kRows x depth) b (depth x columns); rows of b are readable up to a multiple of kWidth.
template <int kRows>
[[gnu::noinline]] void add_rows(int64_t columns, int64_t depth, const float* a, int64_t a_step, const float* b,
                                int64_t b_step, float* c, int64_t c_step) {
  int64_t d = 0;
  for (; d + kWidth <= columns; d += kWidth)
    register_tile<kRows, false>(depth, a, a_step, b + d, b_step, c + d, c_step, Accumulate{});
  if (d == columns) return;
  float ragged[kRows * kWidth];
  register_tile<kRows, false>(depth, a, a_step, b + d, b_step, ragged, kWidth, Overwrite{});
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t n = 0; n < columns - d; ++n) c[row * c_step + d + n] += ragged[row * kWidth + n];
}

template <class T>
class FlashBackward {
 public:
  static void run(AttentionBackwardArgs args, Queue& queue) {
    const Deal deal(args, queue.target());
    args.delta = queue.scratch<float>(deal.scratch_floats());
    args.dq_sum = kInPlace ? nullptr : args.delta + deal.delta_floats;
    float* sums = args.delta + deal.delta_floats + deal.dq_sum_floats;
    float* scratch = sums + (deal.parts - 1) * deal.part_floats;
    const FlashBackward whole(args, nullptr, nullptr, deal.parts);
    queue.parallel(deal.rows, parts_of(deal.rows, deal.threads), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) whole.start_query(row);
    });
    const int64_t parts = deal.parts, kv_heads = args.forward.kv_heads;
    queue.parallel(deal.tasks * parts, 1, deal.threads, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task % parts, head = task / parts;
        FlashBackward one(args, scratch + worker * deal.floats, part ? sums + (part - 1) * deal.part_floats : nullptr,
                          parts);
        for (int64_t block = part; block < deal.blocks; block += parts)
          one.key_block(head / kv_heads, head % kv_heads, block * kKeys, block == part);
      }
    });
    if (parts == 1 && kInPlace) return;
    queue.parallel(deal.rows, parts_of(deal.rows, deal.threads), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) whole.finish_query(row, sums, deal.part_floats);
    });
  }

  static Footprint footprint(const AttentionBackwardArgs& args, const Target& target) {
    return {.scratch_bytes = Deal(args, target).scratch_floats() * 4};
  }

 private:
  static constexpr int64_t kKeys = kNativeBytes == 64 ? 128 : 96, kRows = 64;
  static constexpr int64_t kPitch = kKeys + 16;     // of scores: a power of two would make all rows share cache sets
  static constexpr bool kInPlace = sizeof(T) == 4;  // dq can hold sums

  struct Deal {
    int64_t tasks, rows, threads, blocks, parts;
    int64_t delta_floats, dq_sum_floats, part_floats, floats;  // scratch: in all, per part, per thread

    Deal(const AttentionBackwardArgs& args, const Target& target) {
      const AttentionArgs& forward = args.forward;
      tasks = forward.batch * forward.kv_heads;
      rows = forward.batch * forward.heads * forward.q_length;
      const int64_t work = 5 * rows * forward.kv_length * forward.head_size;
      threads = larger(1, smaller(target.threads, work >> 20));
      blocks = larger(1, parts_of(forward.kv_length, kKeys));
      parts = tasks == 0 || tasks >= 2 * threads ? 1 : smaller(smaller(threads, 2 * threads / tasks), blocks);
      delta_floats = forward.batch * forward.heads * attention_rounded_rows(forward.q_length);
      dq_sum_floats = kInPlace ? 0 : round_up(delta_floats * forward.head_size, 16);
      part_floats = round_up(rows * forward.head_size, 16);
      floats = FlashBackward(args, nullptr, nullptr, parts).scratch_.floats;
    }
    int64_t scratch_floats() const {
      return delta_floats + dq_sum_floats + (parts - 1) * part_floats + threads * floats;
    }
  };

  FlashBackward(const AttentionBackwardArgs& args, float* scratch, float* dq_sums, int64_t parts)
      : args_(args),
        f_(args.forward),
        d_h_(f_.head_size),
        d_pitch_(round_up(d_h_, 16) + 16),
        dq_sums_(dq_sums),
        parts_(parts),
        scratch_{scratch} {
    for (float** panels : {&k_, &v_, &dk_, &dv_}) *panels = scratch_.take(kKeys * d_h_);
    k_rows_ = scratch_.take(kKeys * d_pitch_);
    q_rows_ = scratch_.take(kRows * d_pitch_);
    dout_rows_ = scratch_.take(kRows * d_pitch_);
    p_ = scratch_.take(kRows * kPitch);
    ds_ = scratch_.take(kRows * kPitch);
    rows_ = scratch_.take(kWidth * d_h_);
  }

  static const T* at(const void* p, const AttentionStrides& strides, int64_t b, int64_t head, int64_t token) {
    return static_cast<const T*>(p) + b * strides.batch + head * strides.head + token * strides.token;
  }
  static T* at(void* p, const AttentionStrides& strides, int64_t b, int64_t head, int64_t token) {
    return static_cast<T*>(p) + b * strides.batch + head * strides.head + token * strides.token;
  }
  KeyRange visible(int64_t i) const { return visible_keys(i, f_.q_length, f_.kv_length, f_.is_causal, f_.window); }
  // The queries that may see some key of [begin, end).
  KeyRange seeing(int64_t begin, int64_t end) const {
    const int64_t shift = f_.kv_length - f_.q_length;
    const int64_t first = larger((f_.is_causal ? begin : begin - f_.window + 1) - shift, 0);
    return {first, larger(first, smaller(end - 1 + f_.window - shift, f_.q_length))};
  }

  // Where this worker accumulates dQ, and the distance from token to token.
  float* dq_sum(int64_t b, int64_t h, int64_t i) const {
    if (dq_sums_) return dq_sums_ + ((b * f_.heads + h) * f_.q_length + i) * d_h_;
    if constexpr (kInPlace)
      return at(args_.dq, args_.dq_strides, b, h, i);
    else
      return args_.dq_sum + ((b * f_.heads + h) * attention_rounded_rows(f_.q_length) + i) * d_h_;
  }

  // D of one query.
  void start_query(int64_t row) const {
    const int64_t head = row / f_.q_length, b = head / f_.heads, h = head % f_.heads, i = row % f_.q_length;
    const T* out = at(f_.out, f_.out_strides, b, h, i);
    const T* dout = at(args_.dout, args_.dout_strides, b, h, i);
    F32x16 total = 0;
    for (int64_t d = 0; d < d_h_; d += F32x16::kLanes) {
      const int64_t n = smaller(F32x16::kLanes, d_h_ - d);
      total = n == F32x16::kLanes ? fma(load<T>(out + d), load<T>(dout + d), total)
                                  : fma(load<T>(out + d, n), load<T>(dout + d, n), total);
    }
    args_.delta[head * attention_rounded_rows(f_.q_length) + i] = sum(total);
  }

  // dQ of one query: adds up the sums of all parts.
  void finish_query(int64_t row, const float* sums, int64_t part_floats) const {
    const int64_t head = row / f_.q_length, b = head / f_.heads, h = head % f_.heads, i = row % f_.q_length;
    float* total = dq_sum(b, h, i);
    for (int64_t part = 1; part < parts_; ++part) {
      const float* more = sums + (part - 1) * part_floats + row * d_h_;
      for (int64_t d = 0; d < d_h_; ++d) total[d] += more[d];
    }
    if constexpr (!kInPlace) convert_row(at(args_.dq, args_.dq_strides, b, h, i), total, d_h_);
  }

  // Computes dK and dV of the keys from j0 on, and adds what they contribute to dQ.
  void key_block(int64_t b, int64_t kv_head, int64_t j0, bool first) {
    const int64_t keys = smaller(kKeys, f_.kv_length - j0), group = f_.heads / f_.kv_heads;
    const T* k = at(f_.k, f_.k_strides, b, kv_head, j0);
    pack(k_, k, f_.k_strides.token, keys);
    pack(v_, at(f_.v, f_.v_strides, b, kv_head, j0), f_.v_strides.token, keys);
    copy_rows(k_rows_, k, f_.k_strides.token, keys, f_.scale);
    __builtin_memset(dk_, 0, kKeys * d_h_ * 4);
    __builtin_memset(dv_, 0, kKeys * d_h_ * 4);
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      if (first)
        for (int64_t i = 0; i < f_.q_length; ++i) __builtin_memset(dq_sum(b, h, i), 0, d_h_ * 4);
      const KeyRange queries = seeing(j0, j0 + keys);
      if (keys > 0)
        for (int64_t i0 = queries.begin; i0 < queries.end; i0 += kRows)
          query_tile(b, h, i0, smaller(kRows, queries.end - i0), j0, keys);
    }
    unpack(at(args_.dk, args_.dk_strides, b, kv_head, j0), args_.dk_strides.token, dk_, keys);
    unpack(at(args_.dv, args_.dv_strides, b, kv_head, j0), args_.dv_strides.token, dv_, keys);
  }

  // Turns rows into columns of panels, and back.
  void pack(float* panels, const T* x, int64_t step, int64_t keys) {
    for (int64_t j = 0; j < keys; j += kWidth) {
      const int64_t width = smaller(kWidth, keys - j);
      for (int64_t r = 0; r < width; ++r) convert_row(rows_ + r * d_h_, x + (j + r) * step, d_h_);
      if (width < kWidth) __builtin_memset(panels + j * d_h_, 0, d_h_ * kWidth * 4);
      transpose(panels + j * d_h_, kWidth, rows_, d_h_, d_h_, width);
    }
  }
  void unpack(T* x, int64_t step, const float* panels, int64_t keys) {
    for (int64_t j = 0; j < keys; j += kWidth) {
      const int64_t width = smaller(kWidth, keys - j);
      transpose(rows_, d_h_, panels + j * d_h_, kWidth, width, d_h_);
      for (int64_t r = 0; r < width; ++r) convert_row(x + (j + r) * step, rows_ + r * d_h_, d_h_);
    }
  }
  // Copies rows as floats, times `factor`; the rest is filled with zeros.
  void copy_rows(float* rows, const T* x, int64_t step, int64_t count, float factor = 1) const {
    for (int64_t r = 0; r < count; ++r) {
      convert_row(rows + r * d_pitch_, x + r * step, d_h_, factor);
      for (int64_t d = d_h_; d < d_pitch_; ++d) rows[r * d_pitch_ + d] = 0;
    }
  }

  void query_tile(int64_t b, int64_t h, int64_t i0, int64_t rows, int64_t j0, int64_t keys) {
    copy_rows(q_rows_, at(f_.q, f_.q_strides, b, h, i0), f_.q_strides.token, rows, f_.scale);
    copy_rows(dout_rows_, at(args_.dout, args_.dout_strides, b, h, i0), args_.dout_strides.token, rows);
    const bool all_seen = visible(i0 + rows - 1).begin <= j0 && visible(i0).end >= j0 + keys;
    if (!all_seen) __builtin_memset(ds_, 0, rows * kPitch * 4);
    has_to_choose_ = (f_.mask || !all_seen) && !all_finite(dout_rows_, d_pitch_, rows, d_h_);
    for (int64_t j = 0; j < keys; j += kWidth) {
      const KeyRange queries = seeing(j0 + j, j0 + smaller(j + kWidth, keys));
      const int64_t begin = larger(queries.begin, i0) - i0, end = smaller(queries.end, i0 + rows) - i0;
      if (begin < end) panel(b, h, i0, begin, end, j0, j, smaller(kWidth, keys - j), all_seen);
    }

    for_row_groups(
        rows, [&]<int kGroup>(int64_t r) __attribute__((always_inline)) {
          const int64_t begin = larger(visible(i0 + r).begin - j0, 0);
          const int64_t end = smaller(visible(i0 + r + kGroup - 1).end - j0, keys);
          if (begin >= end) return;
          float* dq = dq_sum(b, h, i0 + r);
          const int64_t dq_step = kGroup > 1 ? dq_sum(b, h, i0 + r + 1) - dq : 0;
          add_rows<kGroup>(d_h_, end - begin, ds_ + r * kPitch + begin, kPitch, k_rows_ + begin * d_pitch_, d_pitch_,
                           dq, dq_step);
        });
  }

  // Multiplies the tile's rows [begin, end) with one panel of keys, from key j of the block on.
  void panel(int64_t b, int64_t h, int64_t i0, int64_t begin, int64_t end, int64_t j0, int64_t j, int64_t width,
             bool all_seen) {
    const int64_t rows = end - begin;
    const float *q = q_rows_ + begin * d_pitch_, *dout = dout_rows_ + begin * d_pitch_;
    float *p = p_ + begin * kPitch + j, *ds = ds_ + begin * kPitch + j;
    multiply_rows(rows, d_h_, q, d_pitch_, k_ + j * d_h_, p, kPitch);
    multiply_rows(rows, d_h_, dout, d_pitch_, v_ + j * d_h_, ds, kPitch);
    const int64_t head = b * f_.heads + h, i = i0 + begin;
    if (f_.mask) {
      float bias[kWidth] = {};
      const int64_t* strides = f_.mask_strides;
      for (int64_t r = 0; r < rows; ++r) {
        load_mask<T>(f_, b * strides[0] + h * strides[1] + (i + r) * strides[2] + (j0 + j) * strides[3], width, bias);
        for (int v = 0; v < kVectors; ++v) {
          NativeFloat score, more;
          read(p + r * kPitch + v * kLanes, score);
          read(bias + v * kLanes, more);
          write(p + r * kPitch + v * kLanes, masked(score, more));
        }
      }
    }
    if (!all_seen)
      for (int64_t r = 0; r < rows; ++r) hide(f_, p + r * kPitch, i + r + f_.kv_length - f_.q_length - j0 - j, -1);

    const Exp2 exp2;
    const float* lse = f_.lse + head * f_.q_length + i;
    const float* rest = f_.lse_rest ? f_.lse_rest + head * f_.q_length + i : nullptr;
    const float* delta = args_.delta + head * attention_rounded_rows(f_.q_length) + i;
    for (int64_t r = 0; r < rows; ++r) {
      const bool sees_none = lse[r] == -kInfinity;  // then all probabilities are 0
      const float shift = sees_none ? 0 : lse[r], more = sees_none ? kInfinity : rest ? rest[r] * kLog2E : 0;
      for (int v = 0; v < kVectors; ++v) {
        NativeFloat score, dp;
        read(p + r * kPitch + v * kLanes, score);
        read(ds + r * kPitch + v * kLanes, dp);
        const NativeFloat probability = exp2((score - shift) * kLog2E - more);
        write(p + r * kPitch + v * kLanes, probability);
        const NativeFloat slope = probability * (dp - delta[r]);  // NaN where v is
        write(ds + r * kPitch + v * kLanes, probability == 0.0f ? NativeFloat{} : slope);
      }
    }
    if (has_to_choose_)
      add_seen(rows, dout, p, dv_ + j * d_h_);
    else
      add_transposed(d_h_, rows, dout, d_pitch_, p, kPitch, dv_ + j * d_h_);
    add_transposed(d_h_, rows, q, d_pitch_, ds, kPitch, dk_ + j * d_h_);
  }

  // dV^T += dO^T P over the pairs whose weight is not 0. The others are skipped, because 0 times a NaN in dO is NaN.
  void add_seen(int64_t rows, const float* dout, const float* p, float* dv) const {
    for (int64_t d = 0; d < d_h_; ++d)
      for (int v = 0; v < kVectors; ++v) {
        NativeFloat sum, weight;
        read(dv + d * kWidth + v * kLanes, sum);
        for (int64_t r = 0; r < rows; ++r) {
          read(p + r * kPitch + v * kLanes, weight);
          sum = weight == 0.0f ? sum : sum + weight * dout[r * d_pitch_ + d];
        }
        write(dv + d * kWidth + v * kLanes, sum);
      }
  }

  const AttentionBackwardArgs& args_;
  const AttentionArgs& f_;
  const int64_t d_h_, d_pitch_;
  float* const dq_sums_;  // of this part, (B, H, L_q, D_h); null: dq or dq_sum is used
  const int64_t parts_;
  Scratch scratch_;
  float *k_, *v_, *dk_, *dv_;             // panels, (D_h, kWidth) each
  float *k_rows_, *q_rows_, *dout_rows_;  // rows of d_pitch_
  float *p_, *ds_;                        // rows of kPitch
  float* rows_;                           // a panel's rows while they are copied in or out
  bool has_to_choose_ = false;            // the tile has hidden pairs, and not all of dO is finite
};

}  // namespace

void attention_backward_cpu_v2_flash_simd(const AttentionBackwardArgs& args, Queue& queue) {
  with_float_element(args.forward.dtype, [&]<class T>() { FlashBackward<T>::run(args, queue); });
}

Footprint attention_backward_cpu_v2_footprint(const AttentionBackwardArgs& args, const Target& target) {
  return with_float_element(args.forward.dtype, [&]<class T>() { return FlashBackward<T>::footprint(args, target); });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
