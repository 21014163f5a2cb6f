// t[...]: views by integers, slices and new dimensions; copies of the elements that integer arrays and masks choose.
#include <algorithm>
#include <stdexcept>

#include "autograd/tape.h"
#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/axis.h"
#include "ops/elementwise.h"
#include "ops/graph.h"

namespace rooflab {
namespace {

using enum ElementwiseOp;

Tensor follow(Tensor x, const std::vector<IndexStep>& steps) {
  for (const auto& [kind, dim, start, count, step] : steps)
    x = kind == IndexStep::kSelect  ? x.select(dim, start)
        : kind == IndexStep::kSlice ? x.every(dim, start, count, step)
                                    : x.unsqueeze(dim);
  return x;
}

bool goes_backwards(const std::vector<IndexStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const IndexStep& s) { return s.count > 1 && s.step < 0; });
}

// A captured tensor has no values before a replay.
void check_not_capturing(const char* what) {
  RL_CHECK(!Graph::capturing(), "index", what, " reads the index, so a graph cannot capture it");
}

// Integers along one dimension of x, or along several dimensions that a mask covers, seen as one.
struct Places {
  int dim, dims;
  int64_t size;
  Tensor index;  // int64, in [0, size); where it is the only array, numbers below 0 still count from the end
};

void check_covers(const Tensor& mask, int dim, const Tensor& x) {
  Shape covered;
  for (int d = dim; d < std::min(dim + mask.ndim(), x.ndim()); ++d) covered.push_back(x.shape()[d]);
  if (mask.shape() != covered)
    throw std::out_of_range(message("[index] mask: expected ", covered, ", got ", mask.shape()));
}

Places places_of(const Tensor& mask, int dim, const Tensor& x, Device device) {
  check_covers(mask, dim, x);
  check_not_capturing("a mask");
  RL_CHECK(!mask.device().is_meta(), "index", "mask: on ", to_string(mask.device()),
           " it has no values, which the size of the result depends on");
  const Tensor places = nonzero(reshape(mask.detach(), {mask.numel()}));
  return {dim, mask.ndim(), mask.numel(), to_device(reshape(places, {places.numel()}), device)};
}

// Integers on `device`. Those out of range are detected where they can be read: on the CPU, before they are moved.
Tensor checked_integers(const Tensor& index, int dim, const Tensor& x, Device device) {
  const int64_t size = x.shape()[dim];
  const Tensor here = device.is_cpu() ? to_device(index, device) : index;
  if (here.device().is_cpu() && !Graph::capturing()) {
    const Tensor host = contiguous(here);
    const bool is_wide = host.dtype() == DType::kInt64;
    for (int64_t i = 0; i < host.numel(); ++i)
      if (const int64_t at = is_wide ? host.data<int64_t>()[i] : host.data<int32_t>()[i]; at < -size || at >= size)
        throw std::out_of_range(message("[index] ", at, " is out of bounds for dimension ", dim, " of size ", size));
  }
  return to_device(here, device);
}

Places places_along(const Tensor& index_in, int dim, const Tensor& x, Device device, bool is_only_array) {
  const int64_t size = x.shape()[dim];
  const Tensor index = checked_integers(cast(index_in.detach(), DType::kInt64), dim, x, device);
  if (is_only_array) return {dim, 1, size, index};
  const Tensor from_end = elementwise(kAdd, index, Scalar{static_cast<double>(size), size});
  return {dim, 1, size, where(elementwise(kLt, index, Scalar{}), from_end, index)};
}

// What one array of integers chooses, in one launch. On the CPU its kernel finds numbers that are out of range.
Tensor choose_along(const Tensor& x, const IndexArray& array) {
  const Tensor given = array.index.detach();
  const bool kernel_looks = x.device().is_cpu() && x.numel() > 0;
  const Tensor index = kernel_looks ? to_device(given, x.device()) : checked_integers(given, array.dim, x, x.device());
  if (index.ndim() == 1) return choose_slices(x, array.dim, index);
  Shape chosen;
  for (int d = 0; d < x.ndim(); ++d) {
    if (d != array.dim)
      chosen.push_back(x.size(d));
    else
      for (int64_t n : index.shape()) chosen.push_back(n);
  }
  return view(choose_slices(x, array.dim, reshape(index, {index.numel()})), chosen);
}

