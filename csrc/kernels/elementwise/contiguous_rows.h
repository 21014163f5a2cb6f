// v2: rows without gaps, and rows of one number each, go from memory to registers and back. For *_simd.cpp files (see
// simd.h).
#pragma once

#include "kernels/common/line_simd.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/functors.h"
#include "kernels/elementwise/functors_simd.h"
#include "kernels/elementwise/staged.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// An input of v2, row by row: adjacent elements, or a number of the row or of all.
template <class T>
class RowInput {
 public:
  // `offset`: where the first row begins.
  ROOFLAB_INLINE RowInput(const ElementwiseOperand& input, int64_t offset, Steps steps)
      : row_(static_cast<const T*>(input.data)), step_(steps.row), is_row_(row_ != nullptr && steps.element != 0) {
    if (row_ == nullptr) {
      number_ = scalar_as<typename ComputeOf<T>::type>(input.scalar);
      step_ = 0;
      return;
    }
    row_ += offset;
    read_number();
  }
  ROOFLAB_INLINE void next_row() {
    row_ += step_;
    if (step_ != 0) read_number();
  }
  ROOFLAB_INLINE SimdOf<T> at(int64_t i) const { return is_row_ ? load(row_ + i) : number_; }
  ROOFLAB_INLINE SimdOf<T> at(int64_t i, int64_t n) const { return is_row_ ? load(row_ + i, n) : number_; }
  ROOFLAB_INLINE void prefetch(int64_t i) const {
    if (is_row_) prefetch_chunk(row_ + i);
  }

 private:
  ROOFLAB_INLINE void read_number() {
    if (!is_row_) number_ = load(row_, 1).part[0][0];
  }

  const T* row_;
  int64_t step_;  // from one row to the next
  bool is_row_;
  SimdOf<T> number_ = 0;
};

// Computes `rows` rows of `run` elements, which begin at offsets[k] of input k and at offsets[3] of the output.
using RowsKernel = void (*)(const ElementwiseArgs& args, const int64_t (&offsets)[4], int64_t rows, int64_t run,
                            bool streaming);

template <ElementwiseOp kOp, class T>
void compute_rows(const ElementwiseArgs& args, const int64_t (&offsets)[4], int64_t rows, int64_t run, bool streaming) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  constexpr int kArity = info(kOp).arity;
  const auto open = [&](int k) __attribute__((always_inline)) {
    return RowInput<T>(args.inputs[k], offsets[k], steps_of(args.ndim, args.inputs[k].strides));
  };
  RowInput<T> a = open(0), b = open(kArity > 1 ? 1 : 0), c = open(kArity - 1);
  const SimdOf<T> number = scalar_as<typename ComputeOf<T>::type>(args.number);
  T* out = static_cast<T*>(args.out) + offsets[3];
  const int64_t out_step = steps_of(args.ndim, args.out_strides).row;
  for (int64_t row = 0; row < rows; ++row, out += out_step) {
    if (row > 0) a.next_row(), b.next_row(), c.next_row();
    const auto part = [&](int64_t i, int64_t end) __attribute__((always_inline)) {
      for (; i < end; i += kLanes) {
        const int64_t n = smaller(end - i, kLanes);
        store(out + i, evaluate<kOp>(a.at(i, n), b.at(i, n), c.at(i, n), number), n);
      }
    };
    int64_t i = streaming ? smaller(elements_to_line(out), run) : 0;
    part(0, i);
    for (; i + kLine<T> <= run; i += kLine<T>) {
      if (streaming) a.prefetch(i);
      if (streaming && kArity > 1) b.prefetch(i);
      if (streaming && kArity > 2) c.prefetch(i);
      write_line(
          out + i, streaming, [&](int64_t lane) __attribute__((always_inline)) {
            return evaluate<kOp>(a.at(i + lane), b.at(i + lane), c.at(i + lane), number);
          });
    }
    part(i, run);
  }
}

// One row, whose first line is whole.
template <class Word>
void copy_row(const ElementwiseArgs& args, const int64_t (&offsets)[4], int64_t, int64_t run, bool streaming) {
  const Word* from = static_cast<const Word*>(args.inputs[0].data) + offsets[0];
  Word* to = static_cast<Word*>(args.out) + offsets[3];
  int64_t i = 0;
  for (; streaming && i < run; i += kLine<Word>) {
    prefetch_chunk(from + i);
    write_line(
        reinterpret_cast<float*>(to + i),
        true, [&](int64_t) __attribute__((always_inline)) { return load(reinterpret_cast<const float*>(from + i)); });
  }
  if (i < run) std::memcpy(to + i, from + i, static_cast<size_t>(run - i) * sizeof(Word));
}

RowsKernel find_rows_kernel(const ElementwiseArgs& args) {
  if (args.op == ElementwiseOp::kCopy)
    return with_word(args.dtype, []<class Word>(Word) -> RowsKernel { return copy_row<Word>; });
  return with_floating(args.dtype, [&]<class T>() -> RowsKernel {
    RowsKernel kernel = nullptr;
    dispatch_arithmetic(args.op, [&]<ElementwiseOp kOp>() {
      if constexpr (takes<typename ComputeOf<T>::type>(kOp)) kernel = compute_rows<kOp, T>;
    });
    return kernel;
  });
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
