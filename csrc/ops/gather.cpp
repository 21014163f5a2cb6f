// gather, index_select, embedding, scatter, one_hot, scatter_add and index_put: choosing by an index, and its reverse.
#include "kernels/gather/gather.h"

#include "core/range.h"
#include "core/target.h"
#include "core/tensor_check.h"
#include "kernels/index_put/index_put.h"
#include "kernels/scatter/scatter.h"
#include "kernels/scatter_add/scatter_add.h"
#include "ops/axis.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::GatherArgs;
using kernels::IndexLayout;
using kernels::IndexPutArgs;
using kernels::ScatterAddArgs;
using kernels::ScatterArgs;

// How the index chooses from a table: an element each, a slice of a dimension, or a row of a matrix.
enum Choice { kElements, kSlices, kRows };

struct Options {
  Choice choice;
  int64_t dim;
  bool from_end = false;  // numbers below 0 count from the end
  bool distinct = false;  // index_put: no two numbers are alike
  Scalar number{};        // scatter: what is written where there is no tensor of values
};

// The shape that an index chooses from a table of `shape`.
Shape chosen_shape(const Options& options, const Shape& shape, const Tensor& index) {
  const Choice choice = options.choice;
  const int64_t dim = options.dim;
  Shape chosen = index.shape();
  if (choice == kRows) chosen.push_back(shape[1]);
  if (choice != kSlices) return chosen;
  chosen = shape;
  chosen[dim] = index.numel();
  return chosen;
}

// The strides of `table` and of the index along the dimensions of the chosen shape: 0 where one of them lacks a
// dimension.
struct ChoiceStrides {
  Shape table, index;
};
ChoiceStrides strides_of(const Options& options, const Tensor& table, const Tensor& index) {
  const Choice choice = options.choice;
  const int64_t dim = options.dim;
  ChoiceStrides strides{table.strides(), index.strides()};
  if (choice == kRows) {
    strides.table = Shape();
    for (int d = 0; d < index.ndim(); ++d) strides.table.push_back(0);
    strides.table.push_back(table.stride(1));
    strides.index.push_back(0);
    return strides;
  }
  strides.table[dim] = 0;
  if (choice == kElements) return strides;
  strides.index = Shape();
  for (int d = 0; d < table.ndim(); ++d) strides.index.push_back(d == dim ? index.stride(0) : 0);
  return strides;
}

// Prepares `shape` for a kernel: the index and two arrays, where neighbours that are evenly spaced in all become one.
IndexLayout lay_out(const Call<Options>& call, const Shape& shape, const Tensor& table, const Tensor& index,
                    const Shape& index_strides, const Shape& a, int64_t* a_out, const Shape& b, int64_t* b_out) {
  const int64_t dim = call.options.dim;
  IndexLayout at{};
  at.op = call.op->name;
  at.index = index.data();
  at.dtype = index.dtype();
  at.limit = table.size(dim);
  at.step = table.stride(dim);
  at.from_end = call.options.from_end ? at.limit : 0;
  at.dim = static_cast<int>(dim);
  at.report = report_of(table.device());
  at.count = numel(shape);
  for (int d = 0; d < shape.size(); ++d) {
    const int64_t size = shape[d];
    if (size == 1) continue;
    const int last = at.ndim - 1;
    const bool merges = at.ndim > 0 && at.strides[last] == index_strides[d] * size && a_out[last] == a[d] * size &&
                        b_out[last] == b[d] * size;
    if (!merges) at.sizes[at.ndim++] = 1;
    at.sizes[at.ndim - 1] *= size;
    at.strides[at.ndim - 1] = index_strides[d];
    a_out[at.ndim - 1] = a[d];
    b_out[at.ndim - 1] = b[d];
  }
  if (at.ndim == 0) {  // one element
    at.ndim = 1;
    at.sizes[0] = 1;
    at.strides[0] = a_out[0] = b_out[0] = 0;
  }
  return at;
}

void run_gather(const Call<Options>& call) {
  const Tensor &x = call.inputs[0], &index = call.inputs[1], &y = call.outputs[0];
  const auto [x_strides, index_strides] = strides_of(call.options, x, index);
  GatherArgs args{};
  int64_t y_strides[kMaxDims];
  args.at = lay_out(call, y.shape(), x, index, index_strides, x_strides, args.x_strides, y.strides(), y_strides);
  args.x = x.data();
  args.y = y.data();
  args.dtype = x.dtype();
  run_rung(kernels::gather_ladder, call, args);
}