// The elements that arrays choose from x: places along one dimension of `folded`, into which all indexed dimensions
// merge.
struct Choice {
  Shape order;     // of x's dimensions: the indexed ones come first if they are not adjacent
  Shape arranged;  // x's shape in that order
  int at = 0;      // the folded dimension
  Shape folded;    // x's shape with that dimension
  Shape chosen;    // the result's shape
  Tensor places;   // (K)
};

// The places are computed on `device`.
Choice choose(const Tensor& x, const std::vector<IndexArray>& arrays, Device device) {
  std::vector<Places> all;
  for (const auto& [dim, index] : arrays)
    all.push_back(index.dtype() == DType::kBool ? places_of(index, dim, x, device)
                                                : places_along(index, dim, x, device, arrays.size() == 1));
  Tensor places;
  bool apart = false;
  int dims = 0;
  int64_t size = 1;
  for (size_t i = 0; i < all.size(); ++i) {
    const Places& next = all[i];
    if (i > 0) broadcast_shapes("index", places.shape(), next.index.shape());
    apart |= i > 0 && next.dim != all[i - 1].dim + all[i - 1].dims;
    places = i == 0 ? next.index
                    : elementwise(kAdd, elementwise(kMul, places, Scalar{static_cast<double>(next.size), next.size}),
                                  next.index);
    dims += next.dims;
    size *= next.size;
  }

  Choice choice;
  choice.at = apart ? 0 : all[0].dim;
  const auto is_indexed = [&](int d) {
    return std::any_of(all.begin(), all.end(), [d](const Places& p) { return d >= p.dim && d < p.dim + p.dims; });
  };
  for (int d = 0; d < choice.at; ++d) choice.order.push_back(d);
  for (const bool indexed : {true, false})
    for (int d = choice.at; d < x.ndim(); ++d)
      if (is_indexed(d) == indexed) choice.order.push_back(d);
  for (int64_t d : choice.order) choice.arranged.push_back(x.shape()[d]);
  for (int d = 0; d < choice.at; ++d) choice.folded.push_back(choice.arranged[d]);
  choice.chosen = choice.folded;
  choice.folded.push_back(size);
  for (int64_t n : places.shape()) choice.chosen.push_back(n);
  for (int d = choice.at + dims; d < x.ndim(); ++d) {
    choice.folded.push_back(choice.arranged[d]);
    choice.chosen.push_back(choice.arranged[d]);
  }
  choice.places = reshape(places, {places.numel()});
  return choice;
}

// For each place of the folded dimension, which of the K values is written there last, and whether there is one.
std::pair<Tensor, Tensor> last_writes(const Choice& choice, Device device) {
  const int64_t size = choice.folded[choice.at];
  if (device.is_meta())
    return {Tensor::empty({size}, DType::kInt64, device), Tensor::empty({size}, DType::kBool, device)};
  const Tensor& host = choice.places;
  Tensor winner = Tensor::empty({size}, DType::kInt64, Device{}),
         is_hit = Tensor::empty({size}, DType::kBool, Device{});
  std::fill_n(winner.data<int64_t>(), size, 0);
  std::fill_n(is_hit.data<bool>(), size, false);
  for (int64_t k = 0; k < host.numel(); ++k) {
    int64_t place = host.data<int64_t>()[k];
    if (place < 0) place += size;
    if (place < 0 || place >= size) throw std::out_of_range("[index] the index was changed while it was read");
    winner.data<int64_t>()[place] = k;
    is_hit.data<bool>()[place] = true;
  }
  return {to_device(winner, device), to_device(is_hit, device)};
}

bool is_one_mask(const std::vector<IndexArray>& arrays) {
  return arrays.size() == 1 && arrays[0].index.dtype() == DType::kBool;
}

// The same for a mask on a GPU alone, which chooses no place twice: the values come in the order of the places.
std::pair<Tensor, Tensor> writes_of_mask(const Tensor& mask) {
  const Tensor hit = reshape(mask, {mask.numel()});
  const Tensor last = elementwise(kSub, cumsum(hit, 0), Scalar{1.0, 1});
  return {elementwise(kMaximum, last, Scalar{}), hit};
}

// A value without the dimensions of size 1 that it has in front beyond those of its place.
Tensor without_leading_ones(Tensor value, int ndim) {
  while (value.ndim() > ndim && value.size(0) == 1) value = value.select(0, 0);
  return value;
}

