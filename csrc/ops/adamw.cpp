// adamw: checks and cost; the version that is composed of other ops.
#include "ops/adamw.h"

#include <cmath>

#include "core/range.h"
#include "core/tensor_check.h"
#include "kernels/adamw/adamw.h"
#include "ops/arithmetic.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::AdamwArgs;
using kernels::AdamwNumbers;
using enum ElementwiseOp;

constexpr int64_t kFlops = 13;  // per element, and one more for decay

AdamwNumbers numbers_of(const AdamwOptions& options) {
  AdamwNumbers numbers{};
  numbers.beta1 = options.beta1;
  numbers.beta2 = options.beta2;
  numbers.eps = options.eps;
  numbers.decay_last = options.decay_last;
  numbers.lr = options.lr;
  numbers.weight_decay = options.weight_decay;
  return adamw_numbers(numbers, static_cast<double>(options.step), options.lr);
}

// The tensors of a call, grouped by parameter.
struct Group {
  Tensors params, grads, means, squares;

  size_t size() const { return params.size(); }
};

bool is_contiguous(const Group& group) {
  for (const Tensors* tensors : {&group.params, &group.means, &group.squares})
    for (const Tensor& x : *tensors)
      if (!x.is_contiguous()) return false;
  return true;
}

// Null where the kernels get a copy, which is aligned as a null pointer is.
const void* planned_data(const Tensor& grad) { return grad.is_contiguous() ? grad.data() : nullptr; }

// Arguments for the parameters from `first` on, as many as one launch of a rung takes.
AdamwArgs args_of(const Group& group, size_t first, const AdamwNumbers& numbers, bool contiguous) {
  AdamwArgs args{};
  args.numbers = numbers;
  args.contiguous = contiguous;
  if (group.size() > 0) args.dtype = group.params[0].dtype();
  for (size_t i = first; i < group.size() && args.count < kernels::kAdamwTensors; ++i)
    args.tensors[args.count++] = {group.params[i].data(), group.means[i].data(), group.squares[i].data(),
                                  planned_data(group.grads[i]), group.params[i].numel()};
  return args;
}

void run(const Call<AdamwNumbers>& call) {
  Group group;
  const Tensor &step_at = call.inputs.rbegin()[1], &lr_at = call.inputs.back();
  group.grads.assign(call.inputs.begin(), call.inputs.end() - 2);
  for (Tensor& grad : group.grads)
    if (!grad.is_contiguous()) grad = contiguous(grad.detach());
  for (size_t i = 0; i < call.outputs.size(); i += 3) {
    group.params.push_back(call.outputs[i]);
    group.means.push_back(call.outputs[i + 1]);
    group.squares.push_back(call.outputs[i + 2]);
  }
  AdamwNumbers numbers = call.options;
  if (step_at.defined()) numbers.step_at = step_at.data<int64_t>();
  if (lr_at.defined()) numbers.lr_at = lr_at.data<double>();
  const bool all_contiguous = is_contiguous(group);
  for (size_t first = 0; first < group.size(); first += kernels::kAdamwTensors)
    run_rung(kernels::adamw_ladder, call, args_of(group, first, numbers, all_contiguous));
}

const Op<AdamwNumbers> kOp("adamw", run);

void fused_step(const Group& group, const AdamwNumbers& numbers, const Tensor& step_at, const Tensor& lr_at,
                std::string_view variant, int rung) {
  Tensors inputs = group.grads, outputs;
  inputs.insert(inputs.end(), {step_at, lr_at});
  Cost cost;
  cost.bytes_read = compulsory_bytes({step_at, lr_at});
  for (size_t i = 0; i < group.size(); ++i) {
    outputs.insert(outputs.end(), {group.params[i], group.means[i], group.squares[i]});
    const int64_t bytes = group.params[i].nbytes();
    const bool decays = lr_at.defined() ? numbers.weight_decay != 0 : numbers.keep != 1;
    cost.flops += (kFlops + decays) * group.params[i].numel();
    cost.bytes_read += 4 * bytes;
    cost.bytes_written += 3 * bytes;
  }
  submit(Call(kOp, std::move(inputs), std::move(outputs), numbers, cost, variant, rung));
}

void composed_step(const Group& group, const AdamwNumbers& numbers) {
  for (size_t i = 0; i < group.size(); ++i) {
    const Tensor &p = group.params[i], &g = group.grads[i], &m = group.means[i], &v = group.squares[i];
    const auto decay = [&] {
      if (numbers.keep != 1) write(kMul, p, Scalar{numbers.keep});
    };
    if (!numbers.decay_last) decay();
    if (kernels::adamw_forgets(numbers)) {
      write(kSub, m, g);
      write(kMul, m, Scalar{numbers.beta1});
      write(kAdd, m, g);
    } else {
      write(kAdd, m, (g - m) * (1 - numbers.beta1));
    }
    write(kMul, v, Scalar{numbers.beta2});
    write(kAdd, v, g * g * (1 - numbers.beta2));
    const Tensor root = elementwise(kSqrt, v);
    write(kDiv, root, Scalar{numbers.root});
    write(kAdd, root, Scalar{numbers.eps});
    const Tensor update = m / root;
    write(kMul, update, Scalar{numbers.rate});
    write(kSub, p, update);
    if (numbers.decay_last) decay();
  }
}

