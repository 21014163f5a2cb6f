// Presents arrays of any dtype and strides as blocks of adjacent numbers in the type that is computed in, for
// *_simd.cpp files (see simd.h). Arrays that have this form are used in place; all others pass through buffers that
// stay in L1.
#pragma once

#include "kernels/common/copy_rows_simd.h"
#include "kernels/common/line_simd.h"
#include "kernels/common/strided.h"
#include "kernels/elementwise/elementwise.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int64_t kBlock = 512;                       // elements
constexpr int64_t kParallelGrain = int64_t{1} << 15;  // elements that are worth waking a thread for

struct alignas(64) BlockBuffer {
  char bytes[kBlock * 8];
};

// Calls visit(offsets, position, rows, run) for the pieces that make up elements [begin, begin + n) of arrays that are
// walked together, sizes[ndim] and strides[k][ndim]. A piece is `rows` runs of `run` elements along the inner
// dimension: several if they are whole rows of the arrays. Its first element is element `position` of these n, and lies
// at offsets[k] of array k.
template <int kArrays, class Visit>
ROOFLAB_INLINE void for_each_piece(int ndim, const int64_t* sizes, const int64_t* const (&strides)[kArrays],
                                   int64_t begin, int64_t n, Visit visit) {
  int64_t index[kMaxDims], offsets[kArrays] = {}, rest = begin;
  const auto move = [&](int d, int64_t by) {
    index[d] += by;
    for (int k = 0; k < kArrays; ++k) offsets[k] += by * strides[k][d];
  };
  for (int d = ndim - 1; d >= 0; --d) {
    int64_t at = rest;
    if (d > 0) rest = divide(rest, sizes[d], at);
    index[d] = 0;
    move(d, at);
  }
  const int inner = ndim - 1, outer = inner > 0 ? inner - 1 : inner;
  for (int64_t position = 0; position < n;) {
    const int64_t run = smaller(sizes[inner] - index[inner], n - position);
    const bool whole = inner > 0 && run == sizes[inner];
    const int64_t rows = whole ? smaller((n - position) / run, sizes[outer] - index[outer]) : 1;
    visit(offsets, position, rows, run);
    position += rows * run;
    int d = whole ? outer : inner;
    move(d, whole ? rows : run);
    for (; d > 0 && index[d] == sizes[d]; --d) {
      move(d, -sizes[d]);
      move(d - 1, 1);
    }
  }
}

ROOFLAB_INLINE Steps steps_of(int ndim, const int64_t* strides) {
  return {strides[ndim > 1 ? ndim - 2 : 0], strides[ndim - 1]};
}

// An array that is walked over sizes[ndim], in row-major order.
struct StridedArray {
  char* data;
  DType dtype;
  int ndim;
  const int64_t* sizes;
  const int64_t* strides;  // in elements

  Steps steps() const { return steps_of(ndim, strides); }
  char* at(int64_t offset) const { return data + offset * size_of(dtype); }
  // Whether elements are adjacent in this order.
  bool is_dense() const {
    int64_t next = 1;
    for (int d = ndim - 1; d >= 0; next *= sizes[d--])
      if (strides[d] != next) return false;
    return true;
  }
  // Whether it is one row of up to kBlock elements over and over, such as a bias.
  bool repeats_row() const {
    for (int d = 0; d < ndim - 1; ++d)
      if (strides[d] != 0) return false;
    return ndim > 1 && strides[ndim - 1] != 0 && sizes[ndim - 1] <= kBlock;
  }
};

// Converts n elements From to To, where one of the two is float and the other no wider.
template <class From, class To>
void convert_small(const void* from, void* to, int64_t n) {
  const From* source = static_cast<const From*>(from);
  To* destination = static_cast<To*>(to);
  int64_t i = 0;
  for (; i + F32x16::kLanes <= n; i += F32x16::kLanes) store(destination + i, load(source + i));
  if (i < n) store(destination + i, load(source + i, n - i), n - i);
}

using ConvertBlock = void (*)(const void*, void*, int64_t);

