#include "ops/program.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/chain_writer.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/fusible.h"
#include "ops/ops.h"

namespace rooflab {
namespace {

Scalar constant_of(const TracedCall& traced) {
  return element_of(options_of<ElementwiseOptions>(*traced.call)->numbers[0], traced.outputs[0].dtype);
}

// The number of rows in elements of a shape.
int64_t rows_of(const Shape& shape, int reduced_dims) {
  int64_t rows = 1;
  for (int d = 0; d < shape.size() - reduced_dims; ++d) rows *= shape[d];
  return rows;
}

// Its kernel looks for a divisor of 0.
bool divides_integers(const TracedCall& traced) {
  const auto* options = options_of<ElementwiseOptions>(*traced.call);
  return options && (options->op == ElementwiseOp::kFloorDivide || options->op == ElementwiseOp::kRemainder) &&
         !is_floating(options->dtype);
}

// The options of a call that reduces floats, if it can be part of a chain; null otherwise.
const ReduceOptions* reduction_of(const TracedCall& traced) {
  const auto* options = options_of<ReduceOptions>(*traced.call);
  const bool fits = options && traced.call->variant.empty() && traced.continues < 0;
  return fits && is_floating(traced.inputs[0].dtype) ? options : nullptr;
}

bool has_strides(const Tensor& x, const Shape& strides) {
  for (int d = 0; d < x.ndim(); ++d)
    if (x.shape()[d] > 1 && x.strides()[d] != strides[d]) return false;
  return true;
}

}  // namespace

bool is_in_order(const View& view) {
  const Shape strides = contiguous_strides(view.shape);
  for (int i = 0; i < static_cast<int>(strides.size()); ++i)
    if (view.shape[i] > 1 && view.strides[i] != strides[i]) return false;
  return true;
}

bool shows_same(const View& x, const View& y) {
  if (x == y) return true;
  return x.storage == y.storage && x.offset == y.offset && x.dtype == y.dtype && numel(x.shape) == numel(y.shape) &&
         is_in_order(x) && is_in_order(y);
}

bool shows_rows(const View& x, const View& y, const Shape& shape, int reduced_dims) {
  const int missing = shape.size() - x.shape.size(), rows_ndim = shape.size() - reduced_dims;
  if (x.storage != y.storage || x.offset != y.offset || x.dtype != y.dtype || missing < 0) return false;
  int64_t step = 1;  // of the contiguous numbers
  for (int d = shape.size() - 1; d >= 0; --d) {
    const bool is_there = d >= missing && x.shape[d - missing] > 1;
    if (shape[d] > 1 && (is_there ? x.strides[d - missing] : 0) != (d < rows_ndim ? step : 0)) return false;
    if (d < rows_ndim) step *= shape[d];
  }
  return numel(y.shape) == step;
}

int chain_instructions(const TracedCall& traced) {
  if (!traced.call->variant.empty()) return 0;  // a rung was asked for by name
  if (traced.continues >= 0 || !is_in_order(traced.outputs[0])) return 0;
  if (is_gelu(traced)) return 1;
  const auto* options = options_of<ElementwiseOptions>(*traced.call);
  if (!options || divides_integers(traced)) return 0;
  using enum ElementwiseOp;
  int casts = 0;  // of operands, and of the result
  for (size_t k = options->op == kWhere ? 1 : 0; k < traced.inputs.size(); ++k)
    casts += traced.inputs[k].storage >= 0 && traced.inputs[k].dtype != options->dtype;
  const bool makes_another = options->op == kCast || kernels::is_comparison(options->op);
  const int made = number_for_nan(traced) ? 3 : std::max(factors_of(traced) - 1, 1);
  return made + casts + (!makes_another && traced.outputs[0].dtype != options->dtype);
}

bool looks(const TracedCall& traced) {
  return traced.call->op->looks || (divides_integers(traced) && traced.inputs[1].storage >= 0);
}

int chain_numbers(const TracedCall& traced) {
  if (is_gelu(traced)) return 1;
  const auto in_inputs =
      std::count_if(traced.inputs.begin(), traced.inputs.end(), [](const View& x) { return x.storage < 0; });
  return static_cast<int>(in_inputs) + (number_for_nan(traced) ? 1 : 0);
}

int reduced_dims(const TracedCall& traced) {
  const ReduceOptions* options = reduction_of(traced);
  if (!options) return 0;
  const auto begin = options->reduced.begin(), end = begin + traced.inputs[0].shape.size();
  const auto first = std::find(begin, end, true);
  return std::find(first, end, false) == end ? static_cast<int>(end - first) : 0;
}

int summed_dims(const TracedCall& traced) {
  const ReduceOptions* options = reduction_of(traced);
  if (!options || options->op != kernels::ReduceOp::kSum) return 0;
  const View& x = traced.inputs[0];
  if (x.dtype != traced.outputs[0].dtype) return 0;
  const auto begin = options->reduced.begin(), end = begin + x.shape.size();
  const auto first_kept = std::find(begin, end, false);
  const bool are_first = std::find(first_kept, end, true) == end && first_kept != end;
  return are_first ? static_cast<int>(first_kept - begin) : 0;
}

bool is_constant(const TracedCall& traced) {
  const auto* options = options_of<ElementwiseOptions>(*traced.call);
  return options && options->op == ElementwiseOp::kCopy && traced.inputs[0].storage < 0 && traced.continues < 0;
}

Program::Program(const Trace& trace, std::vector<View> inputs, const std::vector<Step>& steps,
                 std::vector<View> results, const std::string& variant)
    : inputs_(std::move(inputs)), results_(std::move(results)) {
  std::map<int, Scalar> constants;
  for (const TracedCall& traced : trace.calls())
    if (is_constant(traced)) constants[traced.outputs[0].storage] = constant_of(traced);
  for (const Step& step : steps) {
    if (step.results.empty())
      steps_.push_back({trace.calls()[step.calls.at(0)], nullptr, {}});
    else
      add_chain(trace, step, constants, variant);
  }
  int storages = 0;
  const auto note = [&](const View& view) { storages = std::max(storages, view.storage + 1); };
  for (const Planned& step : steps_) {
    std::for_each(step.traced.inputs.begin(), step.traced.inputs.end(), note);
    std::for_each(step.traced.outputs.begin(), step.traced.outputs.end(), note);
  }
  std::for_each(inputs_.begin(), inputs_.end(), note);
  for (int s = 0; s < storages; ++s) bytes_.push_back(trace.bytes_of(s));
  find_last_uses();
}

void Program::add_chain(const Trace& trace, const Step& step, const std::map<int, Scalar>& constants,
                        const std::string& variant) {
  Shape shape = trace.calls()[step.calls[0]].outputs[0].shape;
  int reduced = 0;
  for (int at : step.calls) {
    const TracedCall& traced = trace.calls()[at];
    if (const int dims = reduced_dims(traced)) reduced = dims, shape = traced.inputs[0].shape;
  }
  ChainWriter writer(constants, shape, reduced);
  Planned planned{{}, nullptr, {}};
  Cost cost;                            // without the bytes, which depend on how operands share memory
  std::vector<const TracedCall*> sums;  // of columns
  for (int at : step.calls) {
    const TracedCall& traced = trace.calls()[at];
    cost.flops += traced.call->cost.flops;
    if (summed_dims(traced) > 0) {
      sums.push_back(&traced);
      continue;
    }
    const int dims = reduced_dims(traced);
    const char* op = traced.call->op->name;
    RL_CHECK(chain_instructions(traced) > 0 || dims > 0, op, "cannot be part of a chain");
    RL_CHECK(dims ? dims == reduced && traced.inputs[0].shape == shape
                  : traced.outputs[0].shape == shape || numel(traced.outputs[0].shape) == rows_of(shape, reduced),
             op, "a chain has one shape, got ", traced.outputs[0].shape);
    writer.add(traced);
    const auto is_read = std::find(step.results.begin(), step.results.end(), traced.outputs[0].storage);
    if (is_read == step.results.end()) continue;
    writer.add_result(traced.outputs[0].storage);
    planned.traced.outputs.push_back(traced.outputs[0]);
  }
  for (const TracedCall* sum : sums) {
    RL_CHECK(reduced > 0 && sum->inputs[0].shape == shape && summed_dims(*sum) == shape.size() - reduced, "sum",
             "a chain has one shape, got ", sum->inputs[0].shape);
    writer.add_column_sum(*sum);
    planned.traced.outputs.push_back(sum->outputs[0]);
  }
  RL_CHECK(planned.traced.outputs.size() == step.results.size(), "fused", "a result is not of the chain");
  planned.traced.inputs = writer.operands();
  planned.fused = writer.finish();
  planned.traced.call = std::make_shared<Call<FusedOptions>>(fused_op(), Tensors{}, Tensors{},
                                                             FusedOptions{planned.fused}, cost, variant);
  steps_.push_back(std::move(planned));
}

void Program::find_last_uses() {
  std::vector<int> last(bytes_.size(), -1);
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const View& x : steps_[i].traced.inputs)
      if (x.storage >= 0) last[x.storage] = static_cast<int>(i);
    for (const View& y : steps_[i].traced.outputs) last[y.storage] = static_cast<int>(i);
    if (steps_[i].traced.continues >= 0) last[steps_[i].traced.continues] = static_cast<int>(i);
  }
  for (size_t s = 0; s < last.size(); ++s)
    if (last[s] >= 0) steps_[last[s]].dead.push_back(static_cast<int>(s));
  for (Planned& step : steps_) {
    if (!options_of<CrossEntropyBackwardOptions>(*step.traced.call)) continue;
    const View &logits = step.traced.inputs[1], &gradient = step.traced.outputs[0];
    step.writes_over =
        logits.shape == gradient.shape && logits.strides == gradient.strides &&
        bytes_[logits.storage] == bytes_[gradient.storage] &&
        std::find(step.dead.begin(), step.dead.end(), logits.storage) != step.dead.end() &&
        std::none_of(results_.begin(), results_.end(), [&](const View& x) { return x.storage == logits.storage; });
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    const int step = last[results_[i].storage];
    (step >= 0 ? steps_[step].done : untouched_).push_back(static_cast<int>(i));
  }

  for (const View& input : inputs_) {
    const auto is_other = [&](const View& x) { return x.storage == input.storage && !(x == input); };
    bool any =
        std::none_of(results_.begin(), results_.end(), [&](const View& x) { return x.storage == input.storage; });
    for (const Planned& step : steps_)
      for (const View& x : step.traced.inputs) any = any && !is_other(x) && (step.fused || x.storage != input.storage);
    any_strides_.push_back(any);
  }
}

