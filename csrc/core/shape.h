// The sizes (or strides) of a tensor: a list of fixed capacity, so that making a tensor allocates nothing besides its
// data.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/error.h"

namespace rooflab {

inline constexpr int kMaxDims = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(dims.begin(), dims.end()) {}
  template <class Iterator>
  Shape(Iterator begin, Iterator end) {
    for (; begin != end; ++begin) push_back(*begin);
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t& operator[](int i) { return dims_[i]; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t* begin() { return dims_.data(); }
  int64_t* end() { return dims_.data() + size_; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + size_; }
  int64_t back() const { return dims_[size_ - 1]; }

  void push_back(int64_t dim) {
    RL_CHECK(size_ < kMaxDims, "tensor", "expected at most ", kMaxDims, " dimensions, got more");
    dims_[size_++] = dim;
  }
  void insert(int at, int64_t dim) {
    push_back(0);
    for (int i = size_ - 1; i > at; --i) dims_[i] = dims_[i - 1];
    dims_[at] = dim;
  }
  void erase(int at) {
    for (int i = at; i + 1 < size_; ++i) dims_[i] = dims_[i + 1];
    --size_;
  }

  bool operator==(const Shape& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  std::array<int64_t, kMaxDims> dims_{};
  int size_ = 0;
};

// "(2, 3)"; "(2,)" for one dimension and "()" for none, as Python writes tuples.
inline std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text += shape.size() == 1 ? ",)" : ")";
}
inline void append(std::string& out, const Shape& shape) { out += to_string(shape); }

// The number of elements. ValueError for a negative size, and if the product of the sizes that are not 0 overflows. So
// no product of some of a tensor's sizes overflows, and no stride of a row-major one.
inline int64_t numel(const Shape& shape) {
  int64_t count = 1;
  bool overflows = false, has_zero = false;
  for (int64_t dim : shape) {
    RL_CHECK(dim >= 0, "tensor", "shape: expected sizes >= 0, got ", shape);
    has_zero |= dim == 0;
    overflows |= __builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count);
  }
  RL_CHECK(!overflows, "tensor", "shape: the sizes of ", shape, " multiply to more than 2^63");
  return has_zero ? 0 : count;
}

// Strides in elements of a row-major tensor without gaps.
inline Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

// Whether a reduction over `dim` goes over the one element of a tensor without dimensions, as PyTorch allows.
inline bool is_the_only_element(int64_t dim, int ndim) { return ndim == 0 && (dim == 0 || dim == -1); }

// A dimension counted from the front, or from the back when negative, as an index in [0, ndim).
inline int normalize_dim(int64_t dim, int ndim, const char* op) {
  RL_CHECK(ndim > 0, op, "dim: a tensor of shape () has no dimensions, got ", dim);
  RL_CHECK(dim >= -ndim && dim < ndim, op, "dim: expected in [", -ndim, ", ", ndim - 1, "], got ", dim);
  return static_cast<int>(dim < 0 ? dim + ndim : dim);
}

}  // namespace rooflab