// From the type in which elements of one dtype are computed to that of another.
struct Conversion {
  void (*cast)(const void* const*, void*, int64_t, unsigned) = nullptr;  // null: the types are the same
  ConvertBlock round = nullptr;                                          // to 16 bits, which are then computed in float

  explicit operator bool() const { return cast != nullptr || round != nullptr; }
  const void* operator()(const void* from, void* to, int64_t n) const {
    if (cast != nullptr) cast(&from, to, n, 0);
    if (round != nullptr) round(cast != nullptr ? to : from, to, n);
    return to;
  }
};

// Whether Half and BFloat16 are passed on as float or as their own bits.
enum class SmallFloats { kAsFloat, kAsBits };

// An input: read(begin, n) returns n <= kBlock adjacent elements.
class BlockReader {
 public:
  // `convert`: for elements of another dtype than the one that is computed in; they are then read as kAsFloat.
  void open(const StridedArray& array, SmallFloats small, Conversion convert = {}) {
    array_ = array;
    convert_ = convert;
    copy_ = copy_rows_of(size_of(array.dtype));
    widen_ = nullptr;
    if (small == SmallFloats::kAsFloat && array.dtype == DType::kFloat16) widen_ = convert_small<Half, float>;
    if (small == SmallFloats::kAsFloat && array.dtype == DType::kBFloat16) widen_ = convert_small<BFloat16, float>;
    dense_ = array.is_dense();
    period_ = array.repeats_row() && !convert ? array.sizes[array.ndim - 1] : 0;
    if (period_ > 0) repeat_row(widen_ == nullptr ? size_of(array.dtype) : sizeof(float));
  }
  // A number instead of an array, for blocks of up to n elements.
  template <class T>
  void fill(T number, int64_t n) {
    array_.data = nullptr;
    T* to = reinterpret_cast<T*>(wide_.bytes);
    for (int64_t i = 0; i < n && i < kBlock; ++i) to[i] = number;
  }

  // Whether its elements are read where they lie, in blocks of any size.
  bool is_in_place() const {
    return array_.data != nullptr && dense_ && period_ == 0 && widen_ == nullptr && !convert_;
  }

  const void* read(int64_t begin, int64_t n) {
    if (array_.data == nullptr) return wide_.bytes;
    if (period_ > 0) return repeated_ + begin % period_ * element_;
    const void* raw = array_.data + begin * size_of(array_.dtype);
    if (dense_) {
      prefetch_block(raw, n * size_of(array_.dtype));
    } else {
      raw = raw_.bytes;
      const Steps steps = array_.steps();
      const auto visit = [&](const auto& offsets, int64_t position, int64_t rows, int64_t run) {
        const char* from = array_.at(offsets[0]);
        if (run == n && steps.element == 1)
          raw = from;
        else
          copy_(from, steps, raw_.bytes + position * size_of(array_.dtype), {run, 1}, rows, run);
      };
      for_each_piece(array_.ndim, array_.sizes, {array_.strides}, begin, n, visit);
    }
    return computed(raw, n);
  }

  // n adjacent elements in the type that is computed in.
  const void* computed(const void* raw, int64_t n) {
    if (widen_ != nullptr) {
      widen_(raw, wide_.bytes, n);
      raw = wide_.bytes;
    }
    return convert_ ? convert_(raw, converted_.bytes, n) : raw;
  }

 private:
  // Prefetches as many bytes as those that are read now, after them.
  static void prefetch_block(const void* now, int64_t bytes) {
    const char* next = static_cast<const char*>(now) + bytes;
    for (int64_t at = 0; at < bytes; at += 64) prefetch_near(next + at);
  }
  // Lays the row out so often that a block that begins anywhere in it is in one piece.
  void repeat_row(int64_t element) {
    element_ = element;
    copy_(array_.data, {0, array_.strides[array_.ndim - 1]}, raw_.bytes, {0, 1}, 1, period_);
    if (widen_ != nullptr) widen_(raw_.bytes, wide_.bytes, period_);
    const char* row = widen_ != nullptr ? wide_.bytes : raw_.bytes;
    for (int64_t at = 0; at < period_ + kBlock; at += period_)
      std::memcpy(repeated_ + at * element, row, static_cast<size_t>(period_ * element));
  }

