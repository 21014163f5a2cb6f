// fused: layout.
#include "ops/fused.h"

#include <algorithm>

#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::FusedArgs;
using kernels::FusedLaunch;

// Sets the dimensions of `launch` from those of the elements and of the operands, which are broadcast to them.
// Neighbours that are evenly spaced in all of them become one. The last `reduced_dims` make up a row.
void set_layout(FusedLaunch& launch, const Shape& shape, int reduced_dims, const Tensors& operands) {
  const int count = static_cast<int>(operands.size()), first_reduced = shape.size() - reduced_dims;
  launch.columns = 1;
  launch.row_ndim = launch.ndim = 0;
  const auto add_dimension = [&](int64_t stride) {
    for (int k = 0; k < count; ++k) launch.operands[k].strides[launch.ndim] = stride;
    launch.sizes[launch.ndim++] = 1;
  };
  const auto end_rows = [&] {
    if (launch.ndim == 0) add_dimension(0);  // one row
    launch.row_ndim = launch.ndim;
  };
  for (int d = 0; d < shape.size(); ++d) {
    const int64_t size = shape[d];
    if (d == first_reduced) end_rows();
    if (d >= first_reduced) launch.columns *= size;
    if (size == 1) continue;
    int64_t steps[kernels::kMaxFusedOperands];
    bool merges = launch.ndim > launch.row_ndim;
    for (int k = 0; k < count; ++k) {
      const Tensor& x = operands[k];
      const int at = d - (shape.size() - x.ndim());
      steps[k] = at >= 0 && x.shape()[at] != 1 ? x.strides()[at] : 0;
      merges = merges && launch.operands[k].strides[launch.ndim - 1] == steps[k] * size;
    }
    if (!merges) add_dimension(0);
    launch.sizes[launch.ndim - 1] *= size;
    for (int k = 0; k < count; ++k) launch.operands[k].strides[launch.ndim - 1] = steps[k];
  }
  if (launch.ndim == 0) add_dimension(1);                // one element
  if (launch.ndim == launch.row_ndim) add_dimension(1);  // one element per row
}

void run(const Call<FusedOptions>& call) {
  const FusedChain& chain = *call.options.chain;
  FusedArgs args{chain.program, {}};
  FusedLaunch& launch = args.launch;
  launch.count = numel(chain.shape);
  for (size_t k = 0; k < call.inputs.size(); ++k) launch.operands[k].data = call.inputs[k].data();
  const int results = chain.program.results;
  for (int k = 0; k < results; ++k) launch.results[k] = call.outputs[k].data();
  for (int k = 0; k < chain.program.column_sums; ++k) launch.column_sums[k] = call.outputs[results + k].data();
  std::copy(chain.numbers.begin(), chain.numbers.end(), launch.numbers);
  set_layout(launch, chain.shape, chain.reduced_dims, call.inputs);
  launch.rows = launch.count / launch.columns;
  run_rung(kernels::fused_ladder, call, args);
}

const Op<FusedOptions> kOp("fused", run);

}  // namespace

const Op<FusedOptions>& fused_op() { return kOp; }

}  // namespace rooflab
