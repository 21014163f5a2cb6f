// sum_squares and scale_tensors: checks and cost.
#include "ops/tensor_list.h"

#include <unordered_set>

#include "core/range.h"
#include "core/tensor_check.h"
#include "kernels/scale_tensors/scale_tensors.h"
#include "kernels/sum_squares/sum_squares.h"
#include "ops/rung.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

using kernels::kListTensors;
using kernels::ScaleTensorsArgs;
using kernels::SumSquaresArgs;
using kernels::TensorList;

void check_list(const char* op, const Tensors& tensors) {
  RL_CHECK(!tensors.empty(), op, "tensors: expected at least one");
  for (const Tensor& x : tensors) {
    check_floating(op, "tensors", x);
    check_same_device(op, tensors[0], x);
    check_same_dtype(op, tensors[0], x);
  }
}

// Calls run(list, first) for as many tensors as a launch takes, from the first on, and so on until all have been taken.
template <class Run>
void for_lists(const Tensors& tensors, const Run& run) {
  for (size_t first = 0; first < tensors.size(); first += kListTensors) {
    TensorList list{};
    for (size_t i = first; i < tensors.size() && list.count < kListTensors; ++i)
      list.tensors[list.count++] = {tensors[i].data(), tensors[i].numel()};
    run(list, first);
  }
}

void run_sum_squares(const Call<NoOptions>& call) {
  Tensors tensors;
  for (const Tensor& x : call.inputs) tensors.push_back(operand_as(x, contiguous(x.detach())));
  for_lists(tensors, [&](const TensorList& list, size_t first) {
    run_rung(kernels::sum_squares_ladder, call,
             SumSquaresArgs{list, call.outputs[0].data<double>(), first > 0, tensors[0].dtype()});
  });
}

void run_scale_tensors(const Call<NoOptions>& call) {
  for_lists(call.outputs, [&](const TensorList& list, size_t) {
    run_rung(kernels::scale_tensors_ladder, call,
             ScaleTensorsArgs{list, call.inputs.back().data<double>(), call.outputs[0].dtype()});
  });
}

// Whether one launch would write to an element for two of the tensors.
bool share_elements(const Tensors& tensors) {
  std::unordered_set<const Storage*> storages;
  for (const Tensor& x : tensors) storages.insert(x.storage().get());
  if (storages.size() == tensors.size()) return false;
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (tensors[i].storage() == tensors[j].storage() && tensors[i].overlaps(tensors[j])) return true;
  return false;
}

const Op<NoOptions> kSumSquares("sum_squares", run_sum_squares), kScaleTensors("scale_tensors", run_scale_tensors);

}  // namespace

Tensor sum_squares(const Tensors& tensors, std::string_view variant) {
  const OpScope scope("sum_squares");
  check_list("sum_squares", tensors);
  const Tensor y = Tensor::empty({}, DType::kFloat64, tensors[0].device());
  Cost cost{0, 0, compulsory_bytes(tensors), y.nbytes()};
  for (const Tensor& x : tensors) cost.flops += 2 * x.numel();
  submit(Call(kSumSquares, tensors, {y}, {}, cost, variant));
  return y;
}

void scale_tensors(const Tensors& tensors, const Tensor& factor, std::string_view variant) {
  const OpScope scope("scale_tensors");
  Trace::refuse("scale_tensors", "it writes to tensors, which cannot be recorded; call it outside of the function");
  check_list("scale_tensors", tensors);
  check_same_device("scale_tensors", tensors[0], factor);
  RL_CHECK(factor.dtype() == DType::kFloat64 && factor.ndim() == 0, "scale_tensors",
           "factor: expected float64 (), got ", name(factor.dtype()), " ", factor.shape());
  for (const Tensor& x : tensors) check_writable("scale_tensors", x);
  if (share_elements(tensors)) {
    for (const Tensor& x : tensors) scale_tensors({x}, factor, variant);
    return scope.done();
  }
  Tensors written, inputs;
  Cost cost{0, 0, factor.nbytes(), 0};
  for (const Tensor& x : tensors) {
    if (x.numel() == 0) continue;
    written.push_back(contiguous(x.detach()));
    cost.flops += x.numel();
    cost.bytes_read += x.nbytes();
    cost.bytes_written += x.nbytes();
  }
  if (written.empty()) return scope.done();
  inputs = written;
  inputs.push_back(factor);
  submit(Call(kScaleTensors, std::move(inputs), written, {}, cost, variant));
  size_t i = 0;
  for (const Tensor& x : tensors) {
    if (x.numel() == 0) continue;
    if (const Tensor& scaled = written[i++]; scaled.storage() != x.storage()) copy_into(x, scaled);
    x.storage()->bump_version();
  }
}

}  // namespace rooflab