  StridedArray array_;
  CopyRows copy_;
  ConvertBlock widen_;
  Conversion convert_;
  bool dense_;
  int64_t period_, element_;  // elements of the row that repeats, or 0; the size of one there
  BlockBuffer raw_, wide_, converted_;
  alignas(64) char repeated_[3 * sizeof(BlockBuffer)];
};

// The output: write n <= kBlock elements to target(begin), then call commit(begin, n).
class BlockWriter {
 public:
  // `streaming`: the array is too large to remain in cache.
  BlockWriter(const StridedArray& array, SmallFloats small, bool streaming, Conversion convert = {}) {
    open(array, small, streaming);
    convert_ = convert;
  }
  BlockWriter() = default;
  void open(const StridedArray& array, SmallFloats small, bool streaming) {
    array_ = array;
    dense_ = array.is_dense();
    streaming_ = streaming;
    if (small == SmallFloats::kAsFloat && array.dtype == DType::kFloat16) narrow_ = convert_small<float, Half>;
    if (small == SmallFloats::kAsFloat && array.dtype == DType::kBFloat16) narrow_ = convert_small<float, BFloat16>;
  }
  ~BlockWriter() {
    if (streaming_) fence();
  }
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  // Whether elements are computed where they stay.
  bool is_in_place() const { return narrow_ == nullptr && !streaming_ && dense_ && !convert_; }

  void* target(int64_t begin) {
    if (convert_) return computed_.bytes;
    return stays() ? static_cast<void*>(at(begin)) : wide_.bytes;
  }

  void commit(int64_t begin, int64_t n) {
    if (convert_) convert_(computed_.bytes, stays() ? at(begin) : wide_.bytes, n);
    const char* narrowed = wide_.bytes;
    if (narrow_ != nullptr) {
      char* to = dense_ && !streaming_ ? at(begin) : raw_.bytes;
      narrow_(wide_.bytes, to, n);
      narrowed = to;
    }
    if (!dense_) {
      const CopyRows copy = copy_rows_of(size_of(array_.dtype));
      const auto visit = [&](const auto& offsets, int64_t position, int64_t rows, int64_t run) {
        const char* from = narrowed + position * size_of(array_.dtype);
        copy(from, {run, 1}, array_.at(offsets[0]), array_.steps(), rows, run);
      };
      for_each_piece(array_.ndim, array_.sizes, {array_.strides}, begin, n, visit);
    } else if (streaming_) {
      stream_bytes(at(begin), narrowed, n * size_of(array_.dtype));
    }
  }

 private:
  bool stays() const { return narrow_ == nullptr && !streaming_ && dense_; }
  char* at(int64_t begin) const { return array_.data + begin * size_of(array_.dtype); }

  StridedArray array_;
  ConvertBlock narrow_ = nullptr;
  Conversion convert_;  // from what is computed in to the dtype of the array, if these differ
  bool dense_ = true, streaming_ = false;
  BlockBuffer raw_, wide_, computed_;
};

// Calls f(Word{}) with a number of as many bits as elements of the dtype have.
template <class F>
ROOFLAB_INLINE auto with_word(DType dtype, F f) {
  switch (size_of(dtype)) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

// Calls f(T{}) with the type in which elements of the dtype are computed.
template <class F>
ROOFLAB_INLINE auto with_computed_type(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat64: return f(double{});
    case DType::kInt64: return f(int64_t{});
    case DType::kInt32: return f(int32_t{});
    case DType::kBool: return f(bool{});
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16: break;
  }
  return f(float{});
}

}  // namespace

// out[0, n) from in[0], in[1], in[2], in the types that are computed in; a comparison is given by its outcomes.
// in[3]: the number of nan_to_num, of type ElementwiseScalar.
using BlockKernel = void (*)(const void* const* in, void* out, int64_t n, unsigned outcomes);
BlockKernel block_kernel(ElementwiseOp op, DType dtype, DType out_dtype);  // elementwise_cpu_simd.cpp

}  // namespace rooflab::kernels::ROOFLAB_ISA