// 16 bits are added in float32 and rounded once. Where more elements are added than there are sums, many meet in one,
// and they are added in float64: a million alike numbers, one after another, are 1 % off in float32.
DType dtype_of_sums(const Tensor& src, const Tensor& y) {
  const bool floating = size_of(y.dtype()) < 8 && is_floating(y.dtype());
  if (floating && src.numel() > y.numel()) return DType::kFloat64;
  return size_of(y.dtype()) == 2 ? DType::kFloat32 : y.dtype();
}

void run_scatter(const Call<Options>& call) {
  const Tensor &x = call.inputs[0], &index = call.inputs[1], &src = call.inputs[2], &y = call.outputs[0];
  write_elements(x, y);
  if (index.numel() == 0) return;
  const auto [y_strides, index_strides] = strides_of(call.options, y, index);
  Shape value_strides = index.shape();
  for (int64_t& stride : value_strides) stride = 0;
  ScatterArgs args{};
  args.at = lay_out(call, index.shape(), y, index, index_strides, src.defined() ? src.strides() : value_strides,
                    args.value_strides, y_strides, args.y_strides);
  args.values = src.data();
  args.number = bits_of(call.options.number, y.dtype());
  args.y = y.data();
  args.places = y.numel();
  const auto lacks = [&](const int64_t* strides) { return std::count(strides, strides + args.at.ndim, 0); };
  args.in_any_order = lacks(args.value_strides) == args.at.ndim || lacks(args.y_strides) == 0;
  args.dtype = y.dtype();
  run_rung(kernels::scatter_ladder, call, args);
}

void run_scatter_add(const Call<Options>& call) {
  const Tensor &x = call.inputs[0], &index = call.inputs[1], &src = call.inputs[2], &y = call.outputs[0];
  const DType dtype = dtype_of_sums(src, y);
  const Tensor sums = dtype == y.dtype() ? y : Tensor::empty(y.shape(), dtype, y.device());
  // Where few sums of a wider dtype change, the CPU leaves the others out.
  const bool is_sparse =
      dtype != y.dtype() && 2 * src.numel() <= y.numel() && target_of(y.device()).kind == Device::Type::kCpu;
  write_elements(x, is_sparse ? y : sums);
  if (src.numel() > 0) {
    const auto [y_strides, index_strides] = strides_of(call.options, sums, index);
    ScatterAddArgs args{};
    args.at = lay_out(call, src.shape(), sums, index, index_strides, src.strides(), args.src_strides, y_strides,
                      args.y_strides);
    args.src = src.data();
    args.y = sums.data();
    args.rounded = is_sparse ? y.data() : nullptr;
    args.places = sums.numel();
    args.dtype = src.dtype();
    args.sums = dtype;
    run_rung(kernels::scatter_add_ladder, call, args);
  }
  if (dtype != y.dtype() && !is_sparse) write_elements(sums, y);
}

void run_put(const Call<Options>& call) {
  const Tensor &index = call.inputs[0], &values = call.inputs[1], &y = call.outputs[0];
  const auto [y_strides, index_strides] = strides_of(call.options, y, index);
  IndexPutArgs args{};
  args.at = lay_out(call, values.shape(), y, index, index_strides, values.strides(), args.value_strides, y_strides,
                    args.y_strides);
  args.count = index.numel();
  args.distinct = call.options.distinct;
  args.values = values.data();
  args.y = y.data();
  args.dtype = y.dtype();
  run_rung(kernels::index_put_ladder, call, args);
}

const Op<Options> kGather("gather", run_gather, kLooks), kIndexSelect("index_select", run_gather, kLooks),
    kEmbedding("embedding", run_gather, kLooks), kScatter("scatter", run_scatter, kLooks),
    kOneHot("one_hot", run_scatter, kLooks), kScatterAdd("scatter_add", run_scatter_add, kLooks),
    kIndexPut("index_put", run_put, kLooks);

void check_index(const char* op, const Tensor& x, const Tensor& index) {
  RL_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, op, "index: expected int64 or int32, got ",
           name(index.dtype()));
  check_same_device(op, x, index);
}