std::vector<std::string> Program::cuda_sources(const kernels::FusedTiling& tiling) const {
  std::vector<std::string> sources;
  for (const Planned& step : steps_)
    if (step.fused) sources.push_back(kernels::fused_source(step.fused->program, tiling));
  return sources;
}

// A storage during a run of the program.
struct Program::Slot {
  std::shared_ptr<Storage> storage;
  char* origin = nullptr;       // where offsets are counted from
  const View* given = nullptr;  // if it is an input: its view
  Tensor tensor;                // and the tensor

  Tensor at(const View& view) const {
    RL_CHECK(storage, "compile", "storage ", view.storage, " is read before it is made");
    if (given && view == *given) return tensor.detach();
    return Tensor(storage, origin + view.offset * size_of(view.dtype), view.shape, view.strides, view.dtype);
  }
};

// Whether only the slot, and one more tensor of its storage, hold the logits of a loss.
bool Program::is_free(const Slot& slot, const Tensor& logits) {
  return gradient_may_take(logits, slot.tensor.defined() ? 3 : 2);
}

void Program::run_step(const Planned& step, std::vector<Slot>& slots, Device device) const {
  OpScope scope(step.traced.call->op->name);
  Tensors operands, made;
  for (const View& x : step.traced.inputs) operands.push_back(x.storage < 0 ? Tensor() : slots[x.storage].at(x));
  for (const View& y : step.traced.outputs) {
    Slot& slot = slots[y.storage];
    if (step.traced.continues >= 0) {
      slot = slots[step.traced.continues];
    } else if (step.writes_over && is_free(slots[step.traced.inputs[1].storage], operands[1])) {
      slot.storage = operands[1].storage();
      slot.origin = static_cast<char*>(operands[1].data());
    } else {
      slot.storage = std::make_shared<Storage>(bytes_[y.storage], device);
      slot.origin = static_cast<char*>(slot.storage->data());
    }
    made.push_back(slot.at(y));
  }
  const std::unique_ptr<AnyCall> call = step.traced.call->of(std::move(operands), std::move(made));
  if (step.fused) {
    call->cost.bytes_read = compulsory_bytes(call->inputs);
    for (const Tensor& y : call->outputs) call->cost.bytes_written += y.nbytes();
  }
  submit(*call);
}

