// stack, split, unbind and repeat_interleave: joining tensors and taking them apart.
#include <algorithm>

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

// The gradient of x from those of some parts, which lie at these places along `dim`. If they are at least half of x,
// one cat joins them with zeros for the others; fewer are copied into zeros.
struct PartGradient {
  int64_t begin;
  Tensor gradient;
};
Tensor join(const std::vector<PartGradient>& parts, Shape shape, int dim, DType dtype, Device device) {
  const int64_t whole = shape[dim];
  int64_t covered = 0, widest_gap = 0, end = 0;
  for (const auto& [begin, gradient] : parts) {
    covered += gradient.size(dim);
    widest_gap = std::max(widest_gap, begin - end);
    end = begin + gradient.size(dim);
  }
  widest_gap = std::max(widest_gap, whole - end);
  if (parts.size() == 1 && widest_gap == 0) return parts[0].gradient;
  const bool joins = !parts.empty() && 2 * covered >= whole;
  if (joins) shape[dim] = widest_gap;
  const Tensor zeros = Tensor::empty(shape, dtype, device);
  fill(zeros, {});
  if (!joins) {
    for (const auto& [begin, gradient] : parts)
      copy_into(zeros.slice(dim, begin, begin + gradient.size(dim), 1), gradient);
    return zeros;
  }
  Tensors pieces;
  end = 0;
  const auto leave_out = [&](int64_t until) {
    if (until > end) pieces.push_back(zeros.slice(dim, 0, until - end, 1));
  };
  for (const auto& [begin, gradient] : parts) {
    leave_out(begin);
    pieces.push_back(gradient);
    end = begin + gradient.size(dim);
  }
  leave_out(whole);
  return cat(pieces, dim);
}

// Views of x, side by side along `dim` in parts of these sizes, or without `dim` where it is dropped: then each is 1.
Tensors take_apart(const char* op, const Tensor& x, const std::vector<int64_t>& sizes, int dim, bool drops_dim) {
  Tensors parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    parts.push_back(drops_dim ? x.select(dim, begin) : x.slice(dim, begin, begin + size, 1));
    begin += size;
  }
  if (!autograd::recording(x) || parts.empty()) return parts;
  const auto rule = [sizes, dim, drops_dim, shape = x.shape(), dtype = x.dtype(), device = x.device()](
                        const Gradients& dy, const Tensors&) -> Tensors {
    std::vector<PartGradient> given;
    int64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); begin += sizes[i++])
      if (const Tensor& of_part = dy[static_cast<int>(i)]; sizes[i] > 0 && of_part.defined())
        given.push_back({begin, drops_dim ? of_part.unsqueeze(dim) : of_part});
    return {join(given, shape, dim, dtype, device)};
  };
  std::vector<Tensor*> results;
  for (Tensor& part : parts) results.push_back(&part);
  const autograd::Ref input(x);
  autograd::attach(op, results, {&input, 1}, {}, rule);
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
