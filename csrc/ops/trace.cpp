#include "ops/trace.h"

#include <utility>

#include "core/context.h"
#include "core/target.h"

namespace rooflab {
namespace {

Device without_memory(Device device) { return device.is_meta() ? device : meta_device(to_string(device)); }

int64_t offset_of(const Tensor& x) {
  return (static_cast<const char*>(x.data()) - static_cast<const char*>(x.storage()->data())) / size_of(x.dtype());
}

// Whether writing x overwrites all of its storage.
bool is_whole(const Tensor& x) { return x.nbytes() == x.storage()->bytes(); }

}  // namespace

Trace::Trace(Device device) : outside_(device), device_(without_memory(device)) {}

Trace::~Trace() { end(); }

void Trace::begin() {
  RL_CHECK(!current() && !is_recording_, "compile", "another function is being traced");
  Mode mode = outer_ = context().mode;
  mode.trace = this;
  mode.recording = std::make_shared<Recording>();
  mode.is_uncounted = true;
  context().mode = std::move(mode);
  outer_checkpoint_ = std::exchange(context().checkpoint, nullptr);
  outer_recomputed_ = std::exchange(context().recomputed, nullptr);
  outer_reads_ = std::exchange(context().reads, nullptr);
  outer_records_gradients_ = context().records_gradients;
  outer_low_dtype_ = context().low_dtype;
  outer_autocasts_ = context().autocasts;
  is_recording_ = true;
}

void Trace::end() {
  if (current() != this) return;
  context().mode = std::move(outer_);
  context().checkpoint = std::move(outer_checkpoint_);
  context().recomputed = outer_recomputed_;
  context().reads = outer_reads_;
  context().records_gradients = outer_records_gradients_;
  context().low_dtype = outer_low_dtype_;
  context().autocasts = outer_autocasts_;
  if (outer_autocasts_ == 0) context().casts.reset();
  twins_.clear();  // they hold the arguments' memory
  is_recording_ = false;
}

Trace* Trace::current() { return context().mode.trace; }

Device Trace::stand_in(Device device) {
  const Trace* trace = current();
  return trace && without_memory(device) == trace->device_ ? trace->device_ : device;
}

Device Trace::stood_for(Device device) {
  const Trace* trace = current();
  return trace && device == trace->device_ ? trace->outside_ : device;
}

void Trace::refuse(const char* op, const char* why) { RL_CHECK_AS(WithoutMemory, !current(), op, why); }

void Trace::note_error(const char* text) {
  if (Trace* trace = current(); trace && trace->error_.empty()) trace->error_ = text;
}

std::string Trace::error() const {
  const bool is_as_before =
      context().records_gradients == outer_records_gradients_ && context().low_dtype == outer_low_dtype_;
  if (!error_.empty() || is_as_before) return error_;
  return "[compile] the function leaves grad mode or autocast changed; change it outside, or inside of `with`";
}

bool Trace::is_argument(const Tensor& x) const {
  const auto found = numbers_.find(x.storage().get());
  return found != numbers_.end() && is_argument_[found->second];
}

void Trace::number(const std::shared_ptr<Storage>& storage, bool is_argument) {
  const int number = static_cast<int>(bytes_.size());
  if (numbers_.insert_or_assign(storage.get(), number).second) seen_.push_back(storage);
  bytes_.push_back(storage->bytes());
  is_argument_.push_back(is_argument);
}

Tensor Trace::argument(const Tensor& x, bool is_leaf) {
  Twin& twin = twins_[x.storage().get()];
  if (!twin.own) {
    twin = {std::make_shared<Storage>(std::max(x.storage()->bytes(), x.nbytes()), device_), x.storage()};
    number(twin.own, true);
  }
  if (!is_leaf) inner_.insert(twin.own.get());
  char* data = static_cast<char*>(twin.own->data()) + offset_of(x) * size_of(x.dtype());
  return Tensor(twin.own, data, x.shape(), x.strides(), x.dtype());
}

View Trace::view_of(const Tensor& x) const {
  const auto found = numbers_.find(x.storage().get());
  RL_CHECK_AS(WithoutMemory, found != numbers_.end(), "compile", "a tensor of shape ", x.shape(),
              " is neither an argument nor made by a recorded op; pass it as an argument");
  return {found->second, x.shape(), x.strides(), offset_of(x), x.dtype()};
}

void Trace::add(const AnyCall& call) {
  const char* op = call.op->name;
  TracedCall traced{call.of({}, {}), {}, {}};
  for (const Tensor& x : call.inputs) {
    if (!x.defined()) {
      traced.inputs.emplace_back();
      continue;
    }
    RL_CHECK_AS(WithoutMemory, numbers_.contains(x.storage().get()), op, "reads a tensor of shape ", x.shape(), " on ",
                to_string(x.device()),
                " that is neither an argument nor made by a recorded op; pass it as an argument");
    traced.inputs.push_back(view_of(x));
  }
  for (const Tensor& y : call.outputs) {
    const auto known = numbers_.find(y.storage().get());
    const bool is_known = known != numbers_.end();
    RL_CHECK_AS(WithoutMemory, y.device() == device_, op, "makes a tensor on ", to_string(y.device()),
                " beside those on ", to_string(device_));
    RL_CHECK_AS(WithoutMemory, !is_known || !is_argument_[known->second], op, "writes into an argument");
    if (is_whole(y)) continue;
    RL_CHECK_AS(WithoutMemory, is_known && call.outputs.size() == 1, op,
                "writes a part of a tensor whose rest no op has written");
    traced.continues = known->second;
  }
  for (const Tensor& y : call.outputs) {
    number(y.storage(), false);
    traced.outputs.push_back(view_of(y));
  }
  calls_.push_back(std::move(traced));
}

}  // namespace rooflab
