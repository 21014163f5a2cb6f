// ravel_index: cost and operands.
#include "ops/ravel_index.h"

#include "core/range.h"
#include "kernels/ravel_index/ravel_index.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::RavelIndexArgs;

struct IndexedSizes {
  int64_t size;
  int dim;
};
struct Options {
  std::vector<IndexedSizes> of;  // each input
};

void run(const Call<Options>& call) {
  const Tensor& y = call.outputs[0];
  RavelIndexArgs args{};
  args.array_count = static_cast<int>(call.inputs.size());
  args.ndim = y.ndim();
  for (int d = 0; d < y.ndim(); ++d) args.sizes[d] = y.size(d);
  args.count = y.numel();
  args.y = y.data<int64_t>();
  args.report = report_of(y.device());
  for (int a = 0; a < args.array_count; ++a) {
    const Tensor index = call.inputs[a].expand(y.shape());
    kernels::IndexedDim& array = args.arrays[a];
    array.index = index.data();
    for (int d = 0; d < y.ndim(); ++d) array.strides[d] = index.stride(d);
    array.size = call.options.of[a].size;
    array.dim = call.options.of[a].dim;
    array.dtype = index.dtype();
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
    options.of.push_back({places.size, places.dim});
  }
  const Tensor y = Tensor::empty(shape, DType::kInt64, inputs[0].device());
  const Cost cost{0, 0, compulsory_bytes(inputs), y.nbytes()};
  submit(Call(kOp, std::move(inputs), {y}, std::move(options), cost));
  return y;
}

}  // namespace rooflab
