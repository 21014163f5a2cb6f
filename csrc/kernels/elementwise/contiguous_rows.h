// v2: rows without gaps, and rows of one number each, go from memory to registers and back. For *_simd.cpp files (see
// simd.h).
#pragma once

#include "kernels/common/line_simd.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/functors.h"
#include "kernels/elementwise/functors_by_lane.h"
#include "kernels/elementwise/staged.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// An input of v2 in one row: adjacent elements, or a number.
template <class T>
struct RowInput {
  const T* data = nullptr;
  SimdOf<T> number = 0;

  // `offset`: where the row begins. `step`: from one element to the next, 1 or 0.
  ROOFLAB_INLINE RowInput(const ElementwiseOperand& input, int64_t offset, int64_t step) {
    const T* elements = static_cast<const T*>(input.data);
    if (elements == nullptr)
      number = scalar_as<typename ComputeOf<T>::type>(input.scalar);
    else if (step == 0)
      number = load(elements + offset, 1).part[0][0];
    else
      data = elements + offset;
  }
  ROOFLAB_INLINE SimdOf<T> at(int64_t i) const { return data ? load(data + i) : number; }
  ROOFLAB_INLINE SimdOf<T> at(int64_t i, int64_t n) const { return data ? load(data + i, n) : number; }
  ROOFLAB_INLINE void prefetch(int64_t i) const {
    if (data) prefetch_chunk(data + i);
  }
};

// Computes `rows` rows of `run` elements, which begin at offsets[k] of input k and at offsets[3] of the output.
using RowsKernel = void (*)(const ElementwiseArgs& args, const int64_t (&offsets)[4], int64_t rows, int64_t run,
                            bool streaming);

template <ElementwiseOp kOp, class T>
void compute_rows(const ElementwiseArgs& args, const int64_t (&offsets)[4], int64_t rows, int64_t run, bool streaming) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  constexpr int kArity = info(kOp).arity;
  const auto open = [&](int k, int64_t row) __attribute__((always_inline)) {
    const Steps steps = steps_of(args.ndim, args.inputs[k].strides);
    return RowInput<T>(args.inputs[k], offsets[k] + row * steps.row, steps.element);
  };
  for (int64_t row = 0; row < rows; ++row) {
    const RowInput<T> a = open(0, row), b = open(kArity > 1 ? 1 : 0, row), c = open(kArity - 1, row);
    T* out = static_cast<T*>(args.out) + offsets[3] + row * steps_of(args.ndim, args.out_strides).row;
    const auto part = [&](int64_t i, int64_t end) __attribute__((always_inline)) {
      for (; i < end; i += kLanes) {
        const int64_t n = smaller(end - i, kLanes);
        store(out + i, evaluate<kOp>(a.at(i, n), b.at(i, n), c.at(i, n)), n);
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
            return evaluate<kOp>(a.at(i + lane), b.at(i + lane), c.at(i + lane));
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
