// What training needs besides a model: the loss and the optimizer.
#include <algorithm>

#include "bindings/bindings.h"
#include "ops/adamw.h"
#include "ops/cross_entropy.h"
#include "ops/tensor_list.h"

namespace rooflab {
namespace {

constexpr const char* kCrossEntropyDoc =
    R"doc(The loss of a classifier: -log softmax(logits)[target], per example or reduced.

Computed as log(sum(exp(logits))) - logits[target] with the maximum subtracted from both, in float32 for 16 bits, in one
pass over the logits. The graph keeps the logits, which are there anyway, and the log-sum-exp of each example; the
gradient, (softmax - one hot) / N, computes the probabilities again (`cross_entropy_backward`).

Parameters
----------
logits : Tensor
    (N, V), N examples and V classes; or (V,), or (N, V, ...).
target : Tensor
    (N,), or the shape of the logits without V: the right class, int64 or int32.
ignore_index : int
    Examples with this target have no loss and no gradient, and do not count in the mean.
reduction : str
    "mean" over the examples that count, "sum" or "none".
variant : str
    A rung of rl.variants("cross_entropy"). "v0_composed" is made of other ops, forward and backward.

Returns
-------
Tensor
    Of the dtype of the logits: one number; of the shape of `target` for "none". The mean of no example is NaN.
    Cost: one launch, and on a GPU one more where losses are summed; 4 FLOPs per logit. The gradient is one launch.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit; for a target out of range. On a GPU this is raised at the next wait
    (see rl.cuda.synchronize), and its row holds NaN.

Examples
--------
>>> rl.cross_entropy(rl.tensor([[0.0, 0.0], [9.0, 0.0]]), rl.tensor([1, -100])).item()
0.693...)doc";

constexpr const char* kCrossEntropyBackwardDoc =
    R"doc(The gradient of cross_entropy's logits, from the log-sum-exp of each example.

(exp(logits - lse - lse_rest) - one hot) dloss / count: what `cross_entropy` records. An error of the log-sum-exp,
|lse| 2^-24 in float32 without the rest, is a relative error of the probabilities.

Parameters
----------
dloss : Tensor
    The gradient of the loss: () for all examples, or of the shape of `target`. Of the dtype of the logits or of `lse`.
logits, target : Tensor
    As `cross_entropy` took them.
lse : Tensor
    log(sum(exp(logits))), of the shape of `target`; float32, or float64 for float64 logits.
count : Tensor, optional
    (): what the loss was divided by, in the dtype of `lse`. The number of examples that count, for a mean.
ignore_index : int
    Examples with this target have no gradient.
variant : str
    A rung of rl.variants("cross_entropy_backward").
lse_rest : Tensor, optional
    What the rounding of `lse` has left out, like `lse`; 0 if not given.

Returns
-------
Tensor
    Of the shape and dtype of the logits. Cost: one launch, 3 FLOPs per logit.

Raises
------
ValueError
    When shapes, dtypes or devices do not fit; for a target out of range. On a GPU this is raised at the next wait
    (see rl.cuda.synchronize), and its row holds NaN.

Examples
--------
>>> logits, lse = rl.zeros(1, 4), rl.tensor([4.0]).log()
>>> rl.cross_entropy_backward(rl.tensor(1.0), logits, rl.tensor([1]), lse).tolist()
[[0.25, -0.75, 0.25, 0.25]])doc";

constexpr const char* kAdamwDoc = R"doc(One step of AdamW, in place: what `rl.optim.AdamW` calls.

For a parameter p with the gradient g and the moments m and v, at step t::

    p = p - lr weight_decay p                 after the update with decay="after"
    m = m + (g - m) (1 - beta1), or g - (g - m) beta1 where beta1 < 0.5
    v = v beta2 + g^2 (1 - beta2)
    p = p - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)

Parameters
----------
params, grads, exp_avgs, exp_avg_sqs : sequence of Tensor
    p, g, m and v: those of a parameter have one shape. All have one floating dtype and device. p, m and v are written.
step : int or Tensor
    t, from 1. A tensor is int64 () on the parameters' device: a graph reads it again at each replay.
lr : float or Tensor
    If step is a tensor, lr may be one too: float64 ().
beta1, beta2, eps, weight_decay : float
    Host numbers: a graph that is replayed keeps the ones it was captured with.
decay : str
    "before" the update, as PyTorch's AdamW, or "after" it, as textbooks write it.
variant : str
    A rung of rl.variants("adamw").

Raises
------
ValueError
    When tensors do not fit, for a number out of its range, and for a parameter that requires grad outside rl.no_grad().

Notes
-----
Cost: one launch for 64 tensors; 28 bytes and 14 FLOPs per float32 parameter. "v0_composed": 14 launches per tensor.
Source: Loshchilov and Hutter, arXiv:1711.05101, algorithm 2.

Examples
--------
>>> p, m, v = rl.ones(2), rl.zeros(2), rl.zeros(2)
>>> rl.adamw([p], [rl.ones(2)], [m], [v], step=1, lr=0.5, weight_decay=0.0)
>>> [round(number, 4) for number in p.tolist()]
[0.5, 0.5])doc";

