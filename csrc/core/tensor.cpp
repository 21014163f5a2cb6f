#include "core/tensor.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace rooflab {
namespace {

// The address range of a view that has elements, from its first one to the end of its last.
std::pair<intptr_t, intptr_t> extent(const Tensor& x) {
  int64_t low = 0, high = 1;
  for (int i = 0; i < x.ndim(); ++i) (x.strides()[i] < 0 ? low : high) += (x.shape()[i] - 1) * x.strides()[i];
  const auto at = reinterpret_cast<intptr_t>(x.data());
  return {at + low * size_of(x.dtype()), at + high * size_of(x.dtype())};
}

int64_t bytes_of(const Shape& shape, DType dtype) {
  int64_t bytes;
  RL_CHECK(!__builtin_mul_overflow(numel(shape), size_of(dtype), &bytes), "tensor", "shape: ", shape,
           " has more bytes than 2^63");
  return bytes;
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  auto storage = std::make_shared<Storage>(bytes_of(shape, dtype), device);
  void* data = storage->data();
  return Tensor(std::move(storage), data, shape, contiguous_strides(shape), dtype);
}

Tensor::Tensor(std::shared_ptr<Storage> storage, void* data, const Shape& shape, const Shape& strides, DType dtype)
    : storage_(std::move(storage)),
      data_(data),
      shape_(shape),
      strides_(strides),
      numel_(rooflab::numel(shape)),
      dtype_(dtype) {}

bool Tensor::is_contiguous() const {
  int64_t step = 1;
  for (int i = ndim() - 1; i >= 0; --i) {
    if (shape_[i] == 0) return true;
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

bool Tensor::overlaps(const Tensor& other) const {
  if (!defined() || !other.defined()) return false;
  // Two storages have memory in common only if another library owns that of one, whose bytes are not counted.
  if (storage_ != other.storage_ && storage_->bytes() > 0 && other.storage_->bytes() > 0) return false;
  if (numel_ == 0 || other.numel_ == 0 || device() != other.device()) return false;
  const auto [begin, end] = extent(*this);
  const auto [first, last] = extent(other);
  return begin < last && first < end;
}

// Elements may be the same where the step of a dimension is no longer than the way that the finer ones reach. In views
// of one array that is exact; strides of other libraries' arrays that interleave count as well.
bool Tensor::overlaps_itself() const {
  if (is_contiguous()) return false;
  std::array<std::pair<int64_t, int64_t>, kMaxDims> steps;  // (stride, size)
  int dims = 0;
  for (int i = 0; i < ndim(); ++i)
    if (shape_[i] > 1) steps[dims++] = {std::abs(strides_[i]), shape_[i]};
  std::sort(steps.begin(), steps.begin() + dims);
  int64_t last = 0;
  for (int i = 0; i < dims; ++i) {
    const auto [stride, size] = steps[i];
    if (stride <= last) return true;
    last += stride * (size - 1);
  }
  return false;
}

Tensor Tensor::as_strided(const Shape& shape, const Shape& strides, int64_t offset) const {
  return Tensor(storage_, static_cast<char*>(data_) + offset * size_of(dtype_), shape, strides, dtype_);
}

std::optional<Tensor> Tensor::try_view(const Shape& wanted) const {
  const Shape shape = infer_shape(wanted, numel_);
  if (is_contiguous()) return as_strided(shape, contiguous_strides(shape), 0);
  if (numel_ == 0) return as_strided(shape, contiguous_strides(shape), 0);
  // Old dimensions that are evenly spaced merge into runs; the new dimensions must divide each run exactly.
  Shape strides = shape;
  int next = shape.size() - 1;
  int64_t run = 1, run_stride = ndim() ? strides_.back() : 1;
  for (int i = ndim() - 1; i >= 0; --i) {
    run *= shape_[i];
    if (i > 0 && (shape_[i - 1] == 1 || strides_[i - 1] == run * run_stride)) continue;
    int64_t taken = 1;
    while (next >= 0 && (taken < run || shape[next] == 1)) {
      strides[next] = taken * run_stride;
      taken *= shape[next--];
    }
    if (taken != run) return std::nullopt;
    if (i > 0) run = 1, run_stride = strides_[i - 1];
  }
  return next < 0 ? std::optional(as_strided(shape, strides, 0)) : std::nullopt;
}

Tensor Tensor::view(const Shape& shape) const {
  std::optional<Tensor> viewed = try_view(shape);
  RL_CHECK(viewed, "view", "shape: ", shape, " needs a copy of a tensor of shape ", shape_, " and strides ", strides_,
           "; use reshape");
  return *viewed;
}

Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const {
  Shape shape = shape_, strides = strides_;
  const int a = normalize_dim(dim0, ndim(), "transpose"), b = normalize_dim(dim1, ndim(), "transpose");
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return as_strided(shape, strides, 0);
}

Tensor Tensor::permute(const Shape& dims) const {
  RL_CHECK(dims.size() == ndim(), "permute", "dims: expected ", ndim(), " of them, got ", dims);
  Shape shape, strides;
  uint32_t seen = 0;
  for (int64_t dim : dims) {
    const int d = normalize_dim(dim, ndim(), "permute");
    RL_CHECK(!(seen >> d & 1), "permute", "dims: ", dims, " names a dimension twice");
    seen |= 1u << d;
    shape.push_back(shape_[d]);
    strides.push_back(strides_[d]);
  }
  return as_strided(shape, strides, 0);
}

Tensor Tensor::expand(const Shape& wanted) const {
  const int added = wanted.size() - ndim();
  RL_CHECK(added >= 0, "expand", "shape: expected at least ", ndim(), " dimensions, got ", wanted);
  Shape shape = wanted, strides = wanted;
  for (int i = 0; i < wanted.size(); ++i) {
    const int64_t size = i < added ? 1 : shape_[i - added];
    if (wanted[i] == -1 && i >= added) shape[i] = size;
    RL_CHECK(shape[i] >= 0 && (size == 1 || shape[i] == size), "expand", "shape: ", shape_, " does not expand to ",
             wanted);
    strides[i] = i < added || (size == 1 && shape[i] != 1) ? 0 : strides_[i - added];
  }
  bytes_of(shape, dtype());
  return as_strided(shape, strides, 0);
}

Tensor Tensor::select(int64_t dim, int64_t index) const {
  const int d = normalize_dim(dim, ndim(), "select");
  const int64_t at = index < 0 ? index + shape_[d] : index;
  if (at < 0 || at >= shape_[d])
    throw std::out_of_range(message("index ", index, " is out of bounds for dimension ", d, " of size ", shape_[d]));
  Shape shape = shape_, strides = strides_;
  shape.erase(d);
  strides.erase(d);
  return as_strided(shape, strides, at * strides_[d]);
}

Tensor Tensor::slice(int64_t dim, int64_t start, int64_t stop, int64_t step) const {
  const int d = normalize_dim(dim, ndim(), "slice");
  RL_CHECK(step > 0, "slice", "step: expected > 0, got ", step);
  start = std::clamp<int64_t>(start < 0 ? start + shape_[d] : start, 0, shape_[d]);
  stop = std::clamp<int64_t>(stop < 0 ? stop + shape_[d] : stop, start, shape_[d]);
  return every(d, start, stop > start ? (stop - start - 1) / step + 1 : 0, step);
}

Tensor Tensor::every(int dim, int64_t start, int64_t count, int64_t step) const {
  Shape shape = shape_, strides = strides_;
  shape[dim] = count;
  if (count > 1) strides[dim] *= step;  // with one element the stride has no meaning, and it could overflow
  return as_strided(shape, strides, count ? start * strides_[dim] : 0);
}

Tensor Tensor::unsqueeze(int64_t dim) const {
  const int d = normalize_dim(dim, ndim() + 1, "unsqueeze");
  Shape shape = shape_, strides = strides_;
  shape.insert(d, 1);
  strides.insert(d, d < ndim() ? shape_[d] * strides_[d] : 1);
  return as_strided(shape, strides, 0);
}

Tensor Tensor::squeeze(std::optional<int64_t> dim) const {
  const int only = dim ? normalize_dim(*dim, ndim(), "squeeze") : -1;
  Shape shape, strides;
  for (int i = 0; i < ndim(); ++i) {
    if (shape_[i] == 1 && (!dim || i == only)) continue;
    shape.push_back(shape_[i]);
    strides.push_back(strides_[i]);
  }
  return as_strided(shape, strides, 0);
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape shape = longer;
  const int added = longer.size() - shorter.size();
  for (int i = 0; i < shorter.size(); ++i) {
    const int64_t x = longer[i + added], y = shorter[i];
    RL_CHECK(x == y || x == 1 || y == 1, op, "shapes ", a, " and ", b, " do not broadcast");
    shape[i + added] = x == 1 ? y : x;
  }
  return shape;
}

Shape infer_shape(const Shape& wanted, int64_t count) {
  Shape shape = wanted;
  int unknown = -1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] != -1) continue;
    RL_CHECK(unknown < 0, "view", "shape: only one size may be -1, got ", wanted);
    unknown = i;
    shape[i] = 1;
  }
  const int64_t known = numel(shape);
  if (unknown >= 0) {
    RL_CHECK(known > 0 && count % known == 0, "view", "shape: ", wanted, " does not divide ", count, " elements");
    shape[unknown] = count / known;
  }
  RL_CHECK(numel(shape) == count, "view", "shape: ", wanted, " does not hold ", count, " elements");
  return shape;
}

}  // namespace rooflab