// If `x` is not defined, the sums start from zeros of `shape`.
Tensor add_scattered(const Options& options, const Tensor& x, const Shape& shape, const Tensor& index,
                     const Tensor& src, std::string_view variant = {}) {
  const OpScope scope("scatter_add");
  Tensor y = Tensor::empty(shape, src.dtype(), src.device());
  const Cost cost{0, src.numel(), compulsory_bytes({x, index, src}), y.nbytes()};
  return submit(Call(kScatterAdd, {x, index, src}, {y}, options, cost, variant), autograd::saving(index),
                [dim = options.dim](const Gradients& dy, const Tensor& index) -> Tensors {
                  Tensor dsrc = dy.wanted(2) ? gather(dy, dim, index) : Tensor();
                  return {dy.wanted(0) ? dy[0] : Tensor(), Tensor(), dsrc};
                });
}

// Checks where elements are scattered to along `dim`, which it returns as a number from 0 on.
int64_t check_places(const char* op, const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t at = normalize_dim(dim, x.ndim(), op);
  check_index(op, x, index);
  bool fits = index.ndim() == x.ndim();
  for (int d = 0; fits && d < x.ndim(); ++d) fits = d == at || index.shape()[d] <= x.shape()[d];
  RL_CHECK(fits && (x.size(at) > 0 || index.numel() == 0), op, "src: expected at most ", x.shape(),
           " in all dimensions but ", at, ", got ", index.shape());
  return at;
}

// The same, and checks what is scattered.
int64_t check_scatter(const char* op, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  check_same_device(op, x, src);
  check_same_dtype(op, x, src);
  RL_CHECK(index.shape() == src.shape(), op, "index: expected the shape of src, ", src.shape(), ", got ",
           index.shape());
  return check_places(op, x, dim, index);
}

// The gradient of what scatter writes: 0 for an element that a later one is written over.
Tensor of_last(const Tensor& dy, int64_t dim, const Tensor& index) {
  const Tensor numbers = view(arange(index.numel(), {}, {1, 1}, true, DType::kInt64, index.device()), index.shape());
  Tensor start = Tensor::empty(dy.shape(), DType::kInt64, dy.device());
  fill(start, {});
  const Tensor last = gather(scatter(start, dim, index, numbers), dim, index);
  return where(elementwise(ElementwiseOp::kEq, last, numbers), gather(dy, dim, index), Scalar{});
}

Tensor choose(const Op<Options>& op, const Options& options, const Tensor& x, const Tensor& index,
              std::string_view variant);

// Where nothing is chosen, as from rows without elements, no kernel reads the index. So numbers out of range are looked
// for as if one number everywhere were chosen.
void look_at(const Op<Options>& op, const Options& options, int64_t limit, const Tensor& index) {
  const OpScope looking(op.name, OpScope::kLook);
  const Tensor numbers = reshape(index, {index.numel()});
  choose(op, {kSlices, 0, options.from_end}, numbers.every(0, 0, 1, 1).expand({limit}), numbers, {});
}

// One op of the family. Gradients go back to where each element came from.
Tensor choose(const Op<Options>& op, const Options& options, const Tensor& x, const Tensor& index,
              std::string_view variant) {
  Tensor y = Tensor::empty(chosen_shape(options, x.shape(), index), x.dtype(), x.device());
  RL_CHECK(y.numel() == 0 || x.size(options.dim) > 0, op.name, "x: expected something to choose from, got ", x.shape());
  if (y.numel() == 0 && index.numel() > 0) look_at(op, options, x.size(options.dim), index);
  const int64_t bytes = std::min(compulsory_bytes({x}), y.nbytes()) + compulsory_bytes({index});
  return submit(Call(op, {x, index}, {y}, options, {0, 0, bytes, y.nbytes()}, variant), autograd::saving(index),
                [options, shape = x.shape()](const Gradients& dy, const Tensor& index) -> Tensors {
                  return {add_scattered(options, Tensor(), shape, index, dy), Tensor()};
                });
}

}  // namespace

Tensor scatter_into_zeros(const Shape& shape, int64_t dim, const Tensor& index, const Tensor& src) {
  return add_scattered({kElements, dim}, Tensor(), shape, index, src);
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, std::string_view variant) {
  const OpScope scope("gather");
  const int64_t at = normalize_dim(dim, x.ndim(), "gather");
  check_index("gather", x, index);
  bool fits = index.ndim() == x.ndim();
  for (int d = 0; fits && d < x.ndim(); ++d) fits = d == at || index.shape()[d] <= x.shape()[d];
  RL_CHECK(fits, "gather", "index: expected at most ", x.shape(), " in all dimensions but ", at, ", got ",
           index.shape());
  return choose(kGather, {kElements, at}, x, index, variant);
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index, std::string_view variant) {
  const OpScope scope("index_select");
  const int64_t at = normalize_dim(dim, x.ndim(), "index_select");
  check_index("index_select", x, index);
  RL_CHECK(index.ndim() == 1, "index_select", "index: expected 1 dimension, got ", index.shape());
  return choose(kIndexSelect, {kSlices, at}, x, index, variant);
}

