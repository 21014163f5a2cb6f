// adamw: checks, cost and ladder; the version that is composed of other ops.
#include "ops/adamw.h"

#include <cmath>

#include "core/range.h"
#include "core/tensor_check.h"
#include "kernels/adamw/adamw.h"
#include "ops/arithmetic.h"
#include "ops/variant.h"

namespace rooflab {
namespace {

using kernels::AdamwArgs;
using kernels::AdamwNumbers;
using enum Device::Type;
using enum ElementwiseOp;

const Ladder<AdamwArgs> kLadder(
    "adamw", {
                 {"v2_many", kCuda, "16-byte accesses, 64 tensors a launch; aligned, contiguous tensors",
                  kernels::adamw_cuda_v2_accepts, kernels::adamw_cuda_v2_many},
                 {"v1_fused", kCuda, "a thread an element, a launch a tensor; contiguous tensors",
                  kernels::adamw_accepts, kernels::adamw_cuda_v1_fused, kernels::adamw_cuda_v1_footprint},
                 {"v0_composed", kCuda, "each of the 14 operations as an op of its own", nullptr, composed<AdamwArgs>},
                 {"v1_fused", kCpu, "each element read and written once, SIMD, all threads; contiguous tensors",
                  kernels::adamw_accepts, kernels::adamw_cpu_v1_fused},
                 {"v0_composed", kCpu, "each of the 14 operations as an op of its own", nullptr, composed<AdamwArgs>},
             });

constexpr int64_t kFlops = 13;  // an element, and one more for decay

AdamwNumbers numbers_of(const AdamwOptions& options) {
  const auto step = static_cast<double>(options.step);
  return {1 - options.lr * options.weight_decay,
          options.beta1,
          options.beta2,
          options.lr / (1 - std::pow(options.beta1, step)),
          std::sqrt(1 - std::pow(options.beta2, step)),
          options.eps,
          options.decay_last};
}

// The tensors of a call, each parameter's together.
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

// For as many parameters from `first` on as one rung takes.
AdamwArgs args_of(const Group& group, size_t first, const AdamwNumbers& numbers) {
  AdamwArgs args{};
  args.numbers = numbers;
  args.contiguous = is_contiguous(group);
  if (group.size() > 0) args.dtype = group.params[0].dtype();
  for (size_t i = first; i < group.size() && args.count < kernels::kAdamwTensors; ++i)
    args.tensors[args.count++] = {group.params[i].data(), group.means[i].data(), group.squares[i].data(),
                                  group.grads[i].data(), group.params[i].numel()};
  return args;
}

void run(const Call& call) {
  Group group;
  group.grads = call.inputs;
  for (Tensor& grad : group.grads) grad = contiguous(grad.detach());
  for (size_t i = 0; i < call.outputs.size(); i += 3) {
    group.params.push_back(call.outputs[i]);
    group.means.push_back(call.outputs[i + 1]);
    group.squares.push_back(call.outputs[i + 2]);
  }
  const AdamwNumbers numbers{call.get<double>("keep"),    call.get<double>("beta1"), call.get<double>("beta2"),
                             call.get<double>("rate"),    call.get<double>("root"),  call.get<double>("eps"),
                             call.get<bool>("decay_last")};
  for (size_t first = 0; first < group.size(); first += kernels::kAdamwTensors)
    kLadder.run(call, args_of(group, first, numbers));
}

const Op kOp("adamw", run);

void fused_step(const Group& group, const AdamwNumbers& numbers, std::string_view variant) {
  Tensors outputs;
  Cost cost;
  for (size_t i = 0; i < group.size(); ++i) {
    outputs.insert(outputs.end(), {group.params[i], group.means[i], group.squares[i]});
    const int64_t bytes = group.params[i].nbytes();
    cost.flops += (kFlops + (numbers.keep != 1)) * group.params[i].numel();
    cost.bytes_read += 4 * bytes;
    cost.bytes_written += 3 * bytes;
  }
  submit({&kOp,
          group.grads,
          outputs,
          {{"keep", numbers.keep},
           {"beta1", numbers.beta1},
           {"beta2", numbers.beta2},
           {"rate", numbers.rate},
           {"root", numbers.root},
           {"eps", numbers.eps},
           {"decay_last", numbers.decay_last}},
          cost,
          std::string(variant)});
}

void composed_step(const Group& group, const AdamwNumbers& numbers) {
  for (size_t i = 0; i < group.size(); ++i) {
    const Tensor &p = group.params[i], &g = group.grads[i], &m = group.means[i], &v = group.squares[i];
    const auto decay = [&] {
      if (numbers.keep != 1) write(kMul, p, Scalar{numbers.keep});
    };
    if (!numbers.decay_last) decay();
    write(kAdd, m, (g - m) * (1 - numbers.beta1));
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
    if (is_written) autograd::check_destination("adamw", tensors[i]);
  }
}

}  // namespace

void adamw(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
           const AdamwOptions& options, std::string_view variant) {
  const OpScope scope("adamw");
  check_options(options);
  for (const Tensor& p : params) {
    check_floating("adamw", "params", p);
    check_same_device("adamw", params[0], p);
    check_same_dtype("adamw", params[0], p);
    autograd::check_destination("adamw", p);
  }
  check_like("grads", grads, params, false);
  check_like("exp_avgs", exp_avgs, params, true);
  check_like("exp_avg_sqs", exp_avg_sqs, params, true);
  Group group;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].numel() == 0) continue;
    group.params.push_back(params[i]);
    group.grads.push_back(grads[i].detach());
    group.means.push_back(exp_avgs[i]);
    group.squares.push_back(exp_avg_sqs[i]);
  }
  if (group.size() == 0) return scope.done();

  const AdamwNumbers numbers = numbers_of(options);
  const autograd::GradMode off(false);
  if (kLadder.composes(group.params[0].device(), args_of(group, 0, numbers), variant)) {
    composed_step(group, numbers);
    return scope.done();  // its parts have counted their work
  }
  fused_step(group, numbers, variant);
  for (const Tensors* tensors : {&group.params, &group.means, &group.squares})
    for (const Tensor& x : *tensors) x.storage()->bump_version();
}

}  // namespace rooflab
