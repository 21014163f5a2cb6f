// searchsorted: the places of values in sorted rows.
#include "kernels/searchsorted/searchsorted.h"

#include "core/tensor_check.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

struct Options {};

void run(const Call<Options>& call) {
  const Tensor &sorted = call.inputs[0], &values = call.inputs[1], &y = call.outputs[0];
  const Tensor rows = operand_as(sorted, contiguous(sorted)), wanted = operand_as(values, contiguous(values));
  const int64_t n = sorted.size(-1), m = values.size(-1);
  run_rung(kernels::searchsorted_ladder, call,
           kernels::SearchsortedArgs{rows.data(), wanted.data(), y.data<int64_t>(), values.numel() / m, n, m,
                                     sorted.dtype()});
}

const Op<Options> kOp("searchsorted", run);

}  // namespace

Tensor searchsorted(const Tensor& sorted, const Tensor& values) {
  const OpScope scope("searchsorted");
  check_same_device("searchsorted", sorted, values);
  check_same_dtype("searchsorted", sorted, values);
  bool fits = sorted.ndim() == values.ndim() && sorted.ndim() > 0;
  for (int d = 0; fits && d + 1 < sorted.ndim(); ++d) fits = sorted.size(d) == values.size(d);
  RL_CHECK(fits, "searchsorted", "values: expected ", sorted.shape(), " but for the last dimension, got ",
           values.shape());
  Tensor y = Tensor::empty(values.shape(), DType::kInt64, values.device());
  if (y.numel() == 0) return y;
  const Cost cost{0, 0, compulsory_bytes({sorted, values}), y.nbytes()};
  submit(Call(kOp, {sorted.detach(), values.detach()}, {y}, Options{}, cost));
  return y;
}

}  // namespace rooflab
