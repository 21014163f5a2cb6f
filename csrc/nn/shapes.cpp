// stack, split and repeat_interleave: joining tensors and taking them apart.
#include "nn/nn.h"

namespace rooflab::nn {

Tensor stack(const Tensors& tensors, int64_t dim) {
  RL_CHECK(!tensors.empty(), "stack", "tensors: expected at least one, got none");
  Tensors slices;
  for (const Tensor& x : tensors) {
    RL_CHECK(x.shape() == tensors[0].shape(), "stack", "tensors: expected ", tensors[0].shape(), ", got ", x.shape());
    slices.push_back(unsqueeze(x, normalize_dim(dim, x.ndim() + 1, "stack")));
  }
  return cat(slices, normalize_dim(dim, slices[0].ndim(), "stack"));
}

Tensors split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  const int along = normalize_dim(dim, x.ndim(), "split");
  int64_t left = x.size(along);
  for (int64_t size : sizes) {
    RL_CHECK(size >= 0, "split", "sizes: expected >= 0, got ", size);
    RL_CHECK(size <= left, "split", "sizes: expected a sum of ", x.size(along), ", got more");
    left -= size;
  }
  RL_CHECK(left == 0, "split", "sizes: expected a sum of ", x.size(along), ", got ", x.size(along) - left);
  Tensors parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    parts.push_back(index(x, {{IndexStep::kSlice, along, begin, size, 1}}));
    begin += size;
  }
  return parts;
}

std::vector<int64_t> equal_parts(const Tensor& x, int64_t size, int64_t dim) {
  RL_CHECK(size > 0, "split", "size: expected > 0, got ", size);
  const int64_t whole = x.size(normalize_dim(dim, x.ndim(), "split")), last = whole % size;
  std::vector<int64_t> sizes(static_cast<size_t>(whole / size), size);
  if (last > 0 || whole == 0) sizes.push_back(last);
  return sizes;
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim) {
  RL_CHECK(repeats >= 0, "repeat_interleave", "repeats: expected >= 0, got ", repeats);
  if (!dim) return repeat_interleave(reshape(x, {x.numel()}), repeats, 0);
  const int along = normalize_dim(*dim, x.ndim(), "repeat_interleave");
  Shape shape = x.shape(), repeated = x.shape();
  repeated.insert(along + 1, repeats);
  const Tensor copied = copy(expand(unsqueeze(x, along + 1), repeated));
  shape[along] *= repeats;
  return view(copied, shape);
}

}  // namespace rooflab::nn
