#include "ops/autocast.h"

#include <algorithm>
#include <unordered_map>

#include "autograd/reads.h"
#include "core/context.h"
#include "core/range.h"
#include "ops/ops.h"

namespace rooflab::autocast {
namespace {

// A leaf cast to the low dtype, valid as long as the leaf does not change.
struct KeptCast {
  Tensor leaf, made;
  Version version;
};

// The op result that was cast last, and its cast, as long as others (backward, after a product) hold both.
struct LastCast {
  std::weak_ptr<autograd::Meta> source;
  std::weak_ptr<Storage> made;
  Shape strides;  // of what was made
  Version version;
  DType dtype = DType::kFloat32;
  std::shared_ptr<const Recording> recording;  // the capture or trace that the cast is part of
};

}  // namespace

struct Casts {
  std::unordered_map<const autograd::Meta*, KeptCast> kept;
  LastCast last;
};

namespace {

Casts& casts() {
  std::shared_ptr<Casts>& made = context().casts;
  if (!made) made = std::make_shared<Casts>();
  return *made;
}

Policy policy_of(std::string_view op) {
  for (const auto& [name, policy] : policies())
    if (op == name) return policy;
  return Policy::kWidest;
}

// The widest of float16 and bfloat16 together is float32.
DType widest(DType a, DType b) {
  if (a == b) return a;
  return a == DType::kFloat64 || b == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

bool is_leaf_to_train(const Tensor& x) { return autograd::requires_grad(x) && !x.meta()->node; }

// Records y, which exists already, as the cast of x.
void record_cast(Tensor& y, const Tensor& x) {
  autograd::record("cast", y, {x}, [from = x.dtype()](const Tensor& dy) { return cast(dy, from); });
}

// The kept cast as a new result that is recorded again: a context may cover several passes, some without gradients.
Tensor in_kept(DType dtype, const Tensor& leaf) {
  KeptCast& kept = casts().kept[leaf.meta().get()];
  const bool is_current = kept.made.defined() && kept.made.dtype() == dtype && kept.leaf.data() == leaf.data() &&
                          leaf.storage()->is_at(kept.version);
  if (!is_current) {
    const autograd::GradMode off(false);
    const RangeScope range("autocast_weights");
    kept = {leaf, cast(leaf, dtype), leaf.storage()->version()};
  }
  Tensor y = kept.made.detach();
  if (is_current) autograd::note_kept(y, leaf);
  if (autograd::recording(leaf)) record_cast(y, leaf);
  return y;
}

// A tensor that several products read, such as a norm's result, is cast only for the first of them. Each use is
// recorded separately, so that their gradients are summed in the dtype of x.
Tensor in_last(DType dtype, const Tensor& x) {
  LastCast& last = casts().last;
  const std::shared_ptr<Recording>& recording = context().mode.recording;
  const std::shared_ptr<Storage> made = last.made.lock();
  if (made && last.source.lock() == x.meta() && x.storage()->is_at(last.version) && last.dtype == dtype &&
      last.recording == recording) {
    Tensor y(made, made->data(), x.shape(), last.strides, dtype);
    autograd::note_kept(y, x);
    if (autograd::recording(x)) record_cast(y, x);
    return y;
  }
  const Tensor y = cast(x, dtype);
  last = {x.meta(), y.storage(), y.strides(), x.storage()->version(), dtype, recording};
  return y;
}

}  // namespace

const std::vector<std::pair<const char*, Policy>>& policies() {
  static const std::vector<std::pair<const char*, Policy>> table{
      {"matmul", Policy::kLow},         {"linear", Policy::kLow},           {"attention", Policy::kLow},
      {"softmax", Policy::kFloat32},    {"log_softmax", Policy::kFloat32},  {"cross_entropy", Policy::kFloat32},
      {"rms_norm", Policy::kFloat32},   {"rms_norm_add", Policy::kFloat32}, {"rms_norm_rope", Policy::kFloat32},
      {"layer_norm", Policy::kFloat32}, {"exp", Policy::kFloat32},          {"log", Policy::kFloat32},
      {"log2", Policy::kFloat32},       {"log10", Policy::kFloat32},        {"pow", Policy::kFloat32},
      {"rsqrt", Policy::kFloat32},      {"sum", Policy::kFloat32},          {"mean", Policy::kFloat32},
      {"cumsum", Policy::kFloat32},
  };
  return table;
}

std::optional<DType> low_dtype() {
  if (context().mode.counter) return std::nullopt;
  return context().low_dtype;
}

std::optional<DType> begin(std::optional<DType> low) {
  RL_CHECK(!low || *low == DType::kFloat16 || *low == DType::kBFloat16, "autocast",
           "dtype: expected float16 or bfloat16, got ", name(*low));
  ++context().autocasts;
  return std::exchange(context().low_dtype, low);
}

void end(std::optional<DType> before) {
  context().low_dtype = before;
  if (--context().autocasts == 0) context().casts.reset();
}

std::optional<DType> wanted(std::string_view op, const std::vector<const Tensor*>& operands) {
  const std::optional<DType> low = low_dtype();
  if (!low || OpScope::current()) return std::nullopt;
  std::optional<DType> common;
  bool differ = false;
  for (const Tensor* x : operands) {
    if (!x || !is_floating(x->dtype())) continue;
    differ |= common && x->dtype() != *common;
    common = common ? widest(*common, x->dtype()) : x->dtype();
  }
  const Policy policy = policy_of(op);
  if (!common || (*common == DType::kFloat64 && policy != Policy::kWidest)) return std::nullopt;
  const DType dtype = policy == Policy::kLow ? *low : policy == Policy::kFloat32 ? DType::kFloat32 : *common;
  return differ || dtype != *common ? std::optional(dtype) : std::nullopt;
}

std::optional<DType> wanted(std::string_view op, std::initializer_list<const Tensor*> operands) {
  if (!low_dtype()) return std::nullopt;  // returns before anything is allocated
  return wanted(op, std::vector<const Tensor*>(operands));
}

Tensor in(DType dtype, const Tensor& x) {
  if (!is_floating(x.dtype()) || x.dtype() == dtype) return x;
  if (size_of(dtype) != 2) return cast(x, dtype);
  // What is captured or traced will run again, possibly with another leaf.
  if (is_leaf_to_train(x)) return context().mode.recording ? cast(x, dtype) : in_kept(dtype, x);
  return autograd::requires_grad(x) ? in_last(dtype, x) : cast(x, dtype);
}

std::optional<Tensor> in(DType dtype, const std::optional<Tensor>& x) {
  return x ? std::optional(in(dtype, *x)) : std::nullopt;
}

}  // namespace rooflab::autocast