// Of values of the chosen shape, those that come last at each place; a number is the same everywhere.
Tensor winners(const Tensor& values, const Choice& choice, const Tensor& winner) {
  Shape rows = choice.folded;
  rows[choice.at] = choice.places.numel();
  return index_select(reshape(values, rows), choice.at, winner);
}
Scalar winners(Scalar value, const Choice&, const Tensor&) { return value; }

// Writes into each chosen place of x the value that comes last there. `values_for` checks that the values fit, also
// where no place is chosen, and returns them.
template <class ValuesFor>
void set_chosen(const Tensor& x, const std::vector<IndexArray>& arrays, const ValuesFor& values_for) {
  check_not_capturing("a write");
  const bool by_mask = is_one_mask(arrays) && x.device().is_cuda() && arrays[0].index.device() == x.device();
  // On the CPU every index can be checked, and the last value for each place is found there.
  const Choice choice = choose(x, arrays, x.device().is_meta() || by_mask ? x.device() : Device{});
  const auto values = values_for(choice);
  if (choice.places.numel() == 0 || x.numel() == 0) return;
  const auto [winner, hit] = by_mask ? writes_of_mask(arrays[0].index.detach()) : last_writes(choice, x.device());
  Shape along;
  for (int d = 0; d < choice.folded.size(); ++d) along.push_back(d == choice.at ? choice.folded[d] : 1);
  const Tensor to = x.permute(choice.order), before = reshape(to, choice.folded);
  copy_into(to, reshape(where(hit.view(along), winners(values, choice, winner), before), choice.arranged));
}

// The same for a mask alone and one value.
void fill_chosen(const Tensor& x, const IndexArray& array, Scalar value) {
  check_covers(array.index, array.dim, x);
  check_not_capturing("a mask");
  Shape along = array.index.shape();
  while (along.size() < x.ndim() - array.dim) along.push_back(1);
  const Tensor mask = to_device(array.index.detach(), x.device());
  copy_into(x, where(reshape(mask, along), value, x.detach()));
}

}  // namespace

Tensor index(const Tensor& x, std::vector<IndexStep> steps) {
  Tensor y = follow(x, steps);
  if (goes_backwards(steps)) y = copy(y);
  if (autograd::recording(x))
    autograd::record("index", y, {x}, [steps = std::move(steps), shape = x.shape()](const Tensor& dy) {
      const OpScope scope("index", OpScope::kName);
      Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
      fill(dx, {});
      copy_into(follow(dx, steps), dy);
      return dx;
    });
  return y;
}

Tensor index(const Tensor& x_in, std::vector<IndexStep> steps, const std::vector<IndexArray>& arrays) {
  if (arrays.empty()) return index(x_in, std::move(steps));
  const Tensor x = steps.empty() ? x_in : index(x_in, std::move(steps));
  if (arrays.size() == 1 && arrays[0].index.dtype() != DType::kBool) return choose_along(x, arrays[0]);
  const Choice choice = choose(x, arrays, x.device());
  const Tensor folded = reshape(permute(x, choice.order), choice.folded);
  return view(index_select(folded, choice.at, choice.places), choice.chosen);
}

void set_index(const Tensor& x, const std::vector<IndexStep>& steps, const std::vector<IndexArray>& arrays,
               const Tensor& value) {
  check_writable("index", x);
  autograd::check_source("index", value);
  const Tensor view = follow(x, steps);
  if (arrays.empty()) return copy_into(view, without_leading_ones(value, view.ndim()));
  const Tensor cast_value = cast(to_device(value.detach(), x.device()), x.dtype());
  set_chosen(view, arrays, [&](const Choice& choice) {
    const Tensor given = without_leading_ones(cast_value, choice.chosen.size());
    RL_CHECK(broadcast_shapes("index", choice.chosen, given.shape()) == choice.chosen, "index",
             "value: ", given.shape(), " does not broadcast to ", choice.chosen);
    return given.expand(choice.chosen);
  });
}

void set_index(const Tensor& x, const std::vector<IndexStep>& steps, const std::vector<IndexArray>& arrays,
               Scalar number) {
  check_writable("index", x);
  const Scalar value{number.real, number.integer};  // of the dtype of x
  const Tensor view = follow(x, steps);
  if (arrays.empty()) return fill(view, value);
  if (is_one_mask(arrays)) return fill_chosen(view, arrays[0], value);
  set_chosen(view, arrays, [&](const Choice&) { return value; });
}

}  // namespace rooflab
