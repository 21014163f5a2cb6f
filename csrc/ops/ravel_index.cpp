// ravel_index: cost and operands.
#include "ops/ravel_index.h"

#include "core/range.h"
#include "kernels/ravel_index/ravel_index.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::RavelIndexArgs;

struct IndexedDim {
  int dim;
  int64_t size;
};
struct Options {
  std::vector<IndexedDim> indexed;  // by each input
};

void run(const Call<Options>& call) {
  const Tensor& y = call.outputs[0];
  RavelIndexArgs args{};
  args.y = y.data<int64_t>();
  for (const Tensor& input : call.inputs) {
    const auto& [dim, size] = call.options.indexed[args.array_count];
    const Tensor index = input.expand(y.shape());
    kernels::IndexLayout& array = args.arrays[args.array_count++];
    array.op = call.op->name;
    array.index = index.data();
    array.dtype = index.dtype();
    array.ndim = y.ndim();
    array.count = y.numel();
    for (int d = 0; d < y.ndim(); ++d) {
      array.sizes[d] = y.size(d);
      array.strides[d] = index.stride(d);
    }
    array.limit = array.from_end = size;
    array.dim = dim;
    array.report = report_of(y.device());
  }
  run_rung(kernels::ravel_index_ladder, call, args);
}

const Op<Options> kOp("ravel_index", run, kLooks);

}  // namespace

Tensor ravel_index(const std::vector<Places>& all) {
  const OpScope scope("ravel_index");
  Shape shape = all[0].index.shape();
  Tensors inputs;
  Options options;
  for (const Places& places : all) {
    shape = broadcast_shapes("index", shape, places.index.shape());
    inputs.push_back(places.index);
    options.indexed.push_back({places.dim, places.size});
  }
  const Tensor y = Tensor::empty(shape, DType::kInt64, inputs[0].device());
  const Cost cost{0, 0, compulsory_bytes(inputs), y.nbytes()};
  submit(Call(kOp, std::move(inputs), {y}, std::move(options), cost));
  return y;
}

}  // namespace rooflab