void Program::run(Tensors inputs, const Take& take) const {
  RL_CHECK(inputs.size() == inputs_.size(), "compile", "expected ", inputs_.size(), " tensors, got ", inputs.size());
  const Device device = inputs.at(0).device();
  std::vector<Slot> slots(bytes_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const View& view = inputs_[i];
    Tensor& x = inputs[i];
    RL_CHECK(x.shape() == view.shape && x.dtype() == view.dtype, "compile", "input ", i, ": expected ", view.shape, " ",
             name(view.dtype), ", got ", x.shape(), " ", name(x.dtype()));
    if (!any_strides_[i] && !has_strides(x, view.strides)) x = copy(x.detach());
    char* origin = static_cast<char*>(x.data()) - view.offset * size_of(view.dtype);
    slots[view.storage] = {x.storage(), origin, &view, std::move(x)};
  }
  inputs.clear();
  const auto finish = [&](const std::vector<int>& done, const std::vector<int>& dead) {
    Tensors results;
    for (int result : done) results.push_back(slots[results_[result].storage].at(results_[result]));
    for (int storage : dead) slots[storage] = {};
    for (size_t i = 0; i < done.size(); ++i) take(done[i], std::move(results[i]));
  };
  for (const Planned& step : steps_) {
    run_step(step, slots, device);
    finish(step.done, step.dead);
  }
  finish(untouched_, {});
}