void check_options(const AdamwOptions& options) {
  RL_CHECK(options.step >= 1, "adamw", "step: expected >= 1, got ", options.step);
  for (const auto& [name, value] :
       {std::pair("lr", options.lr), std::pair("eps", options.eps), std::pair("weight_decay", options.weight_decay)})
    RL_CHECK(value >= 0 && std::isfinite(value), "adamw", name,
             ": expected a number that is finite and not negative, got ", value);
  for (const auto& [name, value] : {std::pair("beta1", options.beta1), std::pair("beta2", options.beta2)})
    RL_CHECK(value >= 0 && value < 1, "adamw", name, ": expected a number that is at least 0 and below 1, got ", value);
}

void check_like(const char* argument, const Tensors& tensors, const Tensors& params, bool is_written) {
  RL_CHECK(tensors.size() == params.size(), "adamw", argument, ": expected ", params.size(), " tensors, got ",
           tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    check_same_device("adamw", params[i], tensors[i]);
    check_same_dtype("adamw", params[i], tensors[i]);
    RL_CHECK(tensors[i].shape() == params[i].shape(), "adamw", argument, "[", i, "]: expected ", params[i].shape(),
             ", got ", tensors[i].shape());
    if (is_written) check_writable("adamw", tensors[i]);
  }
}

void check_number_of_device(const char* argument, const Tensor& x, DType dtype, Device device) {
  if (!x.defined()) return;
  RL_CHECK(x.ndim() == 0 && x.dtype() == dtype && x.device() == device, "adamw", argument, ": expected a number or ",
           name(dtype), " () on ", to_string(device), ", got ", name(x.dtype()), " ", x.shape(), " on ",
           to_string(x.device()));
}

// What a call is going to do, once all that can be wrong with it was checked.
struct Plan {
  Group group;
  AdamwNumbers numbers;
  int rung = kUnchosen;
};

Plan plan(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
          const AdamwOptions& options, std::string_view variant) {
  check_options(options);
  for (const Tensor& p : params) {
    check_floating("adamw", "params", p);
    check_same_device("adamw", params[0], p);
    check_same_dtype("adamw", params[0], p);
    check_writable("adamw", p);
  }
  check_like("grads", grads, params, false);
  check_like("exp_avgs", exp_avgs, params, true);
  check_like("exp_avg_sqs", exp_avg_sqs, params, true);
  RL_CHECK(options.step_at.defined() || !options.lr_at.defined(), "adamw",
           "lr: a tensor needs a step that is a tensor too");
  if (!params.empty()) {
    check_number_of_device("step", options.step_at, DType::kInt64, params[0].device());
    check_number_of_device("lr", options.lr_at, DType::kFloat64, params[0].device());
  }
  Plan plan;
  Group& group = plan.group;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].numel() == 0) continue;
    group.params.push_back(params[i]);
    group.grads.push_back(grads[i].detach());
    group.means.push_back(exp_avgs[i]);
    group.squares.push_back(exp_avg_sqs[i]);
  }
  if (group.size() == 0) return plan;
  const auto& ladder = kernels::adamw_ladder;
  plan.numbers = numbers_of(options);
  // Also for those of later launches, so that a rung which does not take them is refused before the first.
  const bool all_contiguous = is_contiguous(group);
  for (size_t last = (group.size() - 1) / kernels::kAdamwTensors + 1; last-- > 0;)
    plan.rung =
        ladder.choose(group.params[0].device(),
                      args_of(group, last * kernels::kAdamwTensors, plan.numbers, all_contiguous), variant, kOp.name);
  RL_CHECK(!ladder.composes(plan.rung) || !options.step_at.defined(), "adamw",
           "step: v0_composed needs a number, and tensors that are not contiguous run v0_composed");
  return plan;
}

}  // namespace

void check_adamw(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
                 const AdamwOptions& options, std::string_view variant) {
  plan(params, grads, exp_avgs, exp_avg_sqs, options, variant);
}

void adamw(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
           const AdamwOptions& options, std::string_view variant) {
  const OpScope scope("adamw");
  const auto [group, numbers, rung] = plan(params, grads, exp_avgs, exp_avg_sqs, options, variant);
  if (group.size() == 0) return scope.done();
  const autograd::GradMode off(false);
  if (kernels::adamw_ladder.composes(rung)) {
    composed_step(group, numbers);
    return scope.done();  // its parts have counted their work
  }
  const bool is_one_launch = group.size() <= kernels::kAdamwTensors;  // later ones choose for themselves
  fused_step(group, numbers, options.step_at, options.lr_at, variant, is_one_launch ? rung : kUnchosen);
  for (const Tensors* tensors : {&group.params, &group.means, &group.squares})
    for (const Tensor& x : *tensors) x.storage()->bump_version();
}

}  // namespace rooflab
