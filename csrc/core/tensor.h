// An n-dimensional array on one device. Copies of a Tensor share its memory, as views do.
#pragma once

#include <memory>
#include <optional>

#include "core/allocator.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace rooflab {

namespace autograd {
struct Meta;
}

class Tensor {
 public:
  Tensor() = default;  // not defined(): an absent tensor

  // A row-major tensor with uninitialised elements. Throws OutOfMemory, and ValueError for a shape that no memory could
  // hold.
  static Tensor empty(const Shape& shape, DType dtype, Device device);
  // A view of the memory at `data`, which `storage` keeps alive. Strides count elements.
  Tensor(std::shared_ptr<Storage> storage, void* data, const Shape& shape, const Shape& strides, DType dtype);

  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  int ndim() const { return shape_.size(); }
  int64_t size(int64_t dim) const { return shape_[normalize_dim(dim, ndim(), "size")]; }
  int64_t stride(int64_t dim) const { return strides_[normalize_dim(dim, ndim(), "stride")]; }
  int64_t numel() const { return numel_; }
  int64_t nbytes() const { return numel_ * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device() : Device{}; }
  bool is_contiguous() const;
  bool defined() const { return storage_ != nullptr; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }

  // What the tape knows about the tensor (autograd/tape.h). Null outside every graph, and in tensors that the members
  // below return.
  const std::shared_ptr<autograd::Meta>& meta() const { return meta_; }
  void set_meta(std::shared_ptr<autograd::Meta> meta) { meta_ = std::move(meta); }
  Tensor detach() const { return as_strided(shape_, strides_, 0); }

  // Whether the address ranges of the elements of two tensors of one device meet. Tensors of two storages may: each
  // time that another library shares its memory, a storage is made for it.
  bool overlaps(const Tensor& other) const;
  // Whether elements of it share memory, as those of an expanded tensor do, so that none can be written to alone.
  bool overlaps_itself() const;

  void* data() const { return data_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }

  // Views of the same memory.
  Tensor as_strided(const Shape& shape, const Shape& strides, int64_t offset) const;
  std::optional<Tensor> try_view(const Shape& shape) const;  // none where the strides allow no view
  Tensor view(const Shape& shape) const;                     // one size may be -1, which stands for what remains
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor permute(const Shape& dims) const;
  Tensor expand(const Shape& shape) const;  // size 1 becomes any size, with stride 0; -1 keeps a size
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim, int64_t start, int64_t stop, int64_t step) const;
  // `count` elements of a dimension: start, start + step and so on. A negative step gives a negative stride. Ops copy
  // from such a tensor and write to it. Indexing gives users a copy instead; what another library shares may have one.
  Tensor every(int dim, int64_t start, int64_t count, int64_t step) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor squeeze(std::optional<int64_t> dim) const;

 private:
  std::shared_ptr<Storage> storage_;
  void* data_ = nullptr;
  Shape shape_, strides_;
  int64_t numel_ = 0;
  DType dtype_ = DType::kFloat32;
  std::shared_ptr<autograd::Meta> meta_;
};

// The shape that two operands have when they broadcast against each other, as in NumPy.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);
// `shape` with its -1, if it has one, replaced by the size that makes `numel` elements.
Shape infer_shape(const Shape& shape, int64_t numel);

}  // namespace rooflab