Tensors Program::run(Tensors inputs) const {
  Tensors results(results_.size());
  run(std::move(inputs), [&](int result, Tensor y) { results[result] = std::move(y); });
  return results;
}

namespace {

// The backward of a node that a program stands for.
struct ProgramRule {
  Program::Backward whole;
  Program::BackwardOf alone;
  int results;
  size_t inputs;

  Tensors operator()(const Gradients& dy, Tensors& saved) const {
    std::vector<int> given;  // what no gradient reaches gets none: not zeros, which could meet inf
    for (int i = 0; i < results; ++i)
      if (dy[i].defined()) given.push_back(i);
    Tensors tensors = std::move(saved);
    if (given.size() > 1 && static_cast<int>(given.size()) < results) return added_up(dy, given, tensors);
    for (int i : given) tensors.push_back(dy.take(i));
    const Program::Backward backward = static_cast<int>(given.size()) == results ? whole : alone(given.at(0));
    backward.program->run(std::move(tensors),
                          [&](int result, Tensor dx) { dy.give(backward.targets[result], std::move(dx)); });
    return Tensors(inputs);
  }

  Tensors added_up(const Gradients& dy, const std::vector<int>& given, const Tensors& saved) const {
    Tensors sums(inputs);
    for (int i : given) {
      const Program::Backward backward = alone(i);
      Tensors tensors = saved;
      tensors.push_back(dy.take(i));
      backward.program->run(std::move(tensors), [&](int result, Tensor dx) {
        Tensor& sum = sums[backward.targets[result]];
        sum = sum.defined() ? sum + dx : std::move(dx);
      });
    }
    return sums;
  }
};

}  // namespace

void Program::record(const std::string& op, Tensors& results, const Tensors& inputs, const Tensors& saved,
                     Backward whole, BackwardOf alone) {
  std::vector<Tensor*> places;
  for (Tensor& y : results) places.push_back(&(y = y.detach()));
  autograd::attach(op, places, std::vector<autograd::Ref>(inputs.begin(), inputs.end()),
                   std::vector<autograd::Ref>(saved.begin(), saved.end()),
                   ProgramRule{std::move(whole), std::move(alone), static_cast<int>(results.size()), inputs.size()});
}

}  // namespace rooflab