Tensor choose_slices(const Tensor& x, int64_t dim, const Tensor& index) {
  const OpScope scope("index_select");
  check_index("index_select", x, index);
  return choose(kIndexSelect, {kSlices, dim, true}, x, index, {});
}

void put_slices(const Tensor& y, int64_t dim, const Tensor& index, const Tensor& values, bool distinct) {
  const OpScope scope("index_put");
  RL_CHECK(index.numel() <= INT32_MAX, "index_put", "index: expected fewer than 2**31 numbers, got ", index.numel());
  const Cost cost{0, 0, compulsory_bytes({index, values}), std::min(values.numel() * size_of(y.dtype()), y.nbytes())};
  submit(Call(kIndexPut, {index, values}, {y}, {kSlices, dim, true, distinct}, cost));
  y.storage()->bump_version();
}

Tensor embedding(const Tensor& index, const Tensor& weight, std::string_view variant) {
  const OpScope scope("embedding");
  RL_CHECK(weight.ndim() == 2, "embedding", "weight: expected (V, D), got ", weight.shape());
  check_index("embedding", weight, index);
  return choose(kEmbedding, {kRows, 0}, weight, index, variant);
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view variant) {
  RL_CHECK(x.dtype() != DType::kBool, "scatter_add", "x: expected a numeric dtype, got bool");
  const int64_t at = check_scatter("scatter_add", x, dim, index, src);
  return add_scattered({kElements, at}, x, x.shape(), index, src, variant);
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view variant) {
  const OpScope scope("scatter");
  const int64_t at = check_scatter("scatter", x, dim, index, src);
  RL_CHECK(index.numel() <= INT32_MAX, "scatter", "index: expected fewer than 2**31 numbers, got ", index.numel());
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const Cost cost{0, 0, compulsory_bytes({x, index, src}), y.nbytes()};
  return submit(Call(kScatter, {x, index, src}, {y}, {kElements, at}, cost, variant), autograd::saving(index),
                [at](const Gradients& dy, const Tensor& index) -> Tensors {
                  const OpScope scope("scatter", OpScope::kName);
                  return {dy.wanted(0) ? scatter(dy, at, index, Scalar{}) : Tensor(), Tensor(),
                          dy.wanted(2) ? of_last(dy, at, index) : Tensor()};
                });
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar number, std::string_view variant) {
  const OpScope scope("scatter");
  const int64_t at = check_places("scatter", x, dim, index);
  check_number("scatter", number, x.dtype());
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  Options options{kElements, at};
  options.number = number;
  const Cost cost{0, 0, compulsory_bytes({x, index}), y.nbytes()};
  return submit(Call(kScatter, {x, index, Tensor()}, {y}, options, cost, variant), autograd::saving(index),
                [at](const Tensor& dy, const Tensor& index) -> Tensors {
                  const OpScope scope("scatter", OpScope::kName);
                  return {scatter(dy, at, index, Scalar{}), Tensor(), Tensor()};
                });
}

Tensor one_hot(const Tensor& index, int64_t classes) {
  const OpScope scope("one_hot");
  RL_CHECK(index.dtype() == DType::kInt64, "one_hot", "index: expected int64, got ", name(index.dtype()));
  RL_CHECK(classes > 0, "one_hot", "classes: expected at least 1, got ", classes);
  const Tensor row = index.unsqueeze(index.ndim());  // refuses too many dimensions
  Shape shape = row.shape();
  shape[index.ndim()] = classes;
  Tensor y = Tensor::empty(shape, DType::kInt64, index.device());
  Options options{kElements, index.ndim()};
  options.number = {1, 1};
  const Cost cost{0, 0, compulsory_bytes({index}), y.nbytes()};
  submit(Call(kOneHot, {Tensor(), row, Tensor()}, {y}, options, cost));
  return y;
}

}  // namespace rooflab
