// The loops around a register micro-kernel, after Goto and BLIS; included by files that are compiled per instruction
// set.
//
//   for j0 in N by kNc              B panel, kKc x kNc: packed once, shared by all threads, stays in the L3 cache
//     for p0 in K by kKc
//       for i0 in M by kMc          A block, kMc x kKc: packed by the thread that uses it, stays in its L2 (threads)
//         for j in the panel by kNr      micro-panel of B, kKc x kNr: stays in L1
//           for i in the block by kMr    micro-kernel: kMr x kNr sums in registers
//
// Packing arranges a micro-panel in the order in which the micro-kernel reads it, zero-padded to its full width, and so
// takes care of strides, ragged sizes and conversions. An operand that is used only a few times is not worth packing:
// the micro-kernel then reads it in place.
//
// A Kernel has: T (storage), Acc (sums), Packed (panels), kMr, kNr, kKStep (depth of one step), kKc, kMc, kNc, kDirect
// (reads unpacked operands), kDirectRows and kDirectColumns (up to so many rows of A, and exactly so many columns of B,
// are read in place though they do not fill a tile), Session (what a thread holds while it works), pack_a, pack_b,
// tile.
#pragma once

#include "kernels/common/simd.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// The size of equal parts of `total`, each a multiple of `step` and at most `limit`.
inline int64_t even_part(int64_t total, int64_t limit, int64_t step) {
  const int64_t parts = parts_of(total, limit);
  return round_up((total + parts - 1) / parts, step);
}

template <class Kernel>
class PackedMatmul {
 public:
  using T = typename Kernel::T;
  using Acc = typename Kernel::Acc;
  using Packed = typename Kernel::Packed;
  static constexpr int64_t kMr = Kernel::kMr, kNr = Kernel::kNr;
  static constexpr bool kNarrow = sizeof(T) != sizeof(Acc);  // C cannot hold partial sums

  static void run(const MatmulArgs& args, Queue& queue) {
    if (is_empty(args)) return;
    const Deal deal(args, queue.target());
    PackedMatmul plan(args, deal.threads_of_matrix());
    const int64_t bytes = plan.scratch_bytes();
    char* scratch = queue.scratch<char>(bytes * deal.plans());
    if (!deal.by_matrix) {
      plan.use_scratch(scratch);
      for (int64_t i = 0; i < args.batch; ++i) plan.multiply(args, i, queue);
      return;
    }
    queue.parallel(args.batch, 1, deal.threads, [&](int64_t begin, int64_t end, int worker) {
      PackedMatmul mine = plan;
      mine.use_scratch(scratch + bytes * worker);
      for (int64_t i = begin; i < end; ++i) mine.multiply(args, i, queue);
    });
  }

  static Footprint footprint(const MatmulArgs& args, const Target& target) {
    if (is_empty(args)) return {};
    const Deal deal(args, target);
    return {.scratch_bytes = PackedMatmul(args, deal.threads_of_matrix()).scratch_bytes() * deal.plans()};
  }

 private:
  static constexpr int64_t kRows = 4096;  // rows of C at a time, which bounds the memory for partial sums

  static bool is_empty(const MatmulArgs& args) { return args.batch == 0 || args.m == 0 || args.n == 0; }

  // Waking a thread takes microseconds, so it should get about 2^20 multiplications. Whole matrices are the best parts.
  struct Deal {
    bool by_matrix;
    int64_t threads;

    Deal(const MatmulArgs& args, const Target& target) {
      const int64_t work = args.m * args.n * args.k;
      by_matrix = args.batch >= target.threads && work < (int64_t{1} << 24);
      threads = larger(1, smaller(target.threads, (by_matrix ? work * args.batch : work) >> 20));
    }
    int64_t threads_of_matrix() const { return by_matrix ? 1 : threads; }
    int64_t plans() const { return by_matrix ? threads : 1; }  // each has its own scratch
  };

