// t[...]: views by integers, slices and new dimensions; copies of the elements that integer arrays and masks choose.
#include <algorithm>
#include <stdexcept>

#include "autograd/tape.h"
#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/axis.h"
#include "ops/graph.h"
#include "ops/ravel_index.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

Tensor follow(Tensor x, const std::vector<IndexStep>& steps) {
  for (const auto& [kind, dim, start, count, step] : steps)
    x = kind == IndexStep::kSelect  ? x.select(dim, start)
        : kind == IndexStep::kSlice ? x.every(dim, start, count, step)
                                    : x.unsqueeze(dim);
  return x;
}

bool goes_backwards(const std::vector<IndexStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const IndexStep& s) { return s.step < 0; });
}

// A captured tensor has no values before a replay.
void check_not_capturing(const char* what) {
  RL_CHECK(!Graph::capturing(), "index", what, " reads the index, so a graph cannot capture it");
}

void check_covers(const Tensor& mask, int dim, const Tensor& x) {
  Shape covered;
  for (int d = dim; d < std::min(dim + mask.ndim(), x.ndim()); ++d) covered.push_back(x.shape()[d]);
  if (mask.shape() != covered)
    throw std::out_of_range(message("[index] mask: expected ", covered, ", got ", mask.shape()));
}

Places places_of(const Tensor& mask, int dim, const Tensor& x) {
  check_covers(mask, dim, x);
  check_not_capturing("a mask");
  RL_CHECK_AS(WithoutMemory, !mask.device().is_meta(), "index", "mask: on ", to_string(mask.device()),
              " it has no values, which the size of the result depends on");
  const Tensor places = nonzero(reshape(mask.detach(), {mask.numel()}));
  return {dim, mask.ndim(), mask.numel(), to_device(reshape(places, {places.numel()}), x.device())};
}

std::string out_of_bounds(int64_t number, int dim, const Tensor& x) {
  return message("[index] ", number, " is out of bounds for dimension ", dim, " of size ", x.size(dim));
}

// Integers on x's device. Those on the CPU are looked at before they are moved to a GPU, so that an error is raised at
// once; a kernel looks at the others.
Tensor moved_integers(const Tensor& index, int dim, const Tensor& x) {
  const int64_t size = x.shape()[dim];
  if (index.device().is_cpu() && (size == 0 || !x.device().is_cpu()) && !Graph::capturing()) {
    const Tensor host = contiguous(index);
    const bool is_wide = host.dtype() == DType::kInt64;
    for (int64_t i = 0; i < host.numel(); ++i)
      if (const int64_t at = is_wide ? host.data<int64_t>()[i] : host.data<int32_t>()[i]; at < -size || at >= size)
        throw std::out_of_range(out_of_bounds(at, dim, x));
  }
  if (index.numel() > 0 && size == 0)
    throw std::out_of_range(message("[index] every number is out of bounds for dimension ", dim, " of size 0"));
  return to_device(index, x.device());
}

// The integers of an index's only array, on x's device. The kernel that takes them finds those out of range, if there
// is anything to choose from.
Tensor only_integers(const Tensor& index, int dim, const Tensor& x) {
  const Tensor moved = moved_integers(index, dim, x);
  if (x.numel() == 0 && moved.numel() > 0) ravel_index({{dim, 1, x.size(dim), moved}});
  return moved;
}

// What one array of integers chooses, in one launch.
Tensor choose_along(const Tensor& x, const IndexArray& array) {
  const Tensor index = only_integers(array.index.detach(), array.dim, x);
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

Choice choose(const Tensor& x, const std::vector<IndexArray>& arrays) {
  std::vector<Places> all;
  const auto integers = arrays.size() == 1 ? only_integers : moved_integers;
  for (const auto& [dim, index] : arrays)
    all.push_back(index.dtype() == DType::kBool ? places_of(index, dim, x)
                                                : Places{dim, 1, x.size(dim), integers(index.detach(), dim, x)});
  bool is_apart = false;
  int dims = 0;
  int64_t size = 1;
  for (size_t i = 0; i < all.size(); ++i) {
    const Places& next = all[i];
    is_apart |= i > 0 && next.dim != all[i - 1].dim + all[i - 1].dims;
    dims += next.dims;
    size *= next.size;
  }
  const Tensor places = all.size() == 1 ? all[0].index : ravel_index(all);

  Choice choice;
  choice.at = is_apart ? 0 : all[0].dim;
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

bool is_one_mask(const std::vector<IndexArray>& arrays) {
  return arrays.size() == 1 && arrays[0].index.dtype() == DType::kBool;
}

// A value without the dimensions of size 1 that it has in front beyond those of its place.
Tensor without_leading_ones(Tensor value, int ndim) {
  while (value.ndim() > ndim && value.size(0) == 1) value = value.select(0, 0);
  return value;
}

// Writes values into the chosen places of x, in their order: the last one for a place stays. `values_for` checks that
// they fit, also where no place is chosen, and returns them in the chosen shape.
template <class ValuesFor>
void set_chosen(const Tensor& x, const std::vector<IndexArray>& arrays, const ValuesFor& values_for) {
  Trace::refuse("index", "a write by an array cannot be recorded; write outside of the function");
  const Choice choice = choose(x, arrays);
  const Tensor values = values_for(choice);
  if (choice.places.numel() == 0 || x.numel() == 0) return;

  const Tensor to = x.detach().permute(choice.order), folded = reshape(to, choice.folded);
  Shape rows = choice.folded;
  rows[choice.at] = choice.places.numel();
  const Tensor places = apart(to_device(contiguous(choice.places), x.device()), x);
  put_slices(folded, choice.at, places, reshape(apart(values, x), rows), is_one_mask(arrays));
  if (folded.storage() != x.storage()) copy_into(to, reshape(folded, choice.arranged));
}

// The same for a mask alone and one number.
void fill_chosen(const Tensor& x, const IndexArray& array, Scalar value) {
  check_covers(array.index, array.dim, x);
  check_not_capturing("a mask");
  Shape along = array.index.shape();
  while (along.size() < x.ndim() - array.dim) along.push_back(1);
  const Tensor mask = to_device(array.index.detach(), x.device());
  fill_where(reshape(mask, along), x, value);
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
  const Choice choice = choose(x, arrays);
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
  set_chosen(view, arrays, [&](const Choice& choice) {
    const Tensor number = Tensor::empty({}, x.dtype(), x.device());
    fill(number, value);
    return number.expand(choice.chosen);
  });
}

}  // namespace rooflab