bool to_decay_last(std::string_view decay) {
  RL_CHECK(decay == "before" || decay == "after", "adamw", "decay: expected \"before\" or \"after\", got \"", decay,
           "\"");
  return decay == "after";
}

// adamw or check_adamw, with the options as arguments.
template <class F>
auto on_options(F f) {
  return without_gil([f](const Tensors& params, const Tensors& grads, const Tensors& exp_avgs,
                         const Tensors& exp_avg_sqs, const std::variant<Tensor, int64_t>& step,
                         const std::variant<Tensor, double>& lr, double beta1, double beta2, double eps,
                         double weight_decay, std::string_view decay, std::string_view variant) {
    AdamwOptions options{.beta1 = beta1,
                         .beta2 = beta2,
                         .eps = eps,
                         .weight_decay = weight_decay,
                         .decay_last = to_decay_last(decay),
                         .step_at = {},
                         .lr_at = {}};
    if (const auto* number = std::get_if<int64_t>(&step))
      options.step = *number;
    else
      options.step_at = std::get<Tensor>(step);
    if (const auto* number = std::get_if<double>(&lr))
      options.lr = *number;
    else
      options.lr_at = std::get<Tensor>(lr);
    f(params, grads, exp_avgs, exp_avg_sqs, options, variant);
  });
}

// For each tensor, the place of the first with its dtype and device.
std::vector<size_t> kinds_of(const Tensors& tensors) {
  std::vector<size_t> firsts, kinds;  // one of each kind
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto is_alike = [&](size_t first) {
      return tensors[first].dtype() == tensors[i].dtype() && tensors[first].device() == tensors[i].device();
    };
    const auto found = std::find_if(firsts.begin(), firsts.end(), is_alike);
    kinds.push_back(found == firsts.end() ? i : *found);
    if (found == firsts.end()) firsts.push_back(i);
  }
  return kinds;
}

Reduction to_reduction(std::string_view name) {
  if (name == "mean") return Reduction::kMean;
  if (name == "sum") return Reduction::kSum;
  RL_CHECK(name == "none", "cross_entropy", "reduction: expected \"mean\", \"sum\" or \"none\", got \"", name, "\"");
  return Reduction::kNone;
}

}  // namespace

void register_training(py::module_& m) {
  m.def("cross_entropy",
        without_gil([](const Tensor& logits, const Tensor& target, int64_t ignore_index, std::string_view reduction,
                       std::string_view variant) {
          return cross_entropy(logits, target, ignore_index, to_reduction(reduction), variant);
        }),
        py::arg("logits"), py::arg("target"), py::arg("ignore_index") = -100, py::arg("reduction") = "mean",
        py::arg("variant") = "", kCrossEntropyDoc);
  m.def("cross_entropy_backward",
        without_gil([](const Tensor& dloss, const Tensor& logits, const Tensor& target, const Tensor& lse,
                       const std::optional<Tensor>& count, int64_t ignore_index, std::string_view variant,
                       const std::optional<Tensor>& lse_rest) {
          return cross_entropy_backward(dloss, logits, target, lse, lse_rest, count, ignore_index, variant);
        }),
        py::arg("dloss"), py::arg("logits"), py::arg("target"), py::arg("lse"), py::arg("count") = py::none(),
        py::arg("ignore_index") = -100, py::arg("variant") = "", py::kw_only(), py::arg("lse_rest") = py::none(),
        kCrossEntropyBackwardDoc);
  const py::arg_v lr = py::arg("lr") = 1e-3, beta1 = py::arg("beta1") = 0.9, beta2 = py::arg("beta2") = 0.999;
  const py::arg_v eps = py::arg("eps") = 1e-8, weight_decay = py::arg("weight_decay") = 1e-2;
  const py::arg_v decay = py::arg("decay") = "before", variant = py::arg("variant") = "";
  m.def("adamw", on_options(&adamw), py::arg("params"), py::arg("grads"), py::arg("exp_avgs"), py::arg("exp_avg_sqs"),
        py::kw_only(), py::arg("step"), lr, beta1, beta2, eps, weight_decay, decay, variant, kAdamwDoc);
  m.def("_check_adamw", on_options(&check_adamw), py::arg("params"), py::arg("grads"), py::arg("exp_avgs"),
        py::arg("exp_avg_sqs"), py::kw_only(), py::arg("step"), lr, beta1, beta2, eps, weight_decay, decay, variant,
        "Raises what adamw would raise, and changes nothing.");
  m.def("_kinds", &kinds_of, py::arg("tensors"),
        "For each tensor, the place of the first that has its dtype and its device.");
  m.def("_sum_squares", without_gil(&sum_squares), py::arg("tensors"), variant,
        "float64 (): the sum of the squares of all elements of tensors of one dtype on one device. One launch on the "
        "CPU and two on a GPU for 192 tensors.");
  m.def("_scale_tensors", without_gil(&scale_tensors), py::arg("tensors"), py::arg("factor"), variant,
        "Multiply tensors of one dtype in place by `factor`, float64 () on their device. One launch for 192 tensors.");
}

}  // namespace rooflab