  PackedMatmul(const MatmulArgs& args, int64_t threads)
      : most_rows_(smaller(args.m, kRows)),
        n_(args.n),
        k_(args.k),
        a_row_(args.a_row_stride),
        a_col_(args.a_col_stride),
        b_row_(args.b_row_stride),
        b_col_(args.b_col_stride),
        threads_(threads) {
    kc_ = k_ ? even_part(k_, Kernel::kKc, Kernel::kKStep) : Kernel::kKStep;
    nc_ = even_part(n_, Kernel::kNc, kNr);
    // If there are too few rows for all threads, the columns are split as well.
    column_parts_ = smaller(parts_of(threads, block_count(most_rows_)), nc_ / kNr);
    const bool often =
        n_ > 3 * kNr || (k_ > kc_ && n_ > 2 * kNr);  // each element of A is used so often that packing pays
    pack_a_ =
        !Kernel::kDirect || a_row_ == 0 || (often && most_rows_ > Kernel::kDirectRows);  // a row step of 0 means packed
    const bool used_once = most_rows_ <= kMr;  // then packing reads B in the same steps as the products would
    pack_b_ = !Kernel::kDirect || b_col_ != 1 || most_rows_ > 4 * kMr || (k_ > kc_ && !used_once);
  }

  // Blocks of A: whole micro-panels, of sizes as equal as possible, so many that the threads share them evenly.
  int64_t block_count(int64_t rows) const {
    const int64_t blocks = parts_of(rows, Kernel::kMc);
    return parts_of(rows, kMr) < threads_ ? blocks : round_up(blocks, threads_);
  }
  int64_t a_block_size() const { return smaller(Kernel::kMc, round_up(most_rows_, kMr)) * kc_ + 64; }
  int64_t b_panels_size() const { return nc_ * kc_ + 64; }
  int64_t packed_bytes() const { return round_up((b_panels_size() + threads_ * a_block_size()) * sizeof(Packed), 64); }
  int64_t scratch_bytes() const {
    const int64_t sums = kNarrow && k_ > kc_ ? most_rows_ * nc_ : 0;
    return packed_bytes() + round_up(sums * sizeof(Acc), 64);
  }
  void use_scratch(char* scratch) {
    b_panels_ = reinterpret_cast<Packed*>(scratch);
    a_blocks_ = b_panels_ + b_panels_size();
    partial_ = reinterpret_cast<Acc*>(scratch + packed_bytes());
  }

  void multiply(const MatmulArgs& args, int64_t i, Queue& queue) {
    b_ = static_cast<const T*>(args.b) + i * args.b_batch_stride;
    for (int64_t row = 0; row < args.m; row += kRows) {
      m_ = smaller(args.m - row, kRows);
      a_ = static_cast<const T*>(args.a) + i * args.a_batch_stride + row * a_row_;
      c_ = static_cast<T*>(args.c) + (i * args.m + row) * n_;
      if (k_ == 0) {
        __builtin_memset(static_cast<void*>(c_), 0, m_ * n_ * sizeof(T));
        continue;
      }
      for (int64_t j0 = 0; j0 < n_; j0 += nc_)
        for (int64_t p0 = 0; p0 < k_; p0 += kc_) panel(j0, smaller(nc_, n_ - j0), p0, smaller(kc_, k_ - p0), queue);
    }
  }

