// stack, split, unbind and repeat_interleave: joining tensors and taking them apart.
#include "nn/nn.h"
#include "ops/arithmetic.h"

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

namespace {

// Views of x, side by side along `dim` in parts of these sizes, or without `dim` where it is dropped: then each is 1.
// If all of them have a gradient, one cat joins these; otherwise they are copied into zeros.
Tensors take_apart(const char* op, const Tensor& x, const std::vector<int64_t>& sizes, int dim, bool drops_dim) {
  Tensors parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    parts.push_back(drops_dim ? x.select(dim, begin) : x.slice(dim, begin, begin + size, 1));
    begin += size;
  }
  if (!autograd::recording(x) || parts.empty()) return parts;
  const auto join = [sizes, dim, drops_dim, shape = x.shape(), dtype = x.dtype(), device = x.device()](
                        const Gradients& dy, const Tensors&) -> Tensors {
    const auto part = [&](size_t i) {
      const Tensor& of_part = dy[static_cast<int>(i)];
      return drops_dim && of_part.defined() ? of_part.unsqueeze(dim) : of_part;
    };
    Tensors given;
    size_t needed = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      ++needed;
      if (const Tensor of_part = part(i); of_part.defined()) given.push_back(of_part);
    }
    if (needed > 0 && given.size() == needed) return {needed == 1 ? given[0] : cat(given, dim)};
    const Tensor dx = Tensor::empty(shape, dtype, device);
    fill(dx, {});
    int64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
      if (const Tensor of_part = part(i); of_part.defined())
        copy_into(dx.slice(dim, begin, begin + sizes[i], 1), of_part);
    return {dx};
  };
  std::vector<Tensor*> results;
  for (Tensor& part : parts) results.push_back(&part);
  const autograd::Ref input(x);
  autograd::attach(op, results, {&input, 1}, {}, join);
  return parts;
}

}  // namespace

Tensors split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  const int along = normalize_dim(dim, x.ndim(), "split");
  int64_t left = x.size(along);
  for (int64_t size : sizes) {
    RL_CHECK(size >= 0, "split", "sizes: expected >= 0, got ", size);
    RL_CHECK(size <= left, "split", "sizes: expected a sum of ", x.size(along), ", got more");
    left -= size;
  }
  RL_CHECK(left == 0, "split", "sizes: expected a sum of ", x.size(along), ", got ", x.size(along) - left);
  return take_apart("split", x, sizes, along, false);
}

Tensors unbind(const Tensor& x, int64_t dim) {
  const int along = normalize_dim(dim, x.ndim(), "unbind");
  return take_apart("unbind", x, std::vector<int64_t>(static_cast<size_t>(x.size(along)), 1), along, true);
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