  // C[:, j0 : j0 + columns] += A[:, p0 : p0 + depth] B[p0 : p0 + depth, j0 : j0 + columns]
  void panel(int64_t j0, int64_t columns, int64_t p0, int64_t depth, Queue& queue) {
    const int64_t panels = (columns + kNr - 1) / kNr, panel_size = kNr * round_up(depth, Kernel::kKStep);
    const int64_t first = pack_b_ ? 0 : columns / kNr + (columns % kNr == Kernel::kDirectColumns ? 1 : 0);
    queue.parallel(panels - first, 1, threads_, [&](int64_t begin, int64_t end, int) {
      for (int64_t j = first + begin; j < first + end; ++j)
        Kernel::pack_b(b_panels_ + j * panel_size, b_ + p0 * b_row_ + (j0 + j * kNr) * b_col_, b_row_, b_col_, depth,
                       smaller(kNr, columns - j * kNr));
    });

    const int64_t rows = parts_of(m_, kMr), blocks = block_count(m_);
    queue.parallel(blocks * column_parts_, 1, threads_, [&](int64_t begin, int64_t end, int worker) {
      [[maybe_unused]] typename Kernel::Session session;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task % column_parts_, index = task / column_parts_;
        const int64_t i0 = rows * index / blocks * kMr, i1 = smaller(rows * (index + 1) / blocks * kMr, m_);
        block(a_blocks_ + worker * a_block_size(), i0, i1 - i0, j0, columns, panels * part / column_parts_,
              panels * (part + 1) / column_parts_, p0, depth);
      }
    });
  }

  // One block of A against micro-panels [begin, end) of B.
  void block(Packed* a_block, int64_t i0, int64_t rows, int64_t j0, int64_t columns, int64_t begin, int64_t end,
             int64_t p0, int64_t depth) {
    const int64_t padded = round_up(depth, Kernel::kKStep);
    const T* a = a_ + i0 * a_row_ + p0 * a_col_;
    const auto in_place = [&](int64_t height) { return !pack_a_ && (height == kMr || height <= Kernel::kDirectRows); };
    for (int64_t i = pack_a_ ? 0 : rows / kMr * kMr; i < rows && !in_place(rows - i); i += kMr)
      Kernel::pack_a(a_block + i * padded, a + i * a_row_, a_row_, a_col_, depth, smaller(kMr, rows - i));
    const bool first = p0 == 0, last = p0 + depth == k_;
    for (int64_t j = begin; j < end; ++j) {
      const int64_t width = smaller(kNr, columns - j * kNr);
      const bool direct_b = !pack_b_ && (width == kNr || width == Kernel::kDirectColumns);
      const auto* b =
          direct_b ? reinterpret_cast<const Packed*>(b_ + p0 * b_row_ + j0 + j * kNr) : b_panels_ + j * kNr * padded;
      const int64_t b_step = direct_b ? b_row_ : kNr;
      for (int64_t i = 0; i < rows; i += kMr) {
        const int64_t height = smaller(kMr, rows - i);
        const bool direct_a = in_place(height);
        const auto* a_panel = direct_a ? reinterpret_cast<const Packed*>(a + i * a_row_) : a_block + i * padded;
        const int64_t row_step = direct_a ? a_row_ : 0, step = direct_a ? a_col_ : kMr;
        T* c = c_ + (i0 + i) * n_ + j0 + j * kNr;
        if constexpr (!kNarrow) {
          if (height == kMr && width == kNr) {
            Kernel::tile(kMr, kNr, padded, a_panel, row_step, step, b, b_step, c, n_, !first);
            continue;
          }
        }
        alignas(64) Acc sums[kMr * kNr];
        Kernel::tile(height, width, padded, a_panel, row_step, step, b, b_step, sums, kNr, false);
        finish(sums, height, width, c, partial_ + (i0 + i) * nc_ + j * kNr, first, last);
      }
    }
  }

  // Adds a tile's sums to those of earlier depths: in C itself or, where C is narrow, in partial sums until the last
  // depth.
  void finish(const Acc* sums, int64_t height, int64_t width, T* c, Acc* partial, bool first, bool last) const {
    constexpr int64_t kLanes = kNr < Simd<Acc>::kLanes ? kNr : Simd<Acc>::kLanes;
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < width; j += kLanes) {
        Simd<Acc> sum = load<Acc>(sums + i * kNr + j, kLanes);
        T* out = c + i * n_ + j;
        if constexpr (kNarrow) {
          if (!first) sum += load<Acc>(partial + i * nc_ + j, kLanes);
          if (!last) {
            store<Acc>(partial + i * nc_ + j, sum, kLanes);
            continue;
          }
        }
        const int64_t lanes = smaller(kLanes, width - j);
        if constexpr (!kNarrow) {
          if (!first) sum += lanes == kLanes ? load<T>(out, kLanes) : load<T>(out, lanes);
        }
        if (lanes == kLanes)
          store<T>(out, sum, kLanes);  // kLanes is a constant: this stores one whole vector
        else
          store<T>(out, sum, lanes);
      }
  }

  const T *a_ = nullptr, *b_ = nullptr;
  T* c_ = nullptr;
  int64_t m_ = 0, most_rows_, n_, k_, a_row_, a_col_, b_row_, b_col_;
  int64_t threads_, nc_, kc_, column_parts_;
  bool pack_a_, pack_b_;
  Packed *a_blocks_ = nullptr, *b_panels_ = nullptr;
  Acc* partial_ = nullptr;  // (most_rows, nc)
};

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
